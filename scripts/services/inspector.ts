import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { cacheDirectory } from './layout.mjs'

/** The release that is installed; another one prints other things. */
const VERSION = '2.12.0'
const INSTALL_MS = 600_000

const run = promisify(execFile)

/** The program of the MCP Inspector, which a test run installed; undefined where there is none. */
export function findInspector(): string | undefined {
  const program = programIn(home())
  return existsSync(program) ? program : undefined
}

/**
 * Puts the MCP Inspector into the cache, for all checkouts, when it is not there: with what it needs it is larger than
 * all that Postloom runs on. Answers why there is none where it cannot be had; what needs it is then not run.
 */
export async function installInspector(): Promise<string | null> {
  if (findInspector() !== undefined) return null
  // Renamed when it is whole; two test runs may make it at once.
  const making = `${home()}.${process.pid}`
  try {
    mkdirSync(making, { recursive: true })
    const npm = ['install', '--prefix', making, '--no-audit', '--no-fund', '--ignore-scripts']
    await run('npm', [...npm, `@modelcontextprotocol/inspector@${VERSION}`], { timeout: INSTALL_MS })
    if (findInspector() === undefined) renameSync(making, home())
    return null
  } catch (error) {
    const lines = error instanceof Error ? error.message.trim().split('\n') : []
    return `the MCP Inspector ${VERSION} could not be installed with npm: ${lines.at(-1) ?? 'no reason given'}`
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
}

function home(): string {
  return join(cacheDirectory(), `mcp-inspector-${VERSION}`)
}

function programIn(directory: string): string {
  return join(directory, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')
}
