import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** A tool that only some tests need, in the cache for all checkouts. */
export type CachedTool = {
  /** What it is called, with its release. */
  name: string
  /** What brings it, as a reason names it. */
  installer: string
  home: string
  /** Its program, as a path inside its home. */
  program: string
}

/** Where the program of a tool is; undefined where it is not installed. */
export function findInstalled({ home, program }: CachedTool): string | undefined {
  const file = join(home, program)
  return existsSync(file) ? file : undefined
}

/**
 * Installs a tool where it is not there, aside and renamed when it is whole, because two test runs may do so at once.
 * Answers why there is none where it cannot be had; what needs it is then not run.
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
    renameSync(making, tool.home)
    return null
  } catch (error) {
    // Whoever was first has put it there.
    if (findInstalled(tool) !== undefined) return null
    const lines = error instanceof Error ? error.message.trim().split('\n') : []
    return `${tool.name} could not be installed with ${tool.installer}: ${lines.at(-1) ?? 'no reason given'}`
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
}
