import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import pg from 'pg'

import { signalQuietly, startChild, type Child } from './child.ts'
import { findPostgres } from './layout.mjs'
import { isProcess, processesIn, stopProcess } from './leftovers.ts'
import { tail } from './log-file.ts'
import { freePort } from './ports.ts'
import { databaseUser, readableBinaries } from './unprivileged.ts'

const run = promisify(execFile)

const USER = 'postloom'
const DATABASE = 'postloom'
/** Files that root shares with the database user. That user cannot enter a private home directory. */
const SHARED_DIRECTORY = '/var/lib/postloom'

/** `directory` is private and records where the data is. Port 0, or none, means any free port. */
export type PostgresOptions = {
  directory: string
  logFile: string
  port?: number
  /** False disables fsync and similar settings for speed, for tests that never crash the machine. */
  durable?: boolean
  maxConnections?: number
  /** How long a stop may take, in ms, before the server is killed. A kill loses no committed data either. */
  graceMs?: number
  /**
   * The parent of the data directory if root starts the server, because the database user must own and reach the data.
   */
  dataParent?: string
}

/** A running server. `url` connects the superuser to the database `postloom`. */
export type Postgres = Child & {
  url: string
  port: number
  dataDirectory: string
}

type Cluster = {
  dataDirectory: string
  password: string
}

/** Starts the embedded PostgreSQL. The first start creates its data directory. */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const native = findPostgres()
  if (!native) {
    throw new Error(
      `No embedded PostgreSQL for ${process.platform}-${process.arch}: run "npm run setup", or set DATABASE_URL to a PostgreSQL 16 or later`,
    )
  }
  const user = databaseUser()
  const binaries = readableBinaries(native, user, SHARED_DIRECTORY)
  const cluster = await openCluster(options, binaries, user)
  await clearLeftover(cluster.dataDirectory)

  const attempts = options.port ? 1 : 3
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port || (await freePort())
    try {
      return await startServer(options, cluster, binaries, user, port)
    } catch (error) {
      // Another program may have taken the free port in the meantime.
      if (attempt >= attempts) throw error
    }
  }
}

type User = ReturnType<typeof databaseUser>

async function startServer(
  options: PostgresOptions,
  cluster: Cluster,
  binaries: string,
  user: User,
  port: number,
): Promise<Postgres> {
  const { dataDirectory, password } = cluster
  const child = await startChild({
    command: join(binaries, 'bin', 'postgres'),
    arguments: ['-D', dataDirectory, '-p', String(port), ...settings(options)],
    identity: dataDirectory,
    pidFile: join(options.directory, 'postgres.pid'),
    output: options.logFile,
    environment: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' },
    // SIGINT is PostgreSQL's fast shutdown: it rolls back open transactions and does not wait for clients.
    stopSignal: 'SIGINT',
    graceMs: options.graceMs ?? 5_000,
    user,
  })
  const url = `postgres://${USER}:${password}@127.0.0.1:${port}/${DATABASE}`
  try {
    await waitUntilReady(url, child)
  } catch (error) {
    await child.stop()
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`PostgreSQL did not start: ${reason}\n${tail(options.logFile, 8)}`, { cause: error })
  }
  return { ...child, url, port, dataDirectory }
}

