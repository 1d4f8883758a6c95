import { developmentCertificate } from '../../scripts/services/settings.ts'
import { type DevFile, developmentSecret, readDevFile } from '../../scripts/services/state.ts'
import { CommandFailure } from '../failure.ts'

type Environment = Record<string, string | undefined>

/** What the service of this checkout (`npm start`) said of itself when it last started. */
export function developmentService(): DevFile | undefined {
  return readDevFile()
}

/**
 * The environment that the processes of the installation run with: what is set, and where no database is, that of the
 * service of this checkout.
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
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    TEMPORAL_UI_URL: temporal.uiUrl || undefined,
    RELAY_URL: env['RELAY_URL'] || `smtp://127.0.0.1:${mailbox.smtpPort}`,
    API_PORT: new URL(baseUrl).port,
    WORKER_PORT: String(health.worker),
    SMTP_PORT: String(smtp.port),
    SMTP_INBOUND_PORT: String(smtp.inboundPort),
    SMTP_HEALTH_PORT: String(health.smtp),
  }
}
