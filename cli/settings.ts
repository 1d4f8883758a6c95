import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

import { CommandFailure } from './failure.ts'
import { developmentService } from './installation.ts'

/** The environment variables of the command. */
export type Environment = Record<string, string | undefined>

/** The service and the token to use, and where they were found. */
export type Connection = { baseUrl: string; token: string; source: 'environment' | 'login' | 'checkout' }

/** The content of a stored login. */
export type Login = { baseUrl: string; token: string }

/** The address of a service started by `npm start`. */
export const STANDARD_URL = 'http://127.0.0.1:3000'

/**
 * Returns the connection from POSTLOOM_API_KEY and POSTLOOM_BASE_URL, else from the stored login, else from the service
 * of this checkout. Throws `NOT_LOGGED_IN` when there is no token.
 */
export async function findConnection(env: Environment): Promise<Connection> {
  const baseUrl = env['POSTLOOM_BASE_URL'] && readBaseUrl(env['POSTLOOM_BASE_URL'], 'POSTLOOM_BASE_URL')
  const token = env['POSTLOOM_API_KEY']
  if (token) {
    const known = baseUrl || readLogin(env)?.baseUrl || (await developmentService())?.baseUrl
    return { baseUrl: known ?? STANDARD_URL, token, source: 'environment' }
  }
  const login = readLogin(env)
  // A token is only ever sent to the service for which it was stored.
  if (login && (!baseUrl || baseUrl === login.baseUrl)) return { ...login, source: 'login' }
  const own = await developmentService()
  if (own?.apiToken && (!baseUrl || baseUrl === own.baseUrl)) {
    return { baseUrl: own.baseUrl, token: own.apiToken, source: 'checkout' }
  }
  throw new CommandFailure(
    'NOT_LOGGED_IN',
    `There is no token${baseUrl ? ` for ${baseUrl}` : ''}: run "postloom login", or set POSTLOOM_API_KEY and POSTLOOM_BASE_URL.`,
  )
}

/**
 * Returns a base URL without trailing slashes. Throws `USAGE` if it is not an http or https URL, or has credentials.
 */
export function readBaseUrl(text: string, name: string): string {
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.password) {
    throw new CommandFailure('USAGE', `${name} is not an address such as ${STANDARD_URL}.`, { exitCode: 2 })
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** Returns the stored login, or undefined without one. Throws `BAD_LOGIN` when the file is not a login. */
export function readLogin(env: Environment): Login | undefined {
  const file = loginFile(env)
  if (!existsSync(file)) return undefined
  try {
    const { baseUrl, token }: Record<string, unknown> = Object(JSON.parse(readFileSync(file, 'utf8')))
    if (typeof baseUrl === 'string' && typeof token === 'string') return { baseUrl, token }
  } catch {
    // Reported below, like a file with the wrong content.
  }
  throw new CommandFailure('BAD_LOGIN', `${file} cannot be read as a login: run "postloom login" again.`)
}

/** Stores a login so that only its owner can read it, and returns the path of the file. */
export function writeLogin(env: Environment, login: Login): string {
  const file = loginFile(env)
  mkdirSync(configDirectory(env), { recursive: true, mode: 0o700 })
  const aside = `${file}.${process.pid}`
  rmSync(aside, { force: true })
  writeFileSync(aside, `${JSON.stringify(login, undefined, 2)}\n`, { mode: 0o600 })
  chmodSync(aside, 0o600)
  renameSync(aside, file)
  return file
}

/** Deletes the stored login. Returns whether there was one. */
export function removeLogin(env: Environment): boolean {
  const file = loginFile(env)
  if (!existsSync(file)) return false
  rmSync(file)
  return true
}

/** Returns the directory for data that can be fetched again, such as the names of tools. */
export function cacheDirectory(env: Environment): string {
  return join(env['XDG_CACHE_HOME'] || join(env['HOME'] || homedir(), '.cache'), 'postloom')
}

function configDirectory(env: Environment): string {
  return join(env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config'), 'postloom')
}

function loginFile(env: Environment): string {
  return join(configDirectory(env), 'login.json')
}