function settings({ durable = true, maxConnections = 200 }: PostgresOptions): string[] {
  const values: Record<string, string | number> = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: maxConnections,
    shared_buffers: '256MB',
    max_wal_size: '2GB',
    // Query plans of a new database are poor until it has statistics, so autovacuum collects them within seconds.
    autovacuum_naptime: '5s',
    // Error details and statements contain email addresses, which must not appear in logs.
    log_error_verbosity: 'terse',
    log_min_error_statement: 'panic',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(durable ? {} : { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off' }),
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

async function openCluster(options: PostgresOptions, binaries: string, user: User): Promise<Cluster> {
  const record = join(options.directory, 'cluster.json')
  if (existsSync(record)) {
    // This function writes the file below.
    const { password, ...stored } = JSON.parse(readFileSync(record, 'utf8')) as Cluster
    const dataDirectory = resolve(options.directory, stored.dataDirectory)
    if (existsSync(dataDirectory)) return { dataDirectory, password }
    throw new Error(
      `The PostgreSQL data named in ${record} is gone (${dataDirectory}); bring it back, or delete that file to start empty`,
    )
  }
  mkdirSync(options.directory, { recursive: true, mode: 0o700 })
  const parent = options.dataParent ?? SHARED_DIRECTORY
  const home = user ? join(parent, randomBytes(6).toString('hex')) : options.directory
  const cluster = { dataDirectory: join(home, 'data'), password: randomBytes(18).toString('hex') }
  if (user) {
    mkdirSync(parent, { recursive: true, mode: 0o755 })
    mkdirSync(home, { mode: 0o700 })
    chownSync(home, user.uid, user.gid)
  }
  await createCluster(cluster, home, binaries, user)
  // A path relative to `directory` still works after the checkout is moved.
  const stored = { ...cluster, dataDirectory: user ? cluster.dataDirectory : 'data' }
  writeFileSync(`${record}.new`, `${JSON.stringify(stored)}\n`, { mode: 0o600 })
  renameSync(`${record}.new`, record)
  return cluster
}

/**
 * Creates the cluster in a temporary directory and renames it, so that an interrupted start leaves no incomplete
 * cluster.
 */
async function createCluster(cluster: Cluster, home: string, binaries: string, user: User): Promise<void> {
  const partial = join(home, 'data.partial')
  const passwordFile = join(home, 'password')
  rmSync(partial, { recursive: true, force: true })
  rmSync(cluster.dataDirectory, { recursive: true, force: true })
  writeFileSync(passwordFile, cluster.password, { mode: 0o600 })
  if (user) chownSync(passwordFile, user.uid, user.gid)
  try {
    await run(
      join(binaries, 'bin', 'initdb'),
      [
        `--pgdata=${partial}`,
        `--username=${USER}`,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        // The same sort order and case rules on every machine.
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--no-sync',
      ],
      { cwd: '/', env: { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' }, ...user },
    )
  } finally {
    rmSync(passwordFile, { force: true })
  }
  renameSync(partial, cluster.dataDirectory)
}

/** Stops a server that an earlier run left on this data directory, so that two servers never use it. */
async function clearLeftover(dataDirectory: string): Promise<void> {
  const lockFile = join(dataDirectory, 'postmaster.pid')
  if (!existsSync(lockFile)) return
  const pid = Number(readFileSync(lockFile, 'utf8').split('\n')[0])
  if (isProcess(pid, dataDirectory)) await stopProcess(pid, dataDirectory, 'SIGINT', 10_000)
  await endBackends(dataDirectory)
  // No process uses the data now. PostgreSQL would still refuse to start if any process had the id in this file, such
  // as an unrelated program with a reused id, or a zombie.
  rmSync(lockFile, { force: true })
}

/**
 * Waits until the backends of a killed server have ended, and kills them after three seconds: busy ones notice late.
 * They are found by their working directory, which is the data directory.
 */
async function endBackends(dataDirectory: string): Promise<void> {
  const deadline = Date.now() + 3_000
  for (;;) {
    const backends = processesIn(dataDirectory)
    if (backends.length === 0) return
    if (Date.now() > deadline) for (const pid of backends) signalQuietly(pid, 'SIGKILL')
    await sleep(50)
  }
}

async function waitUntilReady(url: string, child: Child): Promise<void> {
  let ended: string | undefined
  void child.exited.then((reason) => {
    ended = reason
  })
  const deadline = Date.now() + 60_000
  const server = new URL(url)
  server.pathname = '/postgres'
  for (;;) {
    try {
      await ensureDatabase(server.href)
      return
    } catch (error) {
      if (ended !== undefined) throw new Error(ended, { cause: error })
      if (Date.now() > deadline) throw error
    }
    await sleep(50)
  }
}

async function ensureDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE])
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`)
  } finally {
    await client.end()
  }
}
