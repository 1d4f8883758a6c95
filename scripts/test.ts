import { spawn } from 'node:child_process'
import { basename, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

import { countOutcomes, type Counts, readCrashes } from './services/ava-report.ts'
import { installInspector } from './services/inspector.ts'
import { projectDirectory } from './services/layout.mjs'
import { type RunServices, startRunServices } from './services/run-services.ts'
import { installSchemathesis } from './services/schemathesis.ts'

const USAGE = `node scripts/test.ts [ava arguments]

  node scripts/test.ts                                  every test
  node scripts/test.ts test/mailbox.test.ts             one file
  node scripts/test.ts test/x.test.ts --match '*once*'  some of its tests

DATABASE_URL_ADMIN and TEMPORAL_ADDRESS, where set, are used in place of own servers.`

/**
 * Tools that only some test files need are installed first. Where that fails, those tests are skipped and the rest
 * runs.
 */
const TOOLS = [
  { files: ['openapi-fuzz'], install: installSchemathesis },
  { files: ['mcp', 'oauth'], install: installInspector },
]

process.exitCode = await main()

/**
 * Runs the tests: starts one PostgreSQL and one in-memory Temporal, then ava with the given arguments. `node
 * scripts/test.ts test/mailbox.test.ts` runs one file. The last line of the output has the counts.
 */
async function main(): Promise<number> {
  const parameters = process.argv.slice(2)
  if (parameters.includes('--help')) {
    console.log(USAGE)
    return 0
  }
  // ava gets the terminal's Ctrl-C too and ends; this process goes on to clean up.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  let counts: Counts = { passed: 0, failed: 1, skipped: 0 }
  let services: RunServices | undefined
  try {
    await bringTools(parameters)
    services = await startRunServices('scripts/test.ts', { durable: false })
    const colours = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
    counts = await runAva(parameters, { ...process.env, ...services.environment, ...colours })
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
  }
  await services?.stop()
  if (counts.skipped > 0) console.log(`${counts.skipped} skipped`)
  console.log(`${counts.passed} passed, ${counts.failed} failed`)
  return counts.failed > 0 ? 1 : 0
}

async function bringTools(parameters: readonly string[]): Promise<void> {
  const asked = parameters.filter((parameter) => parameter.endsWith('.test.ts'))
  for (const { files, install } of TOOLS) {
    if (asked.length > 0 && !asked.some((file) => files.includes(basename(file, '.test.ts')))) continue
    const absent = await install()
    if (absent !== null) console.log(absent)
  }
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
  const report = stripVTControlCharacters(output)
  for (const crash of readCrashes(report)) console.log(`\n${crash}`)
  return countOutcomes(report, code)
}
