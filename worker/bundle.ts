import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WORKFLOWS = join(ROOT, 'temporal', 'workflows', 'index.ts')
const CACHE = join(ROOT, 'node_modules', '.cache', 'postloom')

let bundling: Promise<{ code: string }> | undefined

/**
 * Returns the workflows as one script for the isolated world in which Temporal runs them. It is built once for each
 * state of temporal/ and each SDK, then read from node_modules/.cache. Throws on a warning about a module that
 * workflows must not use.
 */
export function workflowBundle(): Promise<{ code: string }> {
  // All workers of a process share one bundle.
  bundling ??= bundle().catch((error: unknown) => {
    bundling = undefined
    throw error
  })
  return bundling
}

async function bundle(): Promise<{ code: string }> {
  const file = join(CACHE, `workflows-${await fingerprint()}.js`)
  const cached = await readFile(file, 'utf8').catch(() => null)
  if (cached !== null) return { code: cached }
  const warnings: string[] = []
  const logger = new DefaultLogger('WARN', ({ message }) => warnings.push(message))
  const { code } = await bundleWorkflowCode({ workflowsPath: WORKFLOWS, logger })
  if (warnings.length > 0) throw new Error(`the workflows do not bundle cleanly: ${warnings.join('\n')}`)
  await keep(file, code)
  return { code }
}

/**
 * Writes the bundle to a temporary file and renames it, so that no process reads half of it. Failing to write does no
 * harm.
 */
async function keep(file: string, code: string): Promise<void> {
  try {
    await mkdir(CACHE, { recursive: true })
    const draft = `${file}.${process.pid}`
    await writeFile(draft, code)
    await rename(draft, file)
  } catch {
    // A read-only installation bundles at every start.
  }
}

async function fingerprint(): Promise<string> {
  const hash = createHash('sha256')
  const folder = join(ROOT, 'temporal')
  const names = await readdir(folder, { recursive: true })
  for (const name of names.filter((each) => each.endsWith('.ts')).toSorted()) {
    hash.update(name).update(await readFile(join(folder, name)))
  }
  const sdk: unknown = createRequire(import.meta.url)('@temporalio/worker/package.json')
  return hash.update(JSON.stringify(sdk)).digest('hex').slice(0, 20)
}
