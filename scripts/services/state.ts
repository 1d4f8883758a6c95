import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { projectDirectory } from './layout.mjs'
import { isProcess } from './leftovers.ts'

/** The content of `.postloom/dev.json`, by which `npm start` informs other programs. */
export type DevFile = {
  baseUrl: string
  apiToken: string
  adminKey: string
  temporal: { address: string; namespace: string; uiUrl: string }
  /** SMTP submission requires STARTTLS, with the API token as the password. */
  smtp: { host: string; port: number; inboundPort: number }
  mailbox: { url: string; smtpPort: number }
  /** For programs that bypass the API: the database, and the ports on which the processes report their health. */
  database: { url: string }
  health: { worker: number; smtp: number }
}

/** The directory of all data of a development service. Only its user can read it. */
export const stateDirectory = resolve(projectDirectory, process.env['POSTLOOM_STATE'] || '.postloom')

/** Locked by the process that runs the service. */
export const lockFile = join(stateDirectory, 'run.lock')

const devFile = join(stateDirectory, 'dev.json')
const ownerFile = join(stateDirectory, 'start.pid')
const IDENTITY = 'scripts/start.ts'

/** Creates the state directory with private permissions. */
export function openState(): void {
  mkdirSync(join(stateDirectory, 'logs'), { recursive: true, mode: 0o700 })
  chmodSync(stateDirectory, 0o700)
}

/** Returns the addresses and keys of the last start, whether the service runs or not. */
export function readDevFile(): DevFile | undefined {
  if (!existsSync(devFile)) return undefined
  // `writeDevFile` below writes the file; edits by hand are not checked.
  return JSON.parse(readFileSync(devFile, 'utf8')) as DevFile
}

/** Writes a file that only its owner can read, because it contains the token and the keys. */
export function writeDevFile(content: DevFile): void {
  writePrivately(devFile, `${JSON.stringify(content, undefined, 2)}\n`)
}

/** The process that runs the service of this checkout. `isReady` is true once dev.json has its addresses. */
export type Owner = {
  pid: number
  isReady: boolean
}

/** Records that this process runs the service, until `clearOwner`. If `parent` is given, it stops with that process. */
export function writeOwner(isReady: boolean, parent: number | undefined): void {
  writePrivately(ownerFile, `${process.pid}\n${isReady ? 'ready' : 'starting'}\n${parent ?? ''}\n`)
}

/** Called when a stop begins, so that a second start waits instead of reporting a running service. */
export function clearOwner(): void {
  rmSync(ownerFile, { force: true })
}

/** Returns the process that runs the service of this checkout; undefined if there is none or it is about to stop. */
export function readOwner(): Owner | undefined {
  if (!existsSync(ownerFile)) return undefined
  const [pid, state, parent] = readFileSync(ownerFile, 'utf8').split('\n')
  if (!isProcess(Number(pid), IDENTITY)) return undefined
  if (parent && !isProcess(Number(parent), '')) return undefined
  return { pid: Number(pid), isReady: state === 'ready' }
}

/**
 * Returns a secret that the first start creates: the key that signs links and hashes, or the one that encrypts stored
 * keys.
 */
export function developmentSecret(name: 'secret' | 'encryption-key'): string {
  const file = join(stateDirectory, name)
  if (!existsSync(file)) writePrivately(file, `${randomBytes(32).toString('hex')}\n`)
  return readFileSync(file, 'utf8').trim()
}

/** Writes a temporary file and renames it, so that readers never see a partial file. */
function writePrivately(file: string, content: string): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
