import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { isProcess, stopLeftover } from './leftovers.ts'
import { startPostgres } from './postgres.ts'
import { startTemporal } from './temporal.ts'

/** The servers of one run of tests or experiments. `stop` ends them and deletes their directory. */
export type RunServices = {
  /** The variables through which test helpers find the servers. */
  environment: Record<string, string | undefined>
  stop(): Promise<void>
}

const DIRECTORY_PREFIX = 'postloom-run-'

/**
 * Starts one PostgreSQL and one in-memory Temporal for a run. `owner` is a text in the command line of the calling
 * script; it identifies servers that such scripts left behind when they were killed, which are stopped.
 * DATABASE_URL_ADMIN and TEMPORAL_ADDRESS replace the servers if set. The started Temporal has its Web UI on `uiPort`
 * (0: no Web UI).
 */
export async function startRunServices(
  owner: string,
  { durable, uiPort = 0 }: { durable: boolean; uiPort?: number },
): Promise<RunServices> {
  const directory = makeDirectory(owner)
  const started: { stop(): Promise<void> }[] = []
  async function stop(): Promise<void> {
    await Promise.allSettled(started.map((service) => service.stop()))
    rmSync(directory, { recursive: true, force: true })
  }

  async function databaseUrl(): Promise<string> {
    if (process.env['DATABASE_URL_ADMIN']) return process.env['DATABASE_URL_ADMIN']
    const postgres = await startPostgres({
      directory: join(directory, 'postgres'),
      dataParent: directory,
      logFile: join(directory, 'postgres.log'),
      durable,
    })
    started.push(postgres)
    return postgres.url
  }

  async function temporalAddress(): Promise<string> {
    if (process.env['TEMPORAL_ADDRESS']) return process.env['TEMPORAL_ADDRESS']
    const temporal = await startTemporal({
      pidFile: join(directory, 'temporal.pid'),
      logFile: join(directory, 'temporal.log'),
      uiPort,
    })
    started.push(temporal)
    return temporal.address
  }

  await clearAbandonedRuns()
  const starting = [databaseUrl(), temporalAddress()] as const
  try {
    const [database, temporal] = await Promise.all(starting)
    return {
      environment: {
        POSTLOOM_TEST_DIRECTORY: directory,
        DATABASE_URL_ADMIN: database,
        TEMPORAL_ADDRESS: temporal,
        TEMPORAL_NAMESPACE: process.env['TEMPORAL_NAMESPACE'] ?? 'default',
        // Tests must never touch a database that they did not create.
        DATABASE_URL: undefined,
      },
      stop,
    }
  } catch (error) {
    await Promise.allSettled(starting)
    await stop()
    throw error
  }
}

/** Creates the directory of the run and records its owner in it. */
function makeDirectory(owner: string): string {
  const made = mkdtempSync(join(tmpdir(), DIRECTORY_PREFIX))
  // PostgreSQL, which may run as another user, must reach its data below.
  chmodSync(made, 0o711)
  writeFileSync(join(made, 'owner.pid'), `${process.pid} ${owner}`)
  return made
}

async function clearAbandonedRuns(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(DIRECTORY_PREFIX)) continue
    const abandoned = join(tmpdir(), name)
    try {
      const [pid, owner = ''] = readFileSync(join(abandoned, 'owner.pid'), 'utf8').split(' ')
      if (isProcess(Number(pid), owner)) continue
      await stopLeftover(join(abandoned, 'temporal.pid'), 'SIGKILL', 0)
      await stopLeftover(join(abandoned, 'postgres', 'postgres.pid'), 'SIGKILL', 0)
      rmSync(abandoned, { recursive: true, force: true })
    } catch {
      // The directory is still being created, or it belongs to another user.
    }
  }
}
