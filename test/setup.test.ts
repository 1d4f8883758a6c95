import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { Client, Connection } from '@temporalio/client'
import test, { type ExecutionContext } from 'ava'
import pg from 'pg'

import { openBrowser } from '../scripts/browser.ts'
import { countOutcomes, readCrashes } from '../scripts/services/ava-report.ts'
import { startChild, type Child } from '../scripts/services/child.ts'
import { findInstalled, installOnce } from '../scripts/services/install-once.ts'
import { projectDirectory, temporalVersion } from '../scripts/services/layout.mjs'
import { isProcess, stopLeftover } from '../scripts/services/leftovers.ts'
import { choosePorts, freePort } from '../scripts/services/ports.ts'
import { takeLock } from '../scripts/services/run-lock.ts'
import { supervise } from '../scripts/services/supervisor.ts'
import { prepareNamespace } from '../scripts/services/temporal-namespace.ts'
import { eventually } from './helpers/eventually.ts'
import { scratchDirectory, services, startOwnPostgres, startOwnTemporal } from './helpers/services.ts'

const serviceScripts = join(projectDirectory, 'scripts', 'services')

/** Returns the arguments of a program that says `up` and waits until it is ended, with `mark` in its command line. */
function idle(mark: string): string[] {
  const program =
    'process.on("SIGTERM", () => process.exit(0)); console.log("up"); setInterval(() => 0, 1000)'
  return ['-e', program, mark]
}

/** Runs a service under a separate parent process, which prints the service's process id. */
async function startUnderParent(
  t: ExecutionContext,
  mark: string,
): Promise<{ parent: ChildProcess; pid: number }> {
  const directory = scratchDirectory()
  const options = {
    command: process.execPath,
    arguments: idle(mark),
    identity: mark,
    pidFile: join(directory, 'service.pid'),
    output: join(directory, 'service.log'),
  }
  const script = join(directory, 'parent.ts')
  writeFileSync(
    script,
    `import { startChild } from ${JSON.stringify(join(serviceScripts, 'child.ts'))}
     process.on('SIGINT', () => console.log('parent got SIGINT'))
     const child = await startChild(${JSON.stringify(options)})
     console.log(child.pid)
     await child.exited`,
  )
  const parent = spawn(process.execPath, [script], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => parent.kill('SIGKILL'))
  const printed = new Promise<string>((resolve) =>
    parent.stdout.once('data', (chunk) => resolve(String(chunk))),
  )
  return { parent, pid: Number(await printed) }
}

async function startIdle(t: ExecutionContext, directory: string, mark: string): Promise<Child> {
  const child = await startChild({
    command: process.execPath,
    arguments: idle(mark),
    identity: mark,
    pidFile: join(directory, 'service.pid'),
    output: join(directory, 'service.log'),
    graceMs: 30_000,
  })
  t.teardown(() => child.stop())
  await untilUp(directory)
  return child
}

async function untilUp(directory: string): Promise<void> {
  await eventually('the service to be up', () =>
    readFileSync(join(directory, 'service.log'), 'utf8').includes('up'),
  )
}

test('a service ends when its parent is killed', async (t) => {
  const { parent, pid } = await startUnderParent(t, 'mark-orphan')
  t.true(isProcess(pid, 'mark-orphan'))
  parent.kill('SIGKILL')
  await eventually('the service to end with its parent', () => !isProcess(pid, 'mark-orphan'))
  t.pass()
})

test('a Ctrl-C at the terminal reaches the parent, not its services', async (t) => {
  const { parent, pid } = await startUnderParent(t, 'mark-ctrl-c')
  const heard = new Promise<string>((resolve) =>
    parent.stdout?.once('data', (chunk) => resolve(String(chunk))),
  )
  // Ctrl-C in a terminal signals the whole foreground process group.
  process.kill(-(parent.pid ?? Number.NaN), 'SIGINT')
  t.regex(await heard, /parent got SIGINT/)
  t.true(isProcess(pid, 'mark-ctrl-c'))
})

