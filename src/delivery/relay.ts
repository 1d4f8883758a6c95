/** The address and settings of a relay, from `smtp(s)://user:password@host:port?starttls=required&weight=2`. */
export type Relay = {
  host: string
  port: number
  /** TLS from the first byte. */
  implicitTls: boolean
  /** STARTTLS with a valid certificate is required. */
  tlsRequired: boolean
  credentials: { user: string; password: string } | null
  /** A relay is used only while none with a lower number can be. */
  priority: number
  /** Its share of the email among relays of the same priority. */
  weight: number
  /** The most connections that one process opens to it. */
  connections: number
}

/** The default of `connections`: Postfix accepts 50 from one client, and another worker may send from the same host. */
const CONNECTIONS = 20

/** The numeric parameters, with their defaults and maximums. */
const NUMBERS = {
  weight: { preset: 1, most: 1_000 },
  priority: { preset: 1, most: 100 },
  connections: { preset: CONNECTIONS, most: 1_000 },
} as const

const FORM = 'give smtp://host:port or smtps://user:password@host:port'

/**
 * Parses RELAY_URL: one relay, or several separated by spaces or commas. Throws errors that say what is wrong and never
 * contain a password.
 */
export function readRelays(text: string): Relay[] {
  const relays = text
    .trim()
    .split(/[\s,]+(?=[A-Za-z][A-Za-z0-9+.-]*:\/\/)/)
    .map((each, index, all) => readRelay(each, all.length === 1 ? '' : ` (relay ${index + 1})`))
  const names = relays.map(nameOf)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Error(`RELAY_URL names ${twice} twice; give its weight instead.`)
  return relays
}

function readRelay(text: string, place: string): Relay {
  const url = URL.parse(text)
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') {
    throw new Error(`RELAY_URL is not a relay${place}; ${FORM}.`)
  }
  const implicitTls = url.protocol === 'smtps:'
  return {
    host: url.hostname.replaceAll(/^\[|\]$/g, ''),
    port: Number(url.port) || (implicitTls ? 465 : 25),
    implicitTls,
    credentials: url.username
      ? { user: decoded(url.username, place), password: decoded(url.password, place) }
      : null,
    ...readParameters(url.searchParams, place),
  }
}

function decoded(text: string, place: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error(
      `RELAY_URL has a name or password that is not written as URLs write it${place}; a % is %25.`,
    )
  }
}

function readParameters(
  given: URLSearchParams,
  place: string,
): Pick<Relay, 'tlsRequired' | keyof typeof NUMBERS> {
  const known = ['starttls', ...Object.keys(NUMBERS)]
  const unknown = [...given.keys()].find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw new Error(`RELAY_URL has the parameter ${unknown}${place}; those there are: ${known.join(', ')}.`)
  }
  const starttls = given.get('starttls')
  if (starttls !== null && starttls !== 'required') {
    throw new Error(`RELAY_URL has starttls=${starttls}${place}; it can only be required, or left out.`)
  }
  const numberOf = (name: keyof typeof NUMBERS): number => {
    const { preset, most } = NUMBERS[name]
    const value = Number(given.get(name) ?? preset)
    if (Number.isInteger(value) && value >= 1 && value <= most) return value
    throw new Error(
      `RELAY_URL has ${name}=${given.get(name)}${place}; give a whole number from 1 to ${most}.`,
    )
  }
  return {
    tlsRequired: starttls !== null,
    weight: numberOf('weight'),
    priority: numberOf('priority'),
    connections: numberOf('connections'),
  }
}

/** Returns the name of a relay for logs and errors, `host:port`. */
export function nameOf({ host, port }: Relay): string {
  return `${host}:${port}`
}

/**
 * Returns whether the certificate must be valid: TLS that is required, or that protects a password, is verified;
 * STARTTLS that is merely offered accepts any certificate.
 */
export function mustVerify(relay: Relay): boolean {
  return relay.implicitTls || relay.tlsRequired || (relay.credentials !== null && !isLoopback(relay.host))
}

/** Returns whether a relay is on this machine, where nobody listens in. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
