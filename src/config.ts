import { createHash, createHmac } from 'node:crypto'
import { isIP, isIPv6 } from 'node:net'

export type Environment = Record<string, string | undefined>

/** The configuration of a process, read once from the environment; docs/configuration.md has the names and defaults. */
export type Config = {
  env: 'development' | 'production'
  host: string
  /** The public address that links in email and answers point to, without a trailing slash. */
  baseUrl: string
  databaseUrl: string
  temporal: {
    address: string
    namespace: string
    /** The prefix of the task queues; installations that share a namespace have their own. */
    taskQueue: string
    apiKey: string | undefined
    tls: boolean
    uiUrl: string | undefined
  }
  ports: { api: number; worker: number }
  /** Signs the tokens in links; every process of one installation shares it. */
  secret: string
  /** Encrypts stored secrets, such as DKIM keys: 32 bytes, the same for every process. */
  encryptionKey: Buffer
  /** Authenticates our own processes to each other; see readInternalSecret. */
  internalSecret: string
  /** The relays that email is sent through: one or several, such as `smtp://user:password@host:port`. */
  relayUrl: string
  /** Emails per second for each lane; 0 is unlimited. */
  laneRates: { transactional: number; bulk: number }
  /** Proxies whose X-Forwarded-For is believed: addresses or CIDR ranges. */
  trustedProxies: string[]
  /** `address:port` pairs that web requests may reach although they are not public; none in production. */
  webAllowPrivate: readonly string[]
  dns: {
    /**
     * Name servers that are asked whether a domain is set up, as `address` or `address:port`; if empty, those of the
     * machine.
     */
    servers: string[]
    /** The host that bounces are sent to: the MX of every return path. */
    bounceHost: string
    /** The mechanisms that an SPF record must contain, so that receivers accept our mail from the relay. */
    spfMechanisms: string[]
    region: string
  }
  logLevel: string
}

/** Reads and checks the environment. Throws an error that names a missing or malformed variable. */
export function readConfig(env: Environment): Config {
  const mode = modeOf(env)
  const host = hostOf(env)
  const mailboxPort = integer(env, 'MAILBOX_SMTP_PORT', 1025)
  return {
    env: mode,
    host,
    baseUrl: readBaseUrl(env),
    databaseUrl: required(env, 'DATABASE_URL'),
    temporal: {
      address: env['TEMPORAL_ADDRESS'] || '127.0.0.1:7233',
      namespace: env['TEMPORAL_NAMESPACE'] || 'default',
      taskQueue: env['TEMPORAL_TASK_QUEUE'] || 'postloom',
      apiKey: env['TEMPORAL_API_KEY'] || undefined,
      tls: ['true', '1'].includes(oneOf(env, 'TEMPORAL_TLS', 'false', ['true', '1', 'false', '0'])),
      uiUrl: env['TEMPORAL_UI_URL']?.replace(/\/+$/, '') || undefined,
    },
    ports: { api: apiPortOf(env), worker: integer(env, 'WORKER_PORT', 3001) },
    secret: readSecret(env),
    encryptionKey: createHash('sha256').update(secretOf(env, 'POSTLOOM_ENCRYPTION_KEY')).digest(),
    internalSecret: readInternalSecret(env),
    relayUrl: env['RELAY_URL'] || `smtp://${reachableHost(host)}:${mailboxPort}`,
    laneRates: {
      transactional: integer(env, 'LANE_RATE_TRANSACTIONAL', 40),
      bulk: integer(env, 'LANE_RATE_BULK', 40),
    },
    trustedProxies: addressRanges(env, 'TRUSTED_PROXIES'),
    webAllowPrivate: readPrivateAddresses(env['WEB_ALLOW_PRIVATE'] ?? '', mode),
    dns: readDns(env),
    logLevel: readLogLevel(env),
  }
}

/** Returns the secret that signs the tokens in links and return paths. */
export function readSecret(env: Environment): string {
  return createHash('sha256').update(secretOf(env, 'POSTLOOM_SECRET')).digest('hex')
}

/**
 * Returns the secret by which the API recognizes our SMTP process. It is derived from POSTLOOM_SECRET, so that
 * operators have to keep only one.
 */
export function readInternalSecret(env: Environment): string {
  return createHmac('sha256', secretOf(env, 'POSTLOOM_SECRET')).update('internal').digest('hex')
}

/** Returns the mode of the installation; throws for any other word, which would otherwise mean development. */
export function modeOf(env: Environment): Config['env'] {
  return oneOf(env, 'POSTLOOM_ENV', 'development', ['development', 'production'])
}

/** Returns the lowest level that is logged. Throws when the logger does not know it. */
export function readLogLevel(env: Environment): string {
  return oneOf(env, 'LOG_LEVEL', 'info', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
}

/** Returns the address that a process listens on. */
export function hostOf(env: Environment): string {
  return env['POSTLOOM_HOST'] || '127.0.0.1'
}

/**
 * Returns the public address of the API without a trailing slash; if none is set, the one on this machine. Throws when
 * it is not an http or https address.
 */
export function readBaseUrl(env: Environment): string {
  const address = env['POSTLOOM_BASE_URL'] || ownApiUrl(env)
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? '')) {
    throw new Error(
      `POSTLOOM_BASE_URL is ${JSON.stringify(address)}; give an address such as https://mail.example.org.`,
    )
  }
  return address.replace(/\/+$/, '')
}