test('a stop lets the service end by itself, and kills one that does not', async (t) => {
  const willing = await startIdle(t, scratchDirectory(), 'mark-willing')
  await willing.stop()
  t.is(await willing.exited, 'exit code 0')

  const directory = scratchDirectory()
  const stubborn = await startChild({
    command: process.execPath,
    arguments: [
      '-e',
      'process.on("SIGTERM", () => 0); console.log("up"); setInterval(() => 0, 1000)',
      'mark-stubborn',
    ],
    identity: 'mark-stubborn',
    pidFile: join(directory, 'service.pid'),
    output: join(directory, 'service.log'),
    graceMs: 300,
  })
  await untilUp(directory)
  await stubborn.stop()
  t.is(await stubborn.exited, 'SIGKILL')
  t.false(existsSync(join(directory, 'service.pid')))
})

test('what outlived its watchdog is stopped before the same service starts again', async (t) => {
  const directory = scratchDirectory()
  const { parent, pid } = await startUnderParent(t, 'mark-leftover')
  writeFileSync(join(directory, 'service.pid'), `${pid}\nmark-leftover\n`)
  const next = await startIdle(t, directory, 'mark-leftover')
  t.not(next.pid, pid)
  t.false(isProcess(pid, 'mark-leftover'))
  parent.kill('SIGKILL')
})

test('a program that only has the number of a leftover is left alone', async (t) => {
  const directory = scratchDirectory()
  const child = await startIdle(t, directory, 'mark-bystander')
  const pidFile = join(directory, 'other.pid')
  writeFileSync(pidFile, `${child.pid}\nsome-other-service\n`)
  t.false(await stopLeftover(pidFile, 'SIGTERM', 100))
  t.true(isProcess(child.pid, 'mark-bystander'))
})

test('a part that ends is started again, and given up when it keeps ending', async (t) => {
  let starts = 0
  const lines: string[] = []
  const givenUp = new Promise<string>((resolve) => {
    const start = async (): Promise<Child> => {
      starts += 1
      return {
        pid: 0,
        exited: Promise.resolve('exit code 3'),
        stop: async () => undefined,
        kill: () => undefined,
      }
    }
    const reporter = { say: (line: string) => lines.push(line), givenUp: resolve }
    void supervise({ name: 'part', start }, reporter, [1, 2])
  })
  t.is(await givenUp, 'part keeps ending (exit code 3)')
  t.is(starts, 3)
  t.is(lines[0], 'part ended (exit code 3); starting it again in 0.001 s')
})

test('a part that is slow to start and never gets ready is given up, too', async (t) => {
  let starts = 0
  const givenUp = new Promise<string>((resolve) => {
    const start = async (): Promise<Child> => {
      starts += 1
      if (starts > 1) {
        // Longer than the half second below, after which a part counts as healthy.
        await sleep(600)
        throw new Error('part is not ready')
      }
      return {
        pid: 0,
        exited: Promise.resolve('exit code 3'),
        stop: async () => undefined,
        kill: () => undefined,
      }
    }
    const reporter = { say: () => starts > 5 && resolve('never'), givenUp: resolve }
    void supervise({ name: 'part', start }, reporter, [1, 2], 500)
  })
  t.is(await givenUp, 'part keeps ending (part is not ready)')
  t.is(starts, 3)
})

test('a part is not started again once it is being stopped', async (t) => {
  const directory = scratchDirectory()
  let starts = 0
  const part = await supervise(
    {
      name: 'part',
      start: () => {
        starts += 1
        return startIdle(t, directory, 'mark-supervised')
      },
    },
    { say: () => undefined, givenUp: (reason) => t.fail(reason) },
  )
  await part.stop()
  t.is(starts, 1)
})

async function occupy(): Promise<{ port: number; server: Server }> {
  const server = createServer()
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { port, server }
}

test('a standard port that is taken moves on and says so; a configured one is refused', async (t) => {
  const { port, server } = await occupy()
  t.teardown(() => server.close())
  const request = { variable: 'API_PORT', standard: port, purpose: 'the API', host: '127.0.0.1' }
  const lines: string[] = []
  const { api = 0 } = await choosePorts({ api: request }, {}, (line) => lines.push(line))
  t.true(api > port)
  t.deepEqual(lines, [`Port ${port} for the API is taken: using ${api} (API_PORT sets it).`])

  const choose = (value: string): Promise<unknown> =>
    choosePorts({ api: request }, { API_PORT: value }, () => undefined)
  await t.throwsAsync(choose(String(port)), { message: /API_PORT\) is taken by another program/ })
  await t.throwsAsync(choose('http'), {
    message: 'API_PORT=http is not a port; give a number from 1 to 65535',
  })
})

