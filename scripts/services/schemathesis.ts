import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { cacheDirectory } from './layout.mjs'

/** The release that is installed; another one finds other things. */
const VERSION = '4.32.5'
const INSTALL_MS = 600_000

const run = promisify(execFile)

/** The Python that has schemathesis, which a test run installed; undefined where there is none. */
export function findSchemathesis(): string | undefined {
  const python = pythonIn(home())
  return existsSync(python) ? python : undefined
}

/**
 * Makes a virtual environment with schemathesis in the cache, for all checkouts, when it is not there. Answers why there
 * is none where Python 3 is missing or the package cannot be had; what needs it is then not run.
 */
export async function installSchemathesis(): Promise<string | null> {
  if (findSchemathesis() !== undefined) return null
  mkdirSync(cacheDirectory(), { recursive: true })
  // Renamed when it is whole; two test runs may make it at once.
  const making = `${home()}.${process.pid}`
  try {
    await run('python3', ['-m', 'venv', making], { timeout: INSTALL_MS })
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `schemathesis==${VERSION}`]
    await run(pythonIn(making), pip, { timeout: INSTALL_MS })
    if (findSchemathesis() === undefined) renameSync(making, home())
    return null
  } catch (error) {
    const lines = error instanceof Error ? error.message.trim().split('\n') : []
    return `schemathesis ${VERSION} could not be installed with python3: ${lines.at(-1) ?? 'no reason given'}`
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
}

function home(): string {
  return join(cacheDirectory(), `schemathesis-${VERSION}`)
}

function pythonIn(directory: string): string {
  return join(directory, 'bin', 'python')
}
