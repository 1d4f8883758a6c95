import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { type CachedTool, findInstalled, installOnce } from './install-once.ts'
import { cacheDirectory } from './layout.mjs'

/** Pinned, because tests read the program's output, which changes between releases. */
const VERSION = '2.12.0'
const INSTALL_MS = 600_000

const run = promisify(execFile)

/** Returns the path of the installed MCP Inspector, or undefined if there is none. */
export function findInspector(): string | undefined {
  return findInstalled(inspector())
}

/**
 * Installs the MCP Inspector into the cache unless it is there. It is not a dependency because, with its own
 * dependencies, it is larger than all of Postloom's. Returns null, or the reason why it could not be installed.
 */
export async function installInspector(): Promise<string | null> {
  return await installOnce(inspector(), async (directory) => {
    const npm = ['install', '--prefix', directory, '--no-audit', '--no-fund', '--ignore-scripts']
    await run('npm', [...npm, `@modelcontextprotocol/inspector@${VERSION}`], { timeout: INSTALL_MS })
  })
}

function inspector(): CachedTool {
  return {
    name: `the MCP Inspector ${VERSION}`,
    installer: 'npm',
    home: join(cacheDirectory(), `mcp-inspector-${VERSION}`),
    program: 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
  }
}
