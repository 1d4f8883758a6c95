import { createHash } from 'node:crypto'

type Environment = Record<string, string | undefined>

/** What a process runs with, read once from the environment; names and defaults stand in docs/configuration.md. */
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
  /** The relay that email leaves through, as `smtp://user:password@host:port`. */
  relayUrl: string
  /** Emails per second for each lane; 0 is unlimited. */
  laneRates: { transactional: number; bulk: number }
  logLevel: string
}

/** Reads and checks the environment; a missing or malformed variable is named. */
export function readConfig(env: Environment): Config {
  const mode = env['POSTLOOM_ENV'] === 'production' ? 'production' : 'development'
  const apiPort = integer(env, 'API_PORT', 3000)
  const host = env['POSTLOOM_HOST'] ?? '127.0.0.1'
  const secret =
    mode === 'production' ? required(env, 'POSTLOOM_SECRET') : (env['POSTLOOM_SECRET'] ?? 'development')
  const isPrivate = mode === 'development' && ['127.0.0.1', '::1', 'localhost'].includes(host)
  if (!isPrivate && secret.length < 32) {
    throw new Error(
      'POSTLOOM_SECRET is too short: give at least 32 random characters (openssl rand -hex 32).',
    )
  }
  return {
    env: mode,
    host,
    baseUrl: (env['POSTLOOM_BASE_URL'] ?? `http://${host}:${apiPort}`).replace(/\/+$/, ''),
    databaseUrl: required(env, 'DATABASE_URL'),
    temporal: {
      address: env['TEMPORAL_ADDRESS'] ?? '127.0.0.1:7233',
      namespace: env['TEMPORAL_NAMESPACE'] ?? 'default',
      taskQueue: env['TEMPORAL_TASK_QUEUE'] || 'postloom',
      apiKey: env['TEMPORAL_API_KEY'] || undefined,
      tls: env['TEMPORAL_TLS'] === 'true' || env['TEMPORAL_TLS'] === '1',
      uiUrl: env['TEMPORAL_UI_URL']?.replace(/\/+$/, '') || undefined,
    },
    ports: { api: apiPort, worker: integer(env, 'WORKER_PORT', 3001) },
    secret: createHash('sha256').update(secret).digest('hex'),
    relayUrl: env['RELAY_URL'] || `smtp://127.0.0.1:${integer(env, 'MAILBOX_SMTP_PORT', 1025)}`,
    laneRates: {
      transactional: integer(env, 'LANE_RATE_TRANSACTIONAL', 40),
      bulk: integer(env, 'LANE_RATE_BULK', 40),
    },
    logLevel: env['LOG_LEVEL'] ?? 'info',
  }
}

function required(env: Environment, name: string): string {
  const value = env[name]
  if (!value) throw new Error(`${name} is not set; see docs/configuration.md.`)
  return value
}

function integer(env: Environment, name: string, preset: number): number {
  const text = env[name]
  if (text === undefined || text === '') return preset
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0) {
    throw new Error(`${name} is ${JSON.stringify(text)}; give a whole number that is not negative.`)
  }
  return value
}
