import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { type CachedTool, findInstalled, installOnce } from './install-once.ts'
import { cacheDirectory } from './layout.mjs'

/** Pinned, because another release may find other problems. */
const VERSION = '4.32.5'
const INSTALL_MS = 600_000
const PYTHON = 'bin/python'

const run = promisify(execFile)

/** Returns the Python in which schemathesis is installed, or undefined if there is none. */
export function findSchemathesis(): string | undefined {
  return findInstalled(schemathesis())
}

/**
 * Creates a virtual environment with schemathesis in the cache unless it is there. Returns null, or the reason why it
 * could not be installed, such as a missing Python 3.
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