/** Returns the address at which processes on this machine reach its API. */
export function ownApiUrl(env: Environment): string {
  return `http://${reachableHost(hostOf(env))}:${apiPortOf(env)}`
}

function apiPortOf(env: Environment): number {
  return integer(env, 'API_PORT', 3000)
}

/**
 * Returns the host in URLs by which this machine reaches a process that listens on `host`: POSTLOOM_HOST may be one
 * address, on which 127.0.0.1 does not answer, or the wildcard of all addresses.
 */
export function reachableHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return isIPv6(host) ? `[${host}]` : host
}

/**
 * Returns a secret of at least 32 characters; throws when it is shorter. In development, on a host that only this
 * machine can reach, any secret or none will do.
 */
function secretOf(env: Environment, name: string): string {
  const mode = modeOf(env)
  const isPrivate = mode === 'development' && ['127.0.0.1', '::1', 'localhost'].includes(hostOf(env))
  const secret = mode === 'production' ? required(env, name) : env[name] || 'development'
  if (isPrivate || secret.length >= 32) return secret
  throw new Error(`${name} is too short: give at least 32 random characters (openssl rand -hex 32).`)
}

function readDns(env: Environment): Config['dns'] {
  const servers = listOf(env, 'DNS_SERVERS')
  const wrong = servers.find((server) => !isServer(server))
  if (wrong !== undefined) {
    throw new Error(`DNS_SERVERS has ${JSON.stringify(wrong)}; give addresses such as 9.9.9.9 or [::1]:53.`)
  }
  const publicHost = new URL(readBaseUrl(env)).hostname
  const hasName = isIP(publicHost) === 0 && publicHost.includes('.')
  // Without a public host name, a reserved name that leads nowhere (RFC 2606).
  const bounceHost = (env['BOUNCE_HOST'] || (hasName ? publicHost : 'mail.postloom.test')).toLowerCase()
  const spfMechanisms = listOf(env, 'SPF_MECHANISMS')
  return {
    servers,
    bounceHost,
    spfMechanisms: spfMechanisms.length > 0 ? spfMechanisms : [`a:${bounceHost}`],
    region: env['SENDING_REGION'] || 'local',
  }
}

function isServer(server: string): boolean {
  const [, bracketed, plain, port] =
    /^(?:\[([^\]]+)\]|([^:]+|[^[\]]*:[^[\]]*:[^[\]]*))(?::(\d{1,5}))?$/.exec(server) ?? []
  return isIP(bracketed ?? plain ?? '') !== 0 && Number(port ?? 53) < 65_536
}

/** Returns the members of a variable, which commas or spaces separate. */
function listOf(env: Environment, name: string): string[] {
  return (env[name] ?? '').split(/[\s,]+/).filter(Boolean)
}

function readPrivateAddresses(text: string, mode: Config['env']): string[] {
  const addresses = text.split(',').flatMap((address) => address.trim() || [])
  if (addresses.length > 0 && mode === 'production') {
    throw new Error('WEB_ALLOW_PRIVATE is for development and tests; remove it, or users reach your network.')
  }
  return addresses
}

/** Returns a variable that must be set; throws when it is not. */
export function required(env: Environment, name: string): string {
  const value = env[name]
  if (!value) throw new Error(`${name} is not set; see docs/configuration.md.`)
  return value
}

/** Returns a variable that is one of `choices`, or `preset` when it is unset; throws for anything else. */
function oneOf<Choice extends string>(
  env: Environment,
  name: string,
  preset: NoInfer<Choice>,
  choices: readonly Choice[],
): Choice {
  const text = env[name] || preset
  const choice = choices.find((each) => each === text)
  if (choice !== undefined) return choice
  throw new Error(`${name} is ${JSON.stringify(text)}; give one of ${choices.join(', ')}.`)
}

function addressRanges(env: Environment, name: string): string[] {
  const ranges = (env[name] ?? '')
    .split(',')
    .map((range) => range.trim())
    .filter(Boolean)
  for (const range of ranges) {
    const [address = '', bits, ...rest] = range.split('/')
    const most = isIP(address) === 6 ? 128 : 32
    const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= most)
    if (isIP(address) === 0 || !isRange || rest.length > 0) {
      throw new Error(
        `${name} has ${JSON.stringify(range)}; give addresses or CIDR ranges, such as 10.0.0.0/8.`,
      )
    }
  }
  return ranges
}

/** Returns a whole number that is not negative, or `preset` when the variable is unset; throws for anything else. */
export function integer(env: Environment, name: string, preset: number): number {
  const text = env[name]
  if (text === undefined || text === '') return preset
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0) {
    throw new Error(`${name} is ${JSON.stringify(text)}; give a whole number that is not negative.`)
  }
  return value
}
