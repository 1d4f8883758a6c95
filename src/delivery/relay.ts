/** Where a relay is and how it is spoken to, from `smtp(s)://user:password@host:port?starttls=required`. */
export type Relay = {
  host: string
  port: number
  /** TLS from the first byte. */
  implicitTls: boolean
  /** No email without STARTTLS, and the certificate must be right. */
  tlsRequired: boolean
  credentials: { user: string; password: string } | null
}

/** Reads a relay's URL; the error names what is wrong with it, never its password. */
export function readRelay(text: string): Relay {
  const url = URL.parse(text)
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    throw new Error('RELAY_URL is not a relay; give smtp://host:port or smtps://user:password@host:port.')
  }
  const implicitTls = url.protocol === 'smtps:'
  return {
    host: url.hostname.replaceAll(/^\[|\]$/g, ''),
    port: Number(url.port) || (implicitTls ? 465 : 25),
    implicitTls,
    tlsRequired: url.searchParams.get('starttls') === 'required',
    credentials: url.username
      ? { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
      : null,
  }
}

/** Encryption that is merely offered is taken from anybody; what is demanded, or carries a password, is verified. */
export function mustVerify(relay: Relay): boolean {
  return relay.implicitTls || relay.tlsRequired || (relay.credentials !== null && !isLoopback(relay.host))
}

/** Whether a relay is on this machine, where nobody listens in. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