test('no two services get the same port', async (t) => {
  const standard = await freePort()
  const request = { variable: 'A', standard, purpose: 'a', host: '127.0.0.1' }
  const ports = await choosePorts({ a: request, b: { ...request, variable: 'B' } }, {}, () => undefined)
  t.not(ports.a, ports.b)
  const configured = await choosePorts(
    { a: request, b: { ...request, variable: 'B' } },
    { B: String(standard) },
    () => undefined,
  )
  t.is(configured.b, standard)
  t.not(configured.a, standard)
})

test('one process holds the run lock, and it is free when that is killed', async (t) => {
  const file = join(scratchDirectory(), 'run.lock')
  const script = join(scratchDirectory(), 'holder.ts')
  writeFileSync(
    script,
    `import { takeLock } from ${JSON.stringify(join(serviceScripts, 'run-lock.ts'))}
     globalThis.lock = takeLock(${JSON.stringify(file)})
     console.log('held')
     setInterval(() => 0, 1000)`,
  )
  const holder = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => holder.kill('SIGKILL'))
  await new Promise((resolve) => holder.stdout.once('data', resolve))
  t.is(takeLock(file), undefined)
  holder.kill('SIGKILL')
  const lock = await eventually('the lock to be free', () => takeLock(file))
  lock.release()
})

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

test('PostgreSQL has everything that was committed after kill -9, whoever has its old number', async (t) => {
  const directory = scratchDirectory('postgres')
  const first = await startOwnPostgres({ directory })
  await query(first.url, 'CREATE TABLE kept AS SELECT 1 AS value')
  first.kill()
  await first.exited
  // Simulates that the killed server's process id was reused, here by this test's process.
  const lockFile = join(first.dataDirectory, 'postmaster.pid')
  writeFileSync(lockFile, readFileSync(lockFile, 'utf8').replace(String(first.pid), String(process.pid)))

  const second = await startOwnPostgres({ directory })
  t.teardown(() => second.stop())
  t.deepEqual(await query(second.url, 'SELECT value FROM kept'), [{ value: 1 }])
  t.is(new URL(second.url).password, new URL(first.url).password)
})

test('a second PostgreSQL on the same data stops the one that was left running', async (t) => {
  const directory = scratchDirectory('postgres')
  const first = await startOwnPostgres({ directory })
  await query(first.url, 'CREATE TABLE kept AS SELECT 2 AS value')
  const second = await startOwnPostgres({ directory })
  t.teardown(() => second.stop())
  await first.exited
  t.deepEqual(await query(second.url, 'SELECT value FROM kept'), [{ value: 2 }])
})

test('Temporal on a file has its workflows after kill -9, and knows our search attributes', async (t) => {
  const directory = scratchDirectory('temporal')
  const first = await startOwnTemporal(directory)
  await inTemporal(first.address, (client) =>
    client.workflow.start('Sleeper', {
      taskQueue: 'none',
      workflowId: 'kept',
      searchAttributes: { SubscriberId: ['sub_1'], NextAt: [new Date()] },
    }),
  )
  first.kill()
  await first.exited

  const second = await startOwnTemporal(directory, first.port)
  t.teardown(() => second.stop())
  const found = await inTemporal(second.address, async (client) => {
    const description = await client.workflow.getHandle('kept').describe()
    return { status: description.status.name, attributes: description.searchAttributes }
  })
  t.is(found.status, 'RUNNING')
  t.deepEqual(found.attributes['SubscriberId'], ['sub_1'])
})

