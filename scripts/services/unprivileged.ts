import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The user that runs PostgreSQL when we are root, because PostgreSQL refuses to run as root. */
export type SystemUser = {
  uid: number
  gid: number
}

/** Returns undefined unless this process is root; otherwise the user `postgres`, or `nobody` if that does not exist. */
export function databaseUser(): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined
  const user = findUser('postgres') ?? findUser('nobody')
  if (!user)
    throw new Error('PostgreSQL does not run as root, and there is no user "postgres" or "nobody" here')
  return user
}

function findUser(name: string): SystemUser | undefined {
  try {
    const id = (flag: string): number =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: 'pipe' }))
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    return undefined
  }
}

/**
 * Returns a directory from which the database user can run the binaries: the original, or a copy if a private directory
 * hides it.
 */
export function readableBinaries(directory: string, user: SystemUser | undefined, shared: string): string {
  if (!user || isOpenToAll(directory)) return directory
  const manifest = readFileSync(join(directory, '..', 'package.json'), 'utf8')
  // The file comes with the binaries, so its shape is known.
  const { version } = JSON.parse(manifest) as { version: string }
  const copy = join(shared, `postgresql-${version}`)
  if (existsSync(copy)) return copy
  const partial = `${copy}.${process.pid}`
  rmSync(partial, { recursive: true, force: true })
  mkdirSync(shared, { recursive: true, mode: 0o755 })
  cpSync(directory, partial, { recursive: true, verbatimSymlinks: true })
  try {
    renameSync(partial, copy)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    // Another start has made the copy in the meantime.
    if (!existsSync(copy)) throw error
  }
  return copy
}

/** Returns whether all users may enter the directory and every directory above it. */
function isOpenToAll(directory: string): boolean {
  if ((statSync(directory).mode & 0o001) === 0) return false
  const parent = dirname(directory)
  return parent === directory || isOpenToAll(parent)
}
