import { readFileSync } from 'node:fs'

import { crossOrganization } from '../../src/catalogue/unit-of-work.ts'
import { type Config, type Environment, reachableHost } from '../../src/config.ts'
import { inspectDatabase, isReachable } from '../../src/database.ts'
import { nameOf, readRelays } from '../../src/delivery/relay.ts'
import { checkStoredKeys } from '../../src/domain/domains/keys.ts'
import type { Services } from '../../src/services.ts'
import { installationEnvironment } from './development-service.ts'
import {
  certificateFinding,
  type Finding,
  greetingFault,
  readinessFault,
  siteCertificate,
} from './reachable.ts'
import { readInstallation, withServices } from './services.ts'
import { examineTemporal } from './temporal.ts'

/** The oldest PostgreSQL release that has every function of the queries, such as `pg_input_is_valid`. */
const OLDEST_POSTGRES = 16
const SKEW_WARN_MS = 2_000
const SKEW_FAIL_MS = 60_000

/** Checks everything that an installation needs. Each finding has a status and, if needed, a repair. */
export async function examine(env: Environment): Promise<Finding[]> {
  let config: Config
  try {
    config = readInstallation(env)
  } catch (error) {
    return [
      { name: 'configuration', status: 'fail', ...told(error, 'docs/configuration.md names each variable.') },
    ]
  }
  const full = installationEnvironment(env)
  return await withServices(env, async (services) => {
    const checks = await Promise.all([
      examineDatabase(services),
      examineTemporal(config.temporal),
      examineDns(services),
      examineProcesses(config, full),
      examineCertificates(config, full),
    ])
    return [examineSecrets(config), ...examineProxies(config), ...checks.flat()]
  })
}

function examineSecrets({ env, baseUrl }: Config): Finding {
  if (env === 'development') {
    return { name: 'configuration', status: 'ok', detail: `development, at ${baseUrl}` }
  }
  return baseUrl.startsWith('https:')
    ? { name: 'configuration', status: 'ok', detail: `production, at ${baseUrl}` }
    : {
        name: 'configuration',
        status: 'warn',
        detail: `links in email begin with ${baseUrl}, without TLS`,
        repair: 'Put a proxy with a certificate in front and set POSTLOOM_BASE_URL to its https address.',
      }
}

/** The API itself has no TLS, so in production it is expected to be behind a proxy. */
function examineProxies({ env, trustedProxies }: Config): Finding[] {
  if (env === 'development') return []
  const name = 'proxies'
  if (trustedProxies.length > 0) return [{ name, status: 'ok', detail: trustedProxies.join(', ') }]
  return [
    {
      name,
      status: 'warn',
      detail: 'no proxy is trusted: behind one, all clients share its address and the limits of one address',
      repair: 'Set TRUSTED_PROXIES to the address of the proxy in front, as the API sees it.',
    },
  ]
}

async function examineDatabase(services: Services): Promise<Finding[]> {
  const em = crossOrganization(services)
  let asked = 0
  let found
  try {
    // Connects first, so that the time for connecting does not distort the comparison of clocks.
    await isReachable(em)
    asked = Date.now()
    found = await inspectDatabase(em)
  } catch (error) {
    return [
      {
        name: 'database',
        status: 'fail',
        ...told(error, 'Check DATABASE_URL, and whether PostgreSQL runs and lets this machine in.'),
      },
    ]
  }
  const { version, now, pending } = found
  const isOld = Number.parseInt(version, 10) < OLDEST_POSTGRES
  return [
    {
      name: 'database',
      status: isOld ? 'fail' : 'ok',
      detail: `PostgreSQL ${version}`,
      ...(isOld && { repair: `Use PostgreSQL ${OLDEST_POSTGRES} or later.` }),
    },
    skewFinding(now.getTime() - (asked + Date.now()) / 2),
    pending.length === 0
      ? { name: 'migrations', status: 'ok', detail: 'all are applied' }
      : {
          name: 'migrations',
          status: 'fail',
          detail: `missing: ${pending.join(', ')}`,
          repair: 'Run "postloom init", "node scripts/prepare.ts", or start the service anew.',
        },
    ...(pending.length === 0 ? [await examineKeys(services)] : []),
  ]
}

