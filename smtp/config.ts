import { isIP } from 'node:net'
import { hostname } from 'node:os'

import {
  type Environment,
  hostOf,
  integer,
  ownApiUrl,
  readBaseUrl,
  readInternalSecret,
  readLogLevel,
  readSecret,
  required,
} from '../src/config.ts'
import type { CertificateFiles } from './certificate.ts'

/** The configuration of the SMTP process; docs/configuration.md has the names and defaults. */
export type SmtpConfig = {
  host: string
  /** The name in the greeting. The certificate should be for this name. */
  name: string
  ports: { submission: number; inbound: number; health: number }
  /** Signs return paths and the tokens in links. */
  secret: string
  certificate: CertificateFiles
  /** Addresses of load balancers, which speak the PROXY protocol. */
  proxies: string[]
  api: { url: string; host: string; internalSecret: string }
  logLevel: string
}

/** Reads and checks the environment. Throws an error that names a missing or malformed variable. */
export function readSmtpConfig(env: Environment): SmtpConfig {
  return {
    host: hostOf(env),
    name: env['SMTP_HOST_NAME'] || hostname(),
    ports: {
      submission: integer(env, 'SMTP_PORT', 2587),
      inbound: integer(env, 'SMTP_INBOUND_PORT', 2525),
      health: integer(env, 'SMTP_HEALTH_PORT', 3002),
    },
    secret: readSecret(env),
    certificate: { certFile: required(env, 'SMTP_TLS_CERT'), keyFile: required(env, 'SMTP_TLS_KEY') },
    proxies: readProxies(env),
    api: {
      url: env['POSTLOOM_API_URL'] || ownApiUrl(env),
      host: new URL(readBaseUrl(env)).host,
      internalSecret: readInternalSecret(env),
    },
    logLevel: readLogLevel(env),
  }
}

function readProxies(env: Environment): string[] {
  const proxies = (env['SMTP_PROXIES'] ?? '').split(/[\s,]+/).filter(Boolean)
  const wrong = proxies.find((proxy) => isIP(proxy) === 0)
  if (wrong === undefined) return proxies
  throw new Error(`SMTP_PROXIES has ${JSON.stringify(wrong)}; give addresses, such as 10.0.0.7, 10.0.0.8.`)
}
