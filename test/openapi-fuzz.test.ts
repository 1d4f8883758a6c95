import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import test from 'ava'

import { findSchemathesis } from '../scripts/services/schemathesis.ts'
import { startApi } from './helpers/api.ts'
import { startNameServer } from './helpers/name-server.ts'
import { inWorld, makeWorld } from './helpers/world.ts'

/** The seed decides which requests are made; TRIES sets how many of each kind. */
const SEED = process.env['REPRO'] ?? '1'
const TRIES = process.env['TRIES'] ?? '2'

/**
 * Checks that do not apply: whether a valid request succeeds depends on existing data; the path of each tool also
 * answers GET, which the document describes once for all; and many wrong tokens are answered with 429.
 */
const CHECKS_LEFT_OUT = [
  'ignored_auth',
  'positive_data_acceptance',
  'use_after_free',
  'ensure_resource_availability',
  'unsupported_method',
  'allow_header_conformance',
]

/** Operations that are left out: they fetch made-up URLs, wait for a worker, or could delete the token of the run. */
const LEFT_OUT = 'fetch_web_page|upload_image|verify_domain|domains/.*/verify$|/tokens/\\{tokenId'

const python = findSchemathesis()
const title = 'whatever is sent to a described address is answered as the document says, and never by a fault'

if (python === undefined) {
  test.skip(`${title} (not run: schemathesis is not here; npm test installs it where there is Python 3)`, (t) =>
    t.fail())
} else {
  test(title, async (t) => {
    t.timeout(20 * 60_000)
    const names = await startNameServer()
    const api = await startApi({ TEMPORAL_TASK_QUEUE: `openapi-${process.pid}`, DNS_SERVERS: names.address })
    const folder = mkdtempSync(join(tmpdir(), 'postloom-openapi-'))
    try {
      const { token, ...organization } = await api.organization()
      const world = await makeWorld(api, { token, ...organization })
      const { body: document } = await api.request('GET', '/openapi.json')
      const file = join(folder, 'openapi.json')
      writeFileSync(file, JSON.stringify(inWorld(document, world)))
      writeFileSync(join(folder, 'schemathesis.toml'), settings(token, await api.adminKey()))
      const { code, output } = await runProgram(python, folder, [
        '-m',
        'schemathesis.cli',
        'run',
        file,
        `--url=${api.url}`,
        '--phases=examples,coverage,fuzzing',
        `--max-examples=${TRIES}`,
        `--seed=${SEED}`,
        '--checks=all',
        `--exclude-checks=${CHECKS_LEFT_OUT.join(',')}`,
        '--generation-database=none',
        '--continue-on-failure',
        '--no-color',
        '--request-timeout=60',
        `--exclude-path-regex=${LEFT_OUT}`,
      ])
      t.log(output.slice(-1_000))
      t.is(code, 0, output.slice(-20_000))
    } finally {
      rmSync(folder, { recursive: true, force: true })
      await api.close()
      await names.close()
    }
  })
}

/** Returns the settings of schemathesis. The admin interface takes a different key. */
function settings(token: string, adminKey: string): string {
  return [
    `headers = { Authorization = "Bearer ${token}" }`,
    '[[operations]]',
    'include-path-regex = "/admin/"',
    `headers = { Authorization = "Bearer ${adminKey}" }`,
    '',
  ].join('\n')
}

async function runProgram(
  command: string,
  cwd: string,
  parameters: readonly string[],
): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, parameters, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const take = (chunk: Buffer): void => {
    output += chunk.toString()
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output }
}