function skewFinding(milliseconds: number): Finding {
  const ahead = Math.abs(milliseconds)
  const detail = `the clock of the database and that of this machine differ by ${(ahead / 1_000).toFixed(1)} s`
  if (ahead < SKEW_WARN_MS) return { name: 'clock', status: 'ok', detail }
  const repair = 'Let both machines set their clocks by NTP: the database decides what is due.'
  return { name: 'clock', status: ahead < SKEW_FAIL_MS ? 'warn' : 'fail', detail, repair }
}

async function examineKeys(services: Services): Promise<Finding> {
  try {
    await checkStoredKeys(crossOrganization(services), services.config.encryptionKey)
    return { name: 'encryption key', status: 'ok', detail: 'it reads what is stored' }
  } catch (error) {
    const repair = 'Set POSTLOOM_ENCRYPTION_KEY to the one that was set when the keys were made.'
    return { name: 'encryption key', status: 'fail', ...told(error, repair) }
  }
}

/** Only domain verification uses name servers; without them, email is still sent. */
async function examineDns({ dns, config }: Services): Promise<Finding[]> {
  const answers = await dns.lookUp(config.dns.bounceHost, 'MX')
  return answers.map((answer) =>
    'fault' in answer
      ? {
          name: 'dns',
          status: config.dns.servers.length > 0 ? 'fail' : 'warn',
          detail: `${answer.server} does not answer (${answer.fault})`,
          repair:
            'Set DNS_SERVERS to name servers that this machine reaches, such as 9.9.9.9; without one, no domain can be verified.',
        }
      : { name: 'dns', status: 'ok', detail: `${answer.server} answers` },
  )
}

async function examineProcesses(config: Config, env: Environment): Promise<Finding[]> {
  const host = reachableHost(config.host)
  const smtpPort = env['SMTP_HEALTH_PORT'] || 3002
  const [api, worker, smtp, relays] = await Promise.all([
    readinessFault(`${config.baseUrl}/readyz`),
    readinessFault(`http://${host}:${config.ports.worker}/readyz`),
    readinessFault(`http://${host}:${smtpPort}/readyz`),
    examineRelays(config),
  ])
  const elsewhere = 'If it runs on another machine, this is as it should be; otherwise start it.'
  return [
    { name: 'api', ...judged(api, 'fail', 'Start it, or set POSTLOOM_BASE_URL to where it is reached.') },
    { name: 'worker', ...judged(worker, 'warn', elsewhere) },
    { name: 'smtp', ...judged(smtp, 'warn', elsewhere) },
    ...relays,
  ]
}

async function examineRelays({ relayUrl }: Config): Promise<Finding[]> {
  const repair = 'Check RELAY_URL: without a relay no mail leaves; it is kept and tried again for 24 hours.'
  try {
    const relays = readRelays(relayUrl)
    return await Promise.all(
      relays.map(async (relay) => ({
        name: relays.length === 1 ? 'relay' : `relay ${nameOf(relay)}`,
        ...judged(await greetingFault(relay.host, relay.port, relay.implicitTls), 'fail', repair),
      })),
    )
  } catch (error) {
    return [{ name: 'relay', status: 'fail', ...told(error, repair) }]
  }
}

async function examineCertificates({ baseUrl }: Config, env: Environment): Promise<Finding[]> {
  const site = new URL(baseUrl)
  const findings: Finding[] = []
  const file = env['SMTP_TLS_CERT']
  if (file) findings.push(certificateFinding('smtp certificate', () => readFileSync(file)))
  if (site.protocol === 'https:') findings.push(await siteCertificate(site))
  return findings
}

function judged(
  fault: string | null,
  status: 'warn' | 'fail',
  repair: string,
): Pick<Finding, 'status' | 'detail' | 'repair'> {
  return fault === null ? { status: 'ok', detail: 'it answers' } : { status, detail: fault, repair }
}

function told(error: unknown, repair: string): { detail: string; repair: string } {
  const { message, cause } = Object(error)
  const why: unknown = message || Object(cause).message || Object(error).code || 'it failed'
  return { detail: String(why).split('\n')[0] ?? '', repair }
}
