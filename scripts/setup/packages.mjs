import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { findPostgres, isExecutable, projectDirectory } from '../services/layout.mjs'
import { describeError, runProgram } from './progress.mjs'

const NODE_24 = join(projectDirectory, 'node_modules', '.bin', 'node')
const MINUTES = 60_000

/** True when node_modules is what the lock file says; optional packages of other platforms are left out. */
export function arePackagesInstalled() {
  if (!isExecutable(NODE_24)) return false
  const wanted = readPackages(join(projectDirectory, 'package-lock.json'))
  const present = readPackages(join(projectDirectory, 'node_modules', '.package-lock.json'))
  if (!wanted || !present) return false
  const isSame = ([path, { version, integrity, optional }]) => {
    const found = present[path]
    return found ? found.version === version && found.integrity === integrity : optional === true
  }
  return (
    Object.entries(wanted).every(([path, entry]) => path === '' || isSame([path, entry])) &&
    Object.keys(present).every((path) => path in wanted)
  )
}

/** Installs what the lock file says, and Node 24 with it. */
export async function installPackages(report) {
  report('npm ci')
  const flags = ['--include=dev', '--include=optional', '--ignore-scripts=false', '--engine-strict=false']
  await npm(['ci', ...flags, '--no-audit', '--no-fund', '--loglevel=error'], 20 * MINUTES)
  if (await isNode24()) return
  report('Node 24')
  await npm(['rebuild', 'node', '--ignore-scripts=false', '--foreground-scripts'], 5 * MINUTES)
  if (await isNode24()) return
  throw new Error(
    'The npm package "node" did not bring Node 24: its install script did not run. Allow it (npm config set ignore-scripts false), delete node_modules and try again.',
  )
}

/** Makes sure that the embedded PostgreSQL starts on this machine. */
export async function checkPostgres(report) {
  report('PostgreSQL')
  const advice = 'Set DATABASE_URL to a PostgreSQL 16 or later of yours.'
  const directory = findPostgres()
  if (!directory) {
    throw new Error(`There is no embedded PostgreSQL for ${process.platform}-${process.arch}. ${advice}`)
  }
  const version = () => runProgram(join(directory, 'bin', 'postgres'), ['--version'], { timeoutMs: MINUTES })
  try {
    await version()
  } catch {
    // The links between its libraries are made by an install script, which may not have run.
    const script = join('scripts', 'hydrate-symlinks.js')
    await runProgram(NODE_24, [script], { cwd: join(directory, '..'), timeoutMs: MINUTES })
    await version().catch((error) => {
      throw new Error(`The embedded PostgreSQL does not run here: ${describeError(error)}\n${advice}`)
    })
  }
}

async function npm(parameters, timeoutMs) {
  // Under "npm run", this is the npm that runs us.
  const script = process.env.npm_execpath
  const isNpm = script !== undefined && /npm-cli\.c?js$/.test(script) && existsSync(script)
  const [command, ...first] = isNpm ? [process.execPath, script] : ['npm']
  try {
    await runProgram(command, [...first, ...parameters], { cwd: projectDirectory, timeoutMs })
  } catch (error) {
    if (error.code === 'ENOENT')
      throw new Error('npm is not here: install Node with npm (https://nodejs.org).', { cause: error })
    throw new Error(`npm ${parameters[0]} failed: ${describeError(error)}\nIs the npm registry reachable?`, {
      cause: error,
    })
  }
}

async function isNode24() {
  try {
    return /^v24\./m.test(await runProgram(NODE_24, ['--version'], { timeoutMs: MINUTES }))
  } catch {
    return false
  }
}

function readPackages(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages
  } catch {
    return undefined
  }
}
