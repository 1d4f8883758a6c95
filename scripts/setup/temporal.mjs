import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'

import {
  cacheDirectory,
  cachedTemporal,
  isExecutable,
  projectDirectory,
  temporalVersion,
} from '../services/layout.mjs'
import { describeError, runProgram } from './progress.mjs'

const MODULE = `github.com/temporalio/cli/cmd/temporal@${temporalVersion}`
const DOWNLOAD_HOST = 'temporal.download'
const MINUTES = 60_000

/**
 * Fetches a Temporal server into the cache: by the download that the Temporal SDK has built in, else by
 * building it with Go. The download needs the packages; the build starts beside them.
 */
export async function obtainTemporal(report, packages) {
  report('!not on the path, not in the cache: fetching one')
  mkdirSync(cacheDirectory(), { recursive: true })
  const refusals = []
  for (const attempt of [() => download(report, packages), () => build(report)]) {
    try {
      await attempt()
      return
    } catch (error) {
      report(`!${describeError(error)}`)
      refusals.push(describeError(error))
    }
  }
  throw new Error(
    [
      'No Temporal server could be had:',
      ...refusals.map((refusal) => `  - ${refusal}`),
      'Do one of these:',
      '  - install the Temporal command line (https://docs.temporal.io/cli), so that "temporal" is on the path;',
      '  - install Go 1.25 or later (https://go.dev/dl), and Postloom builds it;',
      '  - set TEMPORAL_ADDRESS=host:port to a Temporal server of yours.',
    ].join('\n'),
  )
}

async function download(report, packages) {
  report(`asking ${DOWNLOAD_HOST}`)
  const unreachable = await probe(DOWNLOAD_HOST)
  if (unreachable) throw new Error(`download: ${DOWNLOAD_HOST} does not answer (${unreachable})`)
  report('waiting for the packages, which download it')
  await packages.catch(() => {
    throw new Error('download: the packages that make it are not installed')
  })
  report(`downloading ${temporalVersion}`)
  const node = join(projectDirectory, 'node_modules', '.bin', 'node')
  const script = join(projectDirectory, 'scripts', 'setup', 'download-temporal.mjs')
  const outcome = await runProgram(node, [script, cacheDirectory(), temporalVersion], {
    timeoutMs: 5 * MINUTES,
  }).catch((error) => error)
  // It may be there although its trial start was too slow.
  if (!isExecutable(cachedTemporal())) throw new Error(`download: ${describeError(outcome)}`)
}

async function build(report) {
  const go = findGo()
  if (!go) throw new Error('go install: there is no "go" on the path')
  report(`!building it: go install ${MODULE} (about 5 minutes, once)`)
  const folder = mkdtempSync(join(cacheDirectory(), 'build-'))
  const env = { ...process.env, CGO_ENABLED: '0', GOBIN: folder, GOOS: '', GOARCH: '', GOWORK: 'off' }
  report('go install')
  let modules = 0
  let compiled = 0
  const onLine = (line) => {
    if (line.startsWith('go: downloading')) modules += 1
    else if (!line.startsWith('go:')) compiled += 1
    report(`go install: ${modules > 0 ? `${modules} modules fetched, ` : ''}${compiled} packages compiled`)
  }
  const install = () =>
    runProgram(go, ['install', '-v', '-ldflags', '-s -w', MODULE], {
      env,
      cwd: folder,
      timeoutMs: 40 * MINUTES,
      onLine,
    })
  try {
    // What was fetched stays, so a second attempt goes on where a broken connection ended the first.
    await install().catch(install)
    renameSync(join(folder, 'temporal'), cachedTemporal())
  } catch (error) {
    throw new Error(`go install: ${describeError(error)}`, { cause: error })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function findGo() {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  return [...folders, '/usr/local/go/bin', '/opt/homebrew/bin']
    .map((folder) => join(folder, 'go'))
    .find(isExecutable)
}

/** Why the host cannot be reached, or undefined. Behind a proxy only the download itself can tell. */
function probe(host) {
  if (process.env.HTTPS_PROXY || process.env.https_proxy) return undefined
  return new Promise((resolve) => {
    const socket = connect({ host, port: 443, timeout: 5_000 })
    const finish = (reason) => {
      socket.destroy()
      resolve(reason)
    }
    socket.once('connect', () => finish(undefined))
    socket.once('timeout', () => finish('no connection within 5 s'))
    socket.once('error', (error) => finish(error.code ?? error.message))
  })
}
