import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import { projectDirectory } from './layout.mjs'
import { isProcess } from './leftovers.ts'

/** What `npm start` tells other programs, in `.postloom/dev.json`. */
export type DevFile = {
  baseUrl: string
  apiToken: string
  adminKey: string
  temporal: { address: string; namespace: string; uiUrl: string }
  /** SMTP submission: STARTTLS, and the API token as the password. */
  smtp: { host: string; port: number; inboundPort: number }
  mailbox: { url: string; smtpPort: number }
  /** For what works beside the API: its database, and where each process tells how it is. */
  database: { url: string }
  health: { worker: number; smtp: number }
}

/** Everything a development service keeps, private to its user. */
export const stateDirectory = resolve(projectDirectory, process.env['POSTLOOM_STATE'] || '.postloom')

/** Held by the process that runs the service. */
export const lockFile = join(stateDirectory, 'run.lock')

const devFile = join(stateDirectory, 'dev.json')
const ownerFile = join(stateDirectory, 'start.pid')
const IDENTITY = 'scripts/start.ts'

/** Makes the state directory as private as it must be. */
export function openState(): void {
  mkdirSync(join(stateDirectory, 'logs'), { recursive: true, mode: 0o700 })
  chmodSync(stateDirectory, 0o700)
}

/** The last addresses and keys, whether a service runs or not. */
export function readDevFile(): DevFile | undefined {
  if (!existsSync(devFile)) return undefined
  // Written by writeDevFile below; somebody who edits it has only himself to blame.
  return JSON.parse(readFileSync(devFile, 'utf8')) as DevFile
}

/** Readable by its owner alone: it has the token and the keys. */
export function writeDevFile(content: DevFile): void {
  writePrivately(devFile, `${JSON.stringify(content, undefined, 2)}\n`)
}

/** The service of this checkout that runs now; `isReady` once its addresses are those of dev.json. */
export type Owner = {
  pid: number
  isReady: boolean
}

/** Says that this process runs the service here, until `clearOwner`. It stops by itself with `parent`. */
export function writeOwner(isReady: boolean, parent: number | undefined): void {
  writePrivately(ownerFile, `${process.pid}\n${isReady ? 'ready' : 'starting'}\n${parent ?? ''}\n`)
}

/** Called when the stop begins: whoever waits for us then knows that it need not wait long. */
export function clearOwner(): void {
  rmSync(ownerFile, { force: true })
}

/** Which process runs the service of this checkout, if one does and is not about to stop. */
export function readOwner(): Owner | undefined {
  if (!existsSync(ownerFile)) return undefined
  const [pid, state, parent] = readFileSync(ownerFile, 'utf8').split('\n')
  if (!isProcess(Number(pid), IDENTITY)) return undefined
  if (parent && !isProcess(Number(parent), '')) return undefined
  return { pid: Number(pid), isReady: state === 'ready' }
}

/** A secret that is made at the first start: what signs links and hashes, and what encrypts stored keys. */
export function developmentSecret(name: 'secret' | 'encryption-key'): string {
  const file = join(stateDirectory, name)
  if (!existsSync(file)) writePrivately(file, `${randomBytes(32).toString('hex')}\n`)
  return readFileSync(file, 'utf8').trim()
}

/** Written aside and renamed: a reader sees the old or the new, never half. */
function writePrivately(file: string, content: string): void {
  writeFileSync(`${file}.new`, content, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}
