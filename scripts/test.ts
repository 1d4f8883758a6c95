import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { countOutcomes } from './services/ava-report.ts'
import type { Counts } from './services/ava-report.ts'
import { projectDirectory } from './services/layout.mjs'
import { isProcess, stopLeftover } from './services/leftovers.ts'
import { startPostgres } from './services/postgres.ts'
import { startTemporal } from './services/temporal.ts'

interface Stoppable {
  stop(): Promise<void>
}

const USAGE = `node scripts/test.ts [ava arguments]

  node scripts/test.ts                                  every test
  node scripts/test.ts test/mailbox.test.ts             one file
  node scripts/test.ts test/x.test.ts --match '*once*'  some of its tests

DATABASE_URL_ADMIN and TEMPORAL_ADDRESS, where set, are used in place of own servers.`

const DIRECTORY_PREFIX = 'postloom-test-'

const started: Stoppable[] = []
const directory = makeDirectory()

process.exitCode = await main()

/**
 * Runs the tests: one PostgreSQL and one in-memory Temporal for the whole run, then ava with the arguments
 * given. `node scripts/test.ts test/mailbox.test.ts` runs one file. The last line is the count.
 */
async function main(): Promise<number> {
  const parameters = process.argv.slice(2)
  if (parameters.includes('--help')) {
    console.log(USAGE)
    rmSync(directory, { recursive: true, force: true })
    return 0
  }
  // ava gets the terminal's Ctrl-C as well and ends; then we clean up.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  let counts: Counts = { passed: 0, failed: 1, skipped: 0 }
  try {
    await clearAbandonedRuns()
    const environment = await startServices()
    counts = await runAva(parameters, environment)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
  }
  await Promise.allSettled(started.map((service) => service.stop()))
  rmSync(directory, { recursive: true, force: true })
  const skipped = counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''
  console.log(`${counts.passed} passed, ${counts.failed} failed${skipped}`)
  return counts.failed > 0 ? 1 : 0
}

/** The run's own directory; those of runs that were killed are cleared away. */
function makeDirectory(): string {
  const made = mkdtempSync(join(tmpdir(), DIRECTORY_PREFIX))
  // PostgreSQL as another user must reach its data below.
  chmodSync(made, 0o711)
  writeFileSync(join(made, 'owner.pid'), String(process.pid))
  return made
}

async function clearAbandonedRuns(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(DIRECTORY_PREFIX)) continue
    const abandoned = join(tmpdir(), name)
    try {
      if (isProcess(Number(readFileSync(join(abandoned, 'owner.pid'), 'utf8')), 'scripts/test.ts')) continue
      await stopLeftover(join(abandoned, 'temporal.pid'), 'SIGKILL', 0)
      await stopLeftover(join(abandoned, 'postgres', 'postgres.pid'), 'SIGKILL', 0)
      rmSync(abandoned, { recursive: true, force: true })
    } catch {
      // Being made just now, or another user's.
    }
  }
}

async function startServices(): Promise<Record<string, string | undefined>> {
  const [database, temporal] = await Promise.all([databaseUrl(), temporalAddress()])
  return {
    ...process.env,
    POSTLOOM_TEST_DIRECTORY: directory,
    DATABASE_URL_ADMIN: database,
    TEMPORAL_ADDRESS: temporal,
    TEMPORAL_NAMESPACE: process.env['TEMPORAL_NAMESPACE'] ?? 'default',
    // A test never touches a database it did not make.
    DATABASE_URL: undefined,
    ...(process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}),
  }
}

async function databaseUrl(): Promise<string> {
  if (process.env['DATABASE_URL_ADMIN']) return process.env['DATABASE_URL_ADMIN']
  const postgres = await startPostgres({
    directory: join(directory, 'postgres'),
    dataParent: directory,
    logFile: join(directory, 'postgres.log'),
    durable: false,
  })
  started.push(postgres)
  return postgres.url
}

async function temporalAddress(): Promise<string> {
  if (process.env['TEMPORAL_ADDRESS']) return process.env['TEMPORAL_ADDRESS']
  const temporal = await startTemporal({
    pidFile: join(directory, 'temporal.pid'),
    logFile: join(directory, 'temporal.log'),
  })
  started.push(temporal)
  return temporal.address
}

async function runAva(parameters: readonly string[], environment: NodeJS.ProcessEnv): Promise<Counts> {
  const entry = join(projectDirectory, 'node_modules', 'ava', 'entrypoints', 'cli.js')
  const ava = spawn(process.execPath, [entry, ...parameters], {
    cwd: projectDirectory,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  ava.stdout.on('data', (chunk: Buffer) => {
    process.stdout.write(chunk)
    output = (output + chunk.toString()).slice(-20_000_000)
  })
  const code = await new Promise<number | null>((resolve) => ava.once('close', resolve))
  return countOutcomes(stripVTControlCharacters(output), code)
}
