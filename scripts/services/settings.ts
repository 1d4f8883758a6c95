import { availableParallelism } from 'node:os'
import { join } from 'node:path'

import { hostOf, modeOf, reachableHost } from '../../src/config.ts'
import { choosePorts, type PortRequest } from './ports.ts'
import { developmentSecret, stateDirectory, type DevFile } from './state.ts'

type Environment = Record<string, string | undefined>

const LOOPBACK = '127.0.0.1'

/** The certificate of SMTP submission in development, created at the first start. */
export const developmentCertificate = {
  certFile: join(stateDirectory, 'smtp.crt'),
  keyFile: join(stateDirectory, 'smtp.key'),
}

/** The settings of one start: the environment of every process and the addresses to announce. */
export type Settings = {
  isDevelopment: boolean
  hasOwnTemporal: boolean
  databaseUrl: string | undefined
  /** The host in the URLs of the processes that are started. */
  host: string
  ports: Ports
  environment: Environment
  addresses: Omit<DevFile, 'apiToken' | 'adminKey' | 'database'>
}

type Ports = Record<
  | 'api'
  | 'worker'
  | 'smtp'
  | 'smtpInbound'
  | 'smtpHealth'
  | 'mailbox'
  | 'mailboxSmtp'
  | 'temporal'
  | 'temporalUi'
  | 'postgres',
  number
>

const NO_PORTS: Ports = {
  api: 0,
  worker: 0,
  smtp: 0,
  smtpInbound: 0,
  smtpHealth: 0,
  mailbox: 0,
  mailboxSmtp: 0,
  temporal: 0,
  temporalUi: 0,
  postgres: 0,
}

/** Reads the environment and chooses the ports. `say` is called for every default port that is taken. */
export async function readSettings(env: Environment, say: (line: string) => void): Promise<Settings> {
  const isDevelopment = modeOf(env) === 'development'
  const hasOwnTemporal = !env['TEMPORAL_ADDRESS']
  const host = hostOf(env)
  const needed = { isDevelopment, hasOwnTemporal, hasOwnDatabase: !env['DATABASE_URL'] }
  const ports = { ...NO_PORTS, ...(await choosePorts(portRequests(host, needed), env, say)) }
  const urlHost = reachableHost(host)
  const addresses = findAddresses(env, ports, { isDevelopment, hasOwnTemporal, host: urlHost })
  return {
    isDevelopment,
    hasOwnTemporal,
    databaseUrl: env['DATABASE_URL'] || undefined,
    host: urlHost,
    ports,
    addresses,
    environment: {
      ...env,
      POSTLOOM_ENV: isDevelopment ? 'development' : 'production',
      POSTLOOM_HOST: host,
      POSTLOOM_BASE_URL: addresses.baseUrl,
      POSTLOOM_API_URL: env['POSTLOOM_API_URL'] || `http://${urlHost}:${ports.api}`,
      POSTLOOM_SECRET: env['POSTLOOM_SECRET'] || (isDevelopment ? developmentSecret('secret') : undefined),
      POSTLOOM_ENCRYPTION_KEY:
        env['POSTLOOM_ENCRYPTION_KEY'] || (isDevelopment ? developmentSecret('encryption-key') : undefined),
      UV_THREADPOOL_SIZE: env['UV_THREADPOOL_SIZE'] || String(Math.max(4, availableParallelism())),
      API_PORT: String(ports.api),
      WORKER_PORT: String(ports.worker),
      SMTP_PORT: String(ports.smtp),
      SMTP_INBOUND_PORT: String(ports.smtpInbound),
      SMTP_HEALTH_PORT: String(ports.smtpHealth),
      SMTP_TLS_CERT: env['SMTP_TLS_CERT'] || (isDevelopment ? developmentCertificate.certFile : undefined),
      SMTP_TLS_KEY: env['SMTP_TLS_KEY'] || (isDevelopment ? developmentCertificate.keyFile : undefined),
      MAILBOX_PORT: String(ports.mailbox),
      MAILBOX_SMTP_PORT: String(ports.mailboxSmtp),
      MAILBOX_FILE: env['MAILBOX_FILE'] || join(stateDirectory, 'mailbox.sqlite'),
      POSTLOOM_OWN_TEMPORAL: hasOwnTemporal ? '1' : undefined,
      TEMPORAL_ADDRESS: addresses.temporal.address,
      TEMPORAL_NAMESPACE: addresses.temporal.namespace,
      TEMPORAL_UI_URL: addresses.temporal.uiUrl || undefined,
      RELAY_URL: env['RELAY_URL'] || (isDevelopment ? `smtp://${urlHost}:${ports.mailboxSmtp}` : undefined),
    },
  }
}

