import { databaseCode, isDatabaseAway } from '../src/catalogue/database-error.ts'
import { readConfig } from '../src/config.ts'
import { migrate, openDatabase } from '../src/database.ts'
import { seedDevelopment } from '../src/development.ts'
import { checkStoredKeys } from '../src/domain/domains/keys.ts'
import { createTemporalConnection } from '../src/ports/temporal-connection.ts'
import { prepareNamespace } from './services/temporal-namespace.ts'

/**
 * Migrates the database, prepares an external Temporal namespace and, in development, creates the first organization.
 * It is safe to repeat, and to run in several processes at once. The last line of its output is `{apiToken, adminKey}`
 * as JSON; both are empty in production.
 * POSTLOOM_API_TOKEN and POSTLOOM_ADMIN_KEY pass in the keys of an earlier run, which are kept while they are valid.
 */
const environment = process.env
const config = readConfig(environment)
const CONNECT_MS = 20_000

if (!environment['POSTLOOM_OWN_TEMPORAL']) await prepareTemporal()
await migrateDatabase()

const keys =
  config.env === 'development'
    ? await seedDevelopment(config, {
        apiToken: environment['POSTLOOM_API_TOKEN'] || undefined,
        adminKey: environment['POSTLOOM_ADMIN_KEY'] || undefined,
      })
    : { apiToken: '', adminKey: '' }
await checkKeys()
console.log(JSON.stringify(keys))

async function migrateDatabase(): Promise<void> {
  try {
    await migrate(config)
  } catch (error) {
    const cause = error instanceof Error ? error.message : ''
    // SQLSTATE classes 28 and 3D: PostgreSQL refused the user, the password or the name of the database.
    if (!isDatabaseAway(error) && !/^(28|3D)/.test(databaseCode(error) ?? '')) throw error
    refuse(`The database of DATABASE_URL cannot be used: ${cause}.`)
  }
}

/** Ends with a message for the person who set up the environment, who needs no stack. */
function refuse(message: string): never {
  console.error(message)
  process.exit(1)
}

async function checkKeys(): Promise<void> {
  const orm = await openDatabase(config.databaseUrl, { poolSize: 1, applicationName: 'postloom prepare' })
  try {
    await checkStoredKeys(orm.em.fork(), config.encryptionKey)
  } finally {
    await orm.close()
  }
}

async function prepareTemporal(): Promise<void> {
  const { address, namespace } = config.temporal
  const connection = createTemporalConnection(config.temporal, CONNECT_MS)
  await connection
    .ensureConnected()
    .catch(({ message }: Error) =>
      refuse(`Temporal at TEMPORAL_ADDRESS (${address}) cannot be reached: ${message}.`),
    )
  const { missingAttributes } = await prepareNamespace(connection, namespace)
  if (missingAttributes.length > 0) {
    console.error(
      `Temporal does not let us register ${missingAttributes.join(', ')}: runs start without them.`,
    )
  }
  await connection.close()
}
