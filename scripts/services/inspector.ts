import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { type CachedTool, findInstalled, installOnce } from './install-once.ts'
import { cacheDirectory } from './layout.mjs'

/** The release that is installed; another one prints other things. */
const VERSION = '2.12.0'
const INSTALL_MS = 600_000

const run = promisify(execFile)

/** The program of the MCP Inspector, which a test run installed; undefined where there is none. */
export function findInspector(): string | undefined {
  return findInstalled(inspector())
}

/**
 * Puts the MCP Inspector into the cache when it is not there: with what it needs it is larger than all that Postloom
 * runs on. Answers why there is none where it cannot be had.
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
