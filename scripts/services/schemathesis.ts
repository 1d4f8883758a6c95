import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { type CachedTool, findInstalled, installOnce } from './install-once.ts'
import { cacheDirectory } from './layout.mjs'

/** The release that is installed; another one finds other things. */
const VERSION = '4.32.5'
const INSTALL_MS = 600_000
const PYTHON = 'bin/python'

const run = promisify(execFile)

/** The Python that has schemathesis, which a test run installed; undefined where there is none. */
export function findSchemathesis(): string | undefined {
  return findInstalled(schemathesis())
}

/**
 * Makes a virtual environment with schemathesis in the cache when it is not there. Answers why there is none where
 * Python 3 is missing or the package cannot be had.
 */
export async function installSchemathesis(): Promise<string | null> {
  return await installOnce(schemathesis(), async (directory) => {
    await run('python3', ['-m', 'venv', directory], { timeout: INSTALL_MS })
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', `schemathesis==${VERSION}`]
    await run(join(directory, PYTHON), pip, { timeout: INSTALL_MS })
  })
}

function schemathesis(): CachedTool {
  return {
    name: `schemathesis ${VERSION}`,
    installer: 'python3',
    home: join(cacheDirectory(), `schemathesis-${VERSION}`),
    program: PYTHON,
  }
}