test('an external Temporal gets a namespace with our retention and search attributes, once', async (t) => {
  const { temporalAddress } = await services()
  const connection = await Connection.connect({ address: temporalAddress })
  t.teardown(() => connection.close())
  const first = await prepareNamespace(connection, 'other-house')
  t.like(first, { isCreated: true, missingAttributes: [] })
  const second = await prepareNamespace(connection, 'other-house')
  t.like(second, { isCreated: false, missingAttributes: [] })
  const { config } = await connection.workflowService.describeNamespace({ namespace: 'other-house' })
  t.is(Number(config?.workflowExecutionRetentionTtl?.seconds), 30 * 24 * 3600)

  const client = new Client({ connection, namespace: 'other-house' })
  const handle = await client.workflow.start('Sleeper', {
    taskQueue: 'none',
    workflowId: 'w',
    searchAttributes: { OrgId: ['org_1'] },
  })
  await handle.terminate()
  await t.throwsAsync(prepareNamespace(clashing(connection), 'other-house'), {
    message: /OrgId .* another type/,
  })
  const { missingAttributes } = await prepareNamespace(reticent(connection), 'other-house')
  t.true(missingAttributes.includes('OrgId'))
})

/** Returns a connection that refuses to list the search attributes. */
function reticent(connection: Connection): Connection {
  const denied = Object.assign(new Error('denied'), { code: 7, details: 'denied', metadata: {} })
  const operatorService = { listSearchAttributes: () => Promise.reject(denied) }
  // Only the services used before the refusal are needed.
  return { workflowService: connection.workflowService, operatorService } as unknown as Connection
}

/** Returns a connection on which OrgId has the type text. */
function clashing(connection: Connection): Connection {
  const operatorService = { listSearchAttributes: async () => ({ customAttributes: { OrgId: 1 } }) }
  // Only the services used before the refusal are needed.
  return { workflowService: connection.workflowService, operatorService } as unknown as Connection
}

async function inTemporal<Answer>(
  address: string,
  ask: (client: Client) => Promise<Answer>,
): Promise<Answer> {
  const connection = await Connection.connect({ address })
  try {
    return await ask(new Client({ connection }))
  } finally {
    await connection.close()
  }
}

type Ended = {
  code: number
  output: string
}

/** Runs the set-up with its own home and PATH, in which `go` is the given script. */
async function runSetup(go: string): Promise<Ended & { cache: string }> {
  const home = scratchDirectory('home')
  const bin = scratchDirectory('bin')
  writeFileSync(join(bin, 'go'), `#!/bin/sh\n${go}\n`)
  chmodSync(join(bin, 'go'), 0o755)
  const env = {
    HOME: home,
    PATH: `${bin}:/usr/bin:/bin`,
    // Makes the download fail, wherever the test runs.
    HTTPS_PROXY: 'http://127.0.0.1:9',
  }
  const script = join(projectDirectory, 'scripts', 'setup.mjs')
  return await new Promise((resolve) => {
    execFile(process.execPath, [script], { env }, (error, stdout, stderr) => {
      const code = error ? Number(error.code) : 0
      resolve({ code, output: stdout + stderr, cache: join(home, '.cache', 'postloom') })
    })
  })
}

test.serial('the set-up builds a Temporal server with Go where it cannot be downloaded, once', async (t) => {
  const { code, output, cache } = await runSetup(
    'echo "$@" >&2; printf "#!/bin/sh\\n" > "$GOBIN/temporal"; chmod +x "$GOBIN/temporal"',
  )
  t.is(code, 0, output)
  t.regex(output, /download: /)
  t.true(output.includes(`go install github.com/temporalio/cli/cmd/temporal@${temporalVersion}`))
  t.true(existsSync(join(cache, `temporal-${temporalVersion}`)))
})

test.serial('the set-up that cannot get a Temporal server says why, and what to install', async (t) => {
  const { code, output } = await runSetup('echo "dial tcp: no route to host" >&2; exit 1')
  t.is(code, 1)
  for (const part of ['no route to host', 'docs.temporal.io/cli', 'go.dev/dl', 'TEMPORAL_ADDRESS']) {
    t.true(output.includes(part), `${part} in ${output}`)
  }
})

