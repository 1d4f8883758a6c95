import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** A tool that only some tests need. It is cached for all checkouts. */
export type CachedTool = {
  /** Its name and release. */
  name: string
  /** The program that installs it, named in error messages. */
  installer: string
  home: string
  /** The path of its program, relative to `home`. */
  program: string
}

/** Returns the path of a tool's program, or undefined if it is not installed. */
export function findInstalled({ home, program }: CachedTool): string | undefined {
  const file = join(home, program)
  return existsSync(file) ? file : undefined
}

/**
 * Installs a tool unless it is there. It is installed into a temporary directory and then renamed, because two test
 * runs may do so at once. Returns null, or the reason why it could not be installed; tests that need it are then
 * skipped.
 */
export async function installOnce(
  tool: CachedTool,
  install: (directory: string) => Promise<void>,
): Promise<string | null> {
  if (findInstalled(tool) !== undefined) return null
  const making = `${tool.home}.${process.pid}`
  try {
    mkdirSync(making, { recursive: true })
    await install(making)
    // A directory without the program is damaged, and would refuse the new one.
    if (findInstalled(tool) === undefined) rmSync(tool.home, { recursive: true, force: true })
    renameSync(making, tool.home)
    return null
  } catch (error) {
    // Another process has installed it in the meantime.
    if (findInstalled(tool) !== undefined) return null
    const lines = error instanceof Error ? error.message.trim().split('\n') : []
    return `${tool.name} could not be installed with ${tool.installer}: ${lines.at(-1) ?? 'no reason given'}`
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
}
