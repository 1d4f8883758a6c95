import { Resolver } from 'node:dns/promises'

import { dkimVerify } from 'mailauth/lib/dkim/verify.js'

import type { NameServer } from './name-server.ts'

/** Bytes as a reader gets them: the sink keeps the dots that SMTP adds at the beginning of lines. */
export function unstuffed(wire: Buffer): string {
  return wire.toString('latin1').replaceAll('\r\n..', '\r\n.')
}

/** The signatures of a message as an independent verifier judges them, asking this name server. */
export async function checkSignatures(names: NameServer, raw: string) {
  const checked = await dkimVerify(Buffer.from(raw, 'latin1'), { resolver: resolverOf(names) })
  return checked.results
}

function resolverOf(names: NameServer) {
  const resolver = new Resolver()
  resolver.setServers([names.address])
  return (name: string) => resolver.resolveTxt(name)
}
