import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import test from 'ava'

import { startLanes } from '../src/delivery/lanes.ts'
import { startEngine } from '../worker/workers.ts'
import { startApi } from './helpers/api.ts'
import { QUICK } from './helpers/mailroom.ts'
import { commandsOf } from './helpers/pages.ts'
import { startSmtpSink } from './helpers/smtp-sink.ts'
import { startWebServer } from './helpers/web-server.ts'

const PROJECT = new URL('..', import.meta.url).pathname
const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')
/** The people in the file and one who existed before. */
const PEOPLE = 201

test('the campaign from nothing to analytics runs as it is written', async (t) => {
  t.timeout(120_000)
  const web = await startWebServer({ '/spring.gif': { body: GIF } })
  t.teardown(() => web.close())
  const sink = await startSmtpSink()
  t.teardown(() => sink.close())
  const settings = { TEMPORAL_TASK_QUEUE: `walkthrough-${process.pid}`, RELAY_URL: sink.url }
  const api = await startApi({ ...settings, ...web.allow })
  t.teardown(() => api.close())
  const engine = await startEngine(api.services)
  t.teardown(() => engine.stop())
  const lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 })
  t.teardown(() => lanes.stop())
  const organization = await api.organization()
  await organization.data('add_subscriber', { email: 'ada@example.com' })
  const script = `set -euo pipefail\n${commandsOf('campaigns.md', 'From nothing to analytics')}`
  const { stdout } = await promisify(execFile)('bash', ['-c', script], {
    cwd: PROJECT,
    env: {
      ...process.env,
      BASE: api.url,
      TOKEN: organization.token,
      PICTURE: `${web.url}/spring.gif`,
    },
  })
  t.regex(stdout, /matched: 1 \}, \{ index: 1, matched: 1 \}/)
  t.regex(stdout, /T0[78]:00:00\.000Z\nDRAFT\nSCHEDULED\n/)
  t.regex(stdout, new RegExp(`recipients: ${PEOPLE},\\n +sent: ${PEOPLE},`))
  t.regex(stdout, /Ada Lovelace .* got the campaign “Spring collection”\./)
  t.regex(stdout, /is sent on .* at 09:00 \(Europe\/Paris\) from/)
  t.is(sink.accepted().filter(({ recipient }) => recipient !== 'me@example.com').length, PEOPLE)
})
