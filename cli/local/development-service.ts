import { developmentCertificate } from '../../scripts/services/settings.ts'
import { type DevFile, developmentSecret, readDevFile } from '../../scripts/services/state.ts'
import { reachableHost } from '../../src/config.ts'
import { CommandFailure } from '../failure.ts'

type Environment = Record<string, string | undefined>

/** Returns what this checkout's service (`npm start`) recorded at its last start. */
export function developmentService(): DevFile | undefined {
  return readDevFile()
}

/**
 * Returns the environment of the installation's processes: `env` if it has DATABASE_URL, else the settings of this
 * checkout's service. Throws `NO_INSTALLATION` when there is neither.
 */
export function installationEnvironment(env: Environment): Environment {
  if (env['DATABASE_URL']) return env
  const service = readDevFile()
  if (!service?.database) {
    throw new CommandFailure(
      'NO_INSTALLATION',
      'Which installation is meant is not known: set DATABASE_URL and the other variables of its processes (docs/configuration.md), or run "npm start" in this checkout.',
    )
  }
  const { baseUrl, database, temporal, smtp, mailbox, health } = service
  return {
    POSTLOOM_SECRET: developmentSecret('secret'),
    POSTLOOM_ENCRYPTION_KEY: developmentSecret('encryption-key'),
    SMTP_TLS_CERT: developmentCertificate.certFile,
    SMTP_TLS_KEY: developmentCertificate.keyFile,
    ...env,
    DATABASE_URL: database.url,
    POSTLOOM_BASE_URL: baseUrl,
    POSTLOOM_HOST: smtp.host,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    TEMPORAL_UI_URL: temporal.uiUrl || undefined,
    RELAY_URL: env['RELAY_URL'] || `smtp://${reachableHost(smtp.host)}:${mailbox.smtpPort}`,
    API_PORT: new URL(baseUrl).port,
    WORKER_PORT: String(health.worker),
    SMTP_PORT: String(smtp.port),
    SMTP_INBOUND_PORT: String(smtp.inboundPort),
    SMTP_HEALTH_PORT: String(health.smtp),
  }
}
