import { databaseCode, isDatabaseAway } from '../../src/catalogue/database-error.ts'
import { Failure } from '../../src/catalogue/failure.ts'
import type { Actor, Call } from '../../src/catalogue/tool.ts'
import { crossOrganization, unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { type Config, type Environment, readConfig } from '../../src/config.ts'
import { findOrganization, listOrganizations } from '../../src/domain/organizations/organizations.ts'
import { createServices, type Services } from '../../src/services.ts'
import { CommandFailure } from '../failure.ts'
import { installationEnvironment } from './development-service.ts'

/** The actor in the audit log of an organization. */
const OPERATOR: Actor = { kind: 'system', id: 'command line', name: 'Command line' }
const UNDEFINED_TABLE = '42P01'

/** Reads the configuration of the installation. Logging is off because it would mix with the output of a command. */
export function readInstallation(env: Environment): Config {
  try {
    return { ...readConfig(installationEnvironment(env)), logLevel: 'silent' }
  } catch (error) {
    if (error instanceof CommandFailure || !(error instanceof Error)) throw error
    throw new CommandFailure('CONFIGURATION', error.message, { cause: error })
  }
}

/** Runs `work` with the services of the installation and converts errors into `CommandFailure`. */
export async function withServices<Result>(
  env: Environment,
  work: (services: Services) => Promise<Result>,
): Promise<Result> {
  const config = readInstallation(env)
  const services = await createServices(config, 'command line', { poolSize: 2 })
  try {
    return await work(services)
  } catch (error) {
    throw asCommandFailure(error)
  } finally {
    await services.close()
  }
}

/** Runs `work` in one organization. `idOrSlug` may be omitted when there is only one. */
export async function withOrganization<Result>(
  env: Environment,
  idOrSlug: string | undefined,
  work: (call: Call) => Promise<Result>,
): Promise<Result> {
  return await withServices(env, async (services) => {
    const organizationId = await chooseOrganization(services, idOrSlug)
    return await inOrganization(services, organizationId, work)
  })
}

/** Runs one unit of work in an organization, given the internal id (uuid). */
export async function inOrganization<Result>(
  services: Services,
  organizationId: string,
  work: (call: Call) => Promise<Result>,
): Promise<Result> {
  return await unitOfWork(services, { organizationId, actor: OPERATOR }, work)
}

async function chooseOrganization(services: Services, idOrSlug: string | undefined): Promise<string> {
  const em = crossOrganization(services)
  if (idOrSlug !== undefined) return (await findOrganization(em, idOrSlug)).organizationId
  const all = await listOrganizations(em)
  const [only] = all
  if (only && all.length === 1) return (await findOrganization(em, only.slug)).organizationId
  throw new CommandFailure(
    'USAGE',
    only
      ? `Say which organization with --org: ${all.map(({ slug }) => slug).join(', ')}.`
      : 'There is no organization yet: make one with "postloom init".',
    { exitCode: only ? 2 : 1 },
  )
}

function asCommandFailure(error: unknown): unknown {
  if (error instanceof Failure) {
    const { code, message, details } = error
    return new CommandFailure(code, message, { body: { ...(details !== undefined && { details }) } })
  }
  if (databaseCode(error) === UNDEFINED_TABLE) {
    return new CommandFailure('NOT_SET_UP', 'The database has not all of its tables: run "postloom init".', {
      cause: error,
    })
  }
  if (isDatabaseAway(error)) {
    return new CommandFailure(
      'UNAVAILABLE',
      'The database cannot be reached: check DATABASE_URL, and whether it runs.',
      {
        cause: error,
      },
    )
  }
  return error
}