type Needed = {
  isDevelopment: boolean
  hasOwnTemporal: boolean
  hasOwnDatabase: boolean
}

/** Returns the ports that are needed; a PostgreSQL or Temporal that we do not start needs none. */
function portRequests(host: string, needed: Needed): Partial<Record<keyof Ports, PortRequest>> {
  return {
    api: { variable: 'API_PORT', standard: 3000, purpose: 'the API', host },
    worker: { variable: 'WORKER_PORT', standard: 3001, purpose: "the worker's health", host },
    smtp: { variable: 'SMTP_PORT', standard: 2587, purpose: 'SMTP submission', host },
    smtpInbound: {
      variable: 'SMTP_INBOUND_PORT',
      standard: 2525,
      purpose: 'bounces and complaints',
      host,
    },
    smtpHealth: {
      variable: 'SMTP_HEALTH_PORT',
      standard: 3002,
      purpose: "the SMTP door's health",
      host,
    },
    ...(needed.isDevelopment && {
      mailbox: { variable: 'MAILBOX_PORT', standard: 8025, purpose: 'the mailbox', host },
      mailboxSmtp: { variable: 'MAILBOX_SMTP_PORT', standard: 1025, purpose: "the mailbox's SMTP", host },
    }),
    ...(needed.hasOwnTemporal && {
      temporal: { variable: 'TEMPORAL_PORT', standard: 7233, purpose: 'Temporal', host: LOOPBACK },
      temporalUi: {
        variable: 'TEMPORAL_UI_PORT',
        standard: 8233,
        purpose: "Temporal's Web UI",
        host: LOOPBACK,
      },
    }),
    ...(needed.hasOwnDatabase && {
      postgres: { variable: 'POSTGRES_PORT', standard: 54_320, purpose: 'PostgreSQL', host: LOOPBACK },
    }),
  }
}

function findAddresses(
  env: Environment,
  ports: Ports,
  { isDevelopment, hasOwnTemporal, host }: Pick<Settings, 'isDevelopment' | 'hasOwnTemporal' | 'host'>,
): Settings['addresses'] {
  return {
    baseUrl: (env['POSTLOOM_BASE_URL'] || `http://${host}:${ports.api}`).replace(/\/$/, ''),
    temporal: {
      address: env['TEMPORAL_ADDRESS'] || `${LOOPBACK}:${ports.temporal}`,
      namespace: env['TEMPORAL_NAMESPACE'] || 'default',
      uiUrl: env['TEMPORAL_UI_URL'] || (hasOwnTemporal ? `http://${LOOPBACK}:${ports.temporalUi}` : ''),
    },
    // Without the brackets that IPv6 addresses have in URLs.
    smtp: { host: host.replaceAll(/[[\]]/g, ''), port: ports.smtp, inboundPort: ports.smtpInbound },
    mailbox: {
      url: isDevelopment ? `http://${host}:${ports.mailbox}` : '',
      smtpPort: isDevelopment ? ports.mailboxSmtp : 0,
    },
    health: { worker: ports.worker, smtp: ports.smtpHealth },
  }
}