test('a set-up that is stopped ends everything it started before another may begin', async (t) => {
  const directory = scratchDirectory()
  const lock = join(directory, 'setup.lock')
  const mark = `set-up ${process.pid}`
  const stubborn =
    'process.on("SIGINT", () => 0); process.on("SIGTERM", () => 0); setTimeout(() => 0, 60_000)'
  const program = `require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(stubborn)}, ${JSON.stringify(mark)}], { stdio: "inherit" }).once("spawn", () => console.log("under way")); ${stubborn}`
  const script = join(directory, 'set-up.mjs')
  const setup = join(projectDirectory, 'scripts', 'setup')
  writeFileSync(
    script,
    `import { withLock } from ${JSON.stringify(join(setup, 'lock.mjs'))}
     import { runProgram } from ${JSON.stringify(join(setup, 'progress.mjs'))}
     const run = () => runProgram(process.execPath, ['-e', ${JSON.stringify(program)}, ${JSON.stringify(mark)}], { timeoutMs: 60_000, onLine: console.log })
     await withLock(${JSON.stringify(lock)}, () => run().catch(run))`,
  )
  const child = spawn(process.execPath, [script], { detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk) => (said += String(chunk)))
  await eventually('the program to run', () => said.includes('under way'))
  t.true(existsSync(lock))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGINT')
  child.kill('SIGTERM')
  t.is(await ended, 130)
  t.false(existsSync(lock))
  t.false(execFileSync('ps', ['-eo', 'args='], { encoding: 'utf8' }).includes(mark))
})

test('a tool is installed once, by whoever is first, and a failure says why', async (t) => {
  const cache = scratchDirectory()
  const tool = { name: 'the tool 1.0', installer: 'a script', home: join(cache, 'tool'), program: 'run' }
  const put = (directory: string) => writeFileSync(join(directory, 'run'), '')
  const refused = await installOnce(tool, () => Promise.reject(new Error('npm failed\nno network')))
  t.is(refused, 'the tool 1.0 could not be installed with a script: no network')
  t.is(findInstalled(tool), undefined)
  const second = await installOnce(tool, async (directory) => {
    put(directory)
    mkdirSync(tool.home)
    put(tool.home)
  })
  t.is(second, null)
  t.is(findInstalled(tool), join(tool.home, 'run'))
  t.is(await installOnce(tool, () => Promise.reject(new Error('nobody asks again'))), null)
  t.deepEqual(readdirSync(cache), ['tool'])

  renameSync(join(tool.home, 'run'), join(tool.home, 'rest of a damaged cache'))
  t.is(await installOnce(tool, async (directory) => put(directory)), null)
  t.deepEqual(readdirSync(tool.home), ['run'])
})

test('a browser that has ended refuses every question', async (t) => {
  const browser = openBrowser('true')
  await t.throwsAsync(browser.newPage())
  await browser.close()
  await t.throwsAsync(browser.newPage())
})

test('the count of a test run knows crashes, hooks and skipped tests', (t) => {
  const report =
    '\n  ✔ a\n  ✘ [fail]: b no\n  - [skip] c\n  ✘ test/x.test.ts exited due to SIGKILL\n  ─\n  1 test failed\n'
  t.deepEqual(countOutcomes(report, 1), { passed: 1, failed: 2, skipped: 1 })
  t.deepEqual(countOutcomes('\n  ✔ a (1.2s)\n', 0), { passed: 1, failed: 0, skipped: 0 })
  t.deepEqual(countOutcomes('', 1), { passed: 0, failed: 1, skipped: 0 })
})

test('the end of a test run repeats what ended a process, or was rejected, outside of tests', (t) => {
  const thrown = '  Uncaught exception in test/x.test.ts\n\n  Error: no\n\n  Error: no\n      at a (b.ts:1:2)'
  const rejected = '  Unhandled rejection in test/y.test.ts\n\n  Error: never'
  const exited = '  ✘ test/x.test.ts exited with a non-zero exit code: 1'
  const report = `  ✔ a\n\n${thrown}\n\n${exited}\n  ✔ b\n\n${rejected}\n\n  ─\n\n  1 uncaught exception\n`
  t.deepEqual(readCrashes(report), [thrown, rejected])
  t.deepEqual(readCrashes(`${thrown}\n\n${rejected}\n`), [thrown, rejected])
  t.deepEqual(readCrashes('  ✔ a\n  ✘ [fail]: b no\n  ─\n'), [])
})
