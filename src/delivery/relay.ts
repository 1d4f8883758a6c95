/** Where a relay is and how it is spoken to, from `smtp(s)://user:password@host:port?starttls=required&weight=2`. */
export type Relay = {
  host: string
  port: number
  /** TLS from the first byte. */
  implicitTls: boolean
  /** No email without STARTTLS, and the certificate must be right. */
  tlsRequired: boolean
  credentials: { user: string; password: string } | null
  /** Relays of a higher number are only used while none of a lower one can be. */
  priority: number
  /** Its part of the email among relays of its priority. */
  weight: number
  /** The most connections that one process keeps to it. */
  connections: number
}

/** Postfix takes 50 from one client, and another worker may send from here too. */
const CONNECTIONS = 20

/** The parameters that are numbers: what they are unless given, and the most. */
const NUMBERS = {
  weight: { preset: 1, most: 1_000 },
  priority: { preset: 1, most: 100 },
  connections: { preset: CONNECTIONS, most: 1_000 },
} as const

const FORM = 'give smtp://host:port or smtps://user:password@host:port'

/** Reads RELAY_URL: one relay or several, with spaces or commas between. Errors say what is wrong, never a password. */
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

/** How a relay is called in logs and errors. */
export function nameOf({ host, port }: Relay): string {
  return `${host}:${port}`
}

/** Encryption that is merely offered is taken from anybody; what is demanded, or carries a password, is verified. */
export function mustVerify(relay: Relay): boolean {
  return relay.implicitTls || relay.tlsRequired || (relay.credentials !== null && !isLoopback(relay.host))
}

/** Whether a relay is on this machine, where nobody listens in. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}
