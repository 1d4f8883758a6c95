import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** The result of one check of an installation, and how to repair a problem. */
export type Finding = { name: string; status: 'ok' | 'warn' | 'fail'; detail: string; repair?: string }

const WAIT_MS = 5_000
const SOON_DAYS = 14
const DAY_MS = 86_400_000

/** Returns null if the process at `url` is ready, else the reason why not. */
export async function readinessFault(url: string): Promise<string | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(WAIT_MS) })
    if (answer.ok) return null
    const text = (await answer.text()).slice(0, 200)
    return `${url} answers ${answer.status}: ${text}`
  } catch (error) {
    return `${url} does not answer (${reasonOf(error)})`
  }
}

/** Returns null if a mail server greets with 220, else the reason why not. */
export async function greetingFault(host: string, port: number, isTls: boolean): Promise<string | null> {
  const where = `${host}:${port}`
  const socket = isTls ? connectTls({ host, port, ...nameOf(host) }) : connect({ host, port })
  try {
    const [chunk] = await once(socket, 'data', { signal: AbortSignal.timeout(WAIT_MS) })
    const greeting = String(chunk).split('\r\n')[0] ?? ''
    return greeting.startsWith('220')
      ? null
      : `${where} greets with ${JSON.stringify(greeting.slice(0, 100))}`
  } catch (error) {
    return `${where} does not greet (${reasonOf(error)})`
  } finally {
    // Errors after the greeting do not matter.
    socket.on('error', () => undefined)
    socket.destroy()
  }
}

/** Checks how long a certificate is valid. */
export function certificateFinding(name: string, read: () => Buffer): Finding {
  try {
    const certificate = new X509Certificate(read())
    const days = Math.floor((Date.parse(certificate.validTo) - Date.now()) / DAY_MS)
    const detail = `it holds until ${new Date(certificate.validTo).toISOString().slice(0, 10)}`
    const repair = 'Renew it; a new file is noticed without a restart.'
    if (days < 0) return { name, status: 'fail', detail: `it held until ${detail.slice(-10)}`, repair }
    return days < SOON_DAYS ? { name, status: 'warn', detail, repair } : { name, status: 'ok', detail }
  } catch (error) {
    const repair = 'SMTP_TLS_CERT is the path of a certificate with its chain, in PEM.'
    return { name, status: 'fail', detail: `it cannot be read (${reasonOf(error)})`, repair }
  }
}

/** Checks the certificate at the public address, and whether clients would trust it. */
export async function siteCertificate(site: URL): Promise<Finding> {
  const name = 'site certificate'
  const host = site.hostname.replaceAll(/^\[|\]$/g, '')
  const socket = connectTls({ host, port: Number(site.port || 443), ...nameOf(host) })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(WAIT_MS) })
    const { raw } = socket.getPeerCertificate()
    return certificateFinding(name, () => raw)
  } catch (error) {
    const repair = `Give the proxy at ${site.host} a valid certificate for this name.`
    return { name, status: 'fail', detail: `${site.host}: ${reasonOf(error)}`, repair }
  } finally {
    socket.on('error', () => undefined)
    socket.destroy()
  }
}

/** Returns the server name for TLS. An IP address must not be sent as one (RFC 6066, section 3). */
function nameOf(host: string): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {}
}

function reasonOf(error: unknown): string {
  const { name, code, message, cause } = Object(error)
  if (name === 'AbortError' || name === 'TimeoutError') return `no answer within ${WAIT_MS / 1_000} s`
  return String(Object(cause).code ?? code ?? message)
}
