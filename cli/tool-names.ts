import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { ToolDescription } from '@postloom/sdk'

import { cacheDirectory, type Environment } from './settings.ts'

/** Returns the cached names of a service's tools, so that completion needs no network; undefined without a cache. */
export function readToolNames(env: Environment, baseUrl: string): string[] | undefined {
  try {
    const names: unknown = JSON.parse(readFileSync(cacheFile(env, baseUrl), 'utf8'))
    return Array.isArray(names) ? names.map(String) : undefined
  } catch {
    return undefined
  }
}

/** Caches the names of the tools. A cache that cannot be written is ignored. */
export function keepToolNames(env: Environment, baseUrl: string, tools: readonly ToolDescription[]): void {
  try {
    mkdirSync(cacheDirectory(env), { recursive: true })
    writeFileSync(cacheFile(env, baseUrl), JSON.stringify(tools.map(({ name }) => name)))
  } catch {
    return
  }
}

function cacheFile(env: Environment, baseUrl: string): string {
  const key = createHash('sha256').update(baseUrl).digest('hex').slice(0, 16)
  return join(cacheDirectory(env), `tools-${key}.json`)
}
