import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'

import { SUBSCRIBER_LIMITS } from '../../schema/subscriber.ts'
import { refuse } from '../catalogue/failure.ts'
import { COUNTRIES } from './countries.ts'
import { oneLine } from './text.ts'

const MAXIMUM_LOCAL = 64
const MAXIMUM_DOMAIN = 253
// RFC 5322 atext, with letters and digits of all scripts (RFC 6531), and dots only between atoms. Quoted local parts
// and comments are not accepted, because almost nobody uses them.
const LOCAL_PART =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~\p{L}\p{M}\p{N}-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\p{L}\p{M}\p{N}-]+)*$/u
const ASCII = /^[\x20-\x7e]*$/
/** Letters whose lower case depends on their neighbors or has several characters, so that programs disagree on it. */
const UNEVEN = /[\u0130\u03a3]/
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const UNICODE_DOMAIN = /^[\p{L}\p{M}\p{N}.\-\u200c\u200d]+$/u

/**
 * Returns the address of a recipient unchanged, or throws `INVALID_INPUT`. Checks the lengths of RFC 5321 4.5.3.1. Both
 * parts may use any script (RFC 6531).
 */
export function readEmail(text: string, path: string): string {
  return accept(text, path, emailFault(text))
}

/** Checks an address that others write to: the local part must be ASCII, because few servers accept others. */
export function readOwnEmail(text: string, path: string): string {
  return accept(text, path, ownEmailFault(text))
}

function accept(text: string, path: string, fault: string | null): string {
  if (fault) refuse(path, `is not an email address: ${fault}; send one such as "ada@example.com".`)
  return text
}

/** Returns the fault of an address as `readOwnEmail` takes it, or null. */
export function ownEmailFault(text: string): string | null {
  const fault = emailFault(text)
  if (fault !== null || ASCII.test(localPartOf(text))) return fault
  return 'the part before "@" holds letters beyond ASCII, which most servers could not answer to'
}

/** Returns the fault of a recipient's address, or null. */
export function emailFault(text: string): string | null {
  const tooLong = `it is longer than ${SUBSCRIBER_LIMITS.email} bytes`
  // The length comes first, because the cost of the other checks grows with it.
  if (text.length > SUBSCRIBER_LIMITS.email) return tooLong
  const at = text.lastIndexOf('@')
  if (text.trim() === '') return 'it is empty'
  if (at < 1) return 'it has no "@" between a name and a domain'
  const [local, domain] = [text.slice(0, at), text.slice(at + 1)]
  const ascii = asciiDomain(domain)
  const bytes = Buffer.byteLength(local)
  if (bytes > MAXIMUM_LOCAL) return `the part before "@" is longer than ${MAXIMUM_LOCAL} bytes`
  if (!LOCAL_PART.test(local)) return 'the part before "@" holds characters that are not allowed there'
  if (local !== local.normalize()) return 'the part before "@" is not in the composed form of Unicode (NFC)'
  if (ascii === null) return 'the domain is not a host name'
  if (UNEVEN.test(text))
    return 'it holds a capital letter that has no single lower case; write it in small letters'
  const length = Math.max(Buffer.byteLength(text), bytes + 1 + ascii.length)
  return length > SUBSCRIBER_LIMITS.email ? tooLong : null
}

function localPartOf(email: string): string {
  return email.slice(0, email.lastIndexOf('@'))
}

/** Whether the text can be the local part of an address that others write to. */
export function isOwnLocalPart(text: string): boolean {
  return text.length <= MAXIMUM_LOCAL && ASCII.test(text) && LOCAL_PART.test(text)
}

/** Returns a host name of two or more labels in lower-case ASCII form, or null. */
export function asciiDomain(domain: string): string | null {
  if (domain.length > MAXIMUM_DOMAIN || !UNICODE_DOMAIN.test(domain)) return null
  const ascii = domainToASCII(domain).toLowerCase()
  const labels = ascii.split('.')
  if (ascii.length > MAXIMUM_DOMAIN || labels.length < 2 || !labels.every((label) => LABEL.test(label)))
    return null
  return /^\d+$/.test(labels.at(-1) ?? '') ? null : ascii
}

/** Checks an ISO 3166-1 alpha-2 code in capitals. */
export function readCountry(text: string, path: string): string {
  if (!COUNTRIES.has(text)) {
    refuse(path, 'is not a country; send its ISO 3166-1 alpha-2 code in capitals, such as "FR".')
  }
  return text
}

/** Checks an IPv4 or IPv6 address. */
export function readIpAddress(text: string, path: string): string {
  if (isIP(text) === 0 || text.includes('%')) {
    refuse(path, 'is not an IP address; send one such as "203.0.113.7" or "2001:db8::7".')
  }
  return text
}

/** Checks a telephone number, which may have any form on one line. */
export function readPhone(text: string, path: string): string {
  return oneLine(text, path, SUBSCRIBER_LIMITS.phone)
}
