import type { ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import test, { type ExecutionContext } from 'ava'
import { sql } from 'kysely'

import type { SubscriberImport } from '../schema/import.ts'
import { execute, row, rows } from '../src/database.ts'
import { forgetExpired } from '../src/domain/housekeeping.ts'
import { importWorkflowId } from '../temporal/contract.ts'
import { startOutboxRelay } from '../worker/outbox.ts'
import { reconcile } from '../worker/reconciler.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { type Answer, startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'

let api: TestApi
let engine: Engine
test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `import-files-${process.pid}` })
  engine = await startEngine(api.services)
})
test.after.always(async () => {
  await engine.stop()
  await api.close()
})

type Options = { query?: Record<string, string>; headers?: Record<string, string> }

async function upload(
  { token }: { token: string },
  content: string | Buffer,
  { query = {}, headers = {} }: Options = {},
  on: Pick<TestApi, 'url'> = api,
): Promise<Answer> {
  const response = await fetch(`${on.url}/api/v2/imports?${new URLSearchParams(query).toString()}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'text/csv', ...headers },
    body: new Uint8Array(Buffer.from(content)),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: JSON.parse(text) }
}

async function ended(organization: TestOrganization, id: string, on = api): Promise<SubscriberImport> {
  return await eventually(
    'the end of the import',
    async () => {
      const { body } = await on.request('GET', `/api/v2/imports/${id}`, { token: organization.token })
      return body.finishedAt === null ? undefined : body
    },
    { withinMs: 150_000 },
  )
}

async function imported(
  organization: TestOrganization,
  content: string | Buffer,
  options: Options = {},
): Promise<SubscriberImport> {
  const { status, body } = await upload(organization, content, options)
  if (status !== 202) throw new Error(`the upload answered ${status}: ${JSON.stringify(body)}`)
  return await ended(organization, body.id)
}

async function person(organization: TestOrganization, email: string) {
  return (await organization.data('get_subscriber', { email })).subscriber
}

async function rejectedOf({ token }: TestOrganization, id: string): Promise<Answer> {
  return await api.request('GET', `/api/v2/imports/${id}/rejected`, { token })
}

async function leftOf({ id }: TestOrganization): Promise<{ imports: number; chunks: number } | null> {
  return await row(
    api.services.orm.em.fork(),
    sql`select (select count(*)::int from subscriber_import where organization_id = ${id}) as imports,
      (select count(*)::int from import_chunk where organization_id = ${id}) as chunks`,
  )
}

test('a file from a spreadsheet becomes people, tags and fields, and refused rows can be fetched', async (t) => {
  const organization = await api.organization()
  await organization.data('add_subscriber', { email: 'known@example.com', fields: { score: 1 } })
  const file = [
    '\ufeffE-mail,First name,Last name,Plan,Score,Signed up,Labels,Note,"=2+""3""",@1',
    'soren@example.com,Søren,Eriksen,pro,7,2026-01-12,"vip; new","said ""hi"", twice"',
    'yara@example.com,Yara,Núñez,free,,2026-02-03,vip,"two',
    'lines"',
    'not an address,,,,,,,=1+1',
    'KNOWN@example.com,Known,,pro,many,,,',
    '',
    'soren@example.com,Søren,Eriksen,free,8,,late,',
    "'+plus@example.com,Plus,,,,,,",
  ].join('\r\n')
  const done = await imported(organization, file)
  t.like(done, {
    status: 'COMPLETED',
    rows: 6,
    expectedRows: 6,
    imported: 3,
    updated: 1,
    failed: 2,
    error: null,
  })
  t.deepEqual(done.mapping, {
    'E-mail': 'email',
    'First name': 'name',
    'Last name': 'name',
    Plan: 'fields.Plan',
    Score: 'fields.score',
    'Signed up': 'fields.Signed_up',
    Labels: 'tags',
    Note: 'fields.Note',
    '=2+"3"': null,
    '@1': null,
  })
  const soren = await person(organization, 'soren@example.com')
  t.like(soren, { name: 'Søren Eriksen', status: 'SUBSCRIBED' })
  t.deepEqual(soren.tags, ['late', 'new', 'vip'])
  t.deepEqual(soren.customFields, {
    Plan: 'free',
    score: 8,
    Signed_up: '2026-01-12',
    Note: 'said "hi", twice',
  })
  t.like(await person(organization, 'yara@example.com'), { customFields: { Note: 'two lines' } })
  t.truthy(await person(organization, '+plus@example.com'))
  t.is((await organization.call('get_subscriber', { email: 'not an address' })).status, 404)
  const rejected = await rejectedOf(organization, done.id)
  t.regex(rejected.headers.get('content-type') ?? '', /^text\/csv/)
  t.regex(
    rejected.body,
    /^E-mail,First name,.*,Note,"'=2\+""3""",'@1,row,error\r\nnot an address,,,,,,,'=1\+1,,,4,"email is not/,
  )
  t.deepEqual(await leftOf(organization), { imports: 1, chunks: 0 })
})

test('numbers in the form that an export gives large and small ones come back as numbers', async (t) => {
  const organization = await api.organization()
  const done = await imported(organization, 'email,rate\nlarge@example.com,1e+21\nsmall@example.com,1e-7\n')
  t.like(done, { status: 'COMPLETED', imported: 2, failed: 0 })
  t.deepEqual((await person(organization, 'large@example.com')).customFields, { rate: 1e21 })
  t.deepEqual((await person(organization, 'small@example.com')).customFields, { rate: 1e-7 })
})

test('an export is imported as it is: tags and custom fields under their names, and nothing new', async (t) => {
  const [own, other] = [await api.organization(), await api.organization()]
  const fields = { plan: 'pro', Plan: 'Pro', score_: -3, member: true, since: '2026-01-12', country: 'FR' }
  const tags = ['"new"', '5" vinyl', 'Smith, Jones', 'a; "b", c', 'vip']
  await own.data('add_subscriber', { email: 'ann@example.com', name: 'Ann', tags, fields })
  const { csv } = await own.data('export_subscribers', { format: 'csv' })
  for (const organization of [own, other]) {
    t.like(await imported(organization, csv), {
      failed: 0,
      mapping: { email: 'email', 'customFields.Plan': 'fields.Plan', createdAt: null },
    })
    const ann = await person(organization, 'ann@example.com')
    t.is(ann.name, 'Ann')
    t.deepEqual(ann.tags.toSorted(), tags.toSorted())
    t.deepEqual(ann.customFields, fields)
  }
  const { events } = await own.data('list_subscriber_events', { email: 'ann@example.com' })
  t.false(events.some(({ type }: { type: string }) => type === 'FIELD_UPDATED'))
})

test('refused rows are sent again as they came: nothing of them is lost, and their numbers and errors are no fields', async (t) => {
  const organization = await api.organization()
  const first = await imported(organization, 'email,name\nann@,Ann\nbob@example.com,Bob, Junior,1999\n')
  t.like(first, { imported: 0, failed: 2 })
  const csv: string = (await rejectedOf(organization, first.id)).body
  t.regex(csv, /^bob@example\.com,Bob,3,"?The row has 4 cells.*,Junior,1999\r\n/m)
  const again = await imported(organization, csv.replace('ann@,', 'ann@example.com,'))
  t.like(again, { imported: 1, failed: 1, mapping: { email: 'email', name: 'name', row: null, error: null } })
  t.deepEqual((await person(organization, 'ann@example.com')).customFields, {})
})

test('a mapping says where columns go, and what it leaves out is not used', async (t) => {
  const organization = await api.organization()
  const mapping = { Adresse: 'email', Prénom: 'name', Offre: 'fields.plan', Étiquettes: 'tags' }
  const lines = 'Adresse;Prénom;Offre;Étiquettes;Secret\nz@example.com;Zoé;pro;a,b;x\n'
  const query = { mapping: JSON.stringify(mapping), tags: 'from-list,B', status: 'UNSUBSCRIBED' }
  const done = await imported(organization, Buffer.from(lines, 'latin1'), { query })
  t.like(done, { status: 'COMPLETED', imported: 1, failed: 0, mapping: { ...mapping, Secret: null } })
  const zoe = await person(organization, 'z@example.com')
  t.like(zoe, { name: 'Zoé', status: 'UNSUBSCRIBED', customFields: { plan: 'pro' } })
  t.deepEqual(zoe.tags, ['a', 'B', 'from-list'])
})

test('a row is decoded by itself: UTF-8, or Windows-1252 where it is not', async (t) => {
  const organization = await api.organization()
  const file = Buffer.concat([
    Buffer.from('email,name\na@example.com,Łukasz\n'),
    Buffer.from([...Buffer.from('b@example.com,Ren'), 0xe9, 0x20, 0x93, 0x41, 0x94, 0x0a]),
  ])
  t.like(await imported(organization, file), { imported: 2 })
  t.is((await person(organization, 'a@example.com')).name, 'Łukasz')
  t.is((await person(organization, 'b@example.com')).name, 'René “A”')
})

for (const [title, file, query, message] of [
  ['an empty file', '', {}, /file is empty/],
  ['a file without rows', 'email,name\n', {}, /no rows/],
  [
    'a file without an address',
    'name,plan\nA,b\n',
    {},
    /No column is recognized as the email address.*"name", "plan"/,
  ],
  ['UTF-16', Buffer.from('\ufeffemail\na@b.co', 'utf16le'), {}, /save it as "CSV UTF-8"/],
  ['two columns of addresses', 'email,E-Mail\na@b.co,c@d.co\n', {}, /"email" and "E-Mail" to email/],
  [
    'a mapping of a column there is not',
    'email\na@b.co\n',
    { mapping: '{"Mail":"email"}' },
    /mapping\.Mail.*"email"/,
  ],
  ['a mapping to nowhere', 'email\na@b.co\n', { mapping: '{"email":"adress"}' }, /"adress".*fields\.<name>/],
  ['a mapping that is no JSON', 'email\na@b.co\n', { mapping: 'email' }, /mapping/],
  ['a status that is none', 'email\na@b.co\n', { status: 'BOUNCED' }, /status/],
] as [string, string | Buffer, Record<string, string>, RegExp][]) {
  test(`${title} is refused at once, and nothing is kept`, async (t) => {
    const organization = await api.organization()
    const { status, body } = await upload(organization, file, { query })
    t.is(status, 422, JSON.stringify(body))
    t.regex(body.message, message)
    t.deepEqual(await leftOf(organization), { imports: 0, chunks: 0 })
  })
}

test('other types and larger files are refused before they are read', async (t) => {
  const organization = await api.organization()
  const json = await upload(organization, '{}', { headers: { 'content-type': 'application/json' } })
  t.is(json.status, 415)
  const token = await organization.tokenWith(['campaigns'])
  t.is((await upload({ token }, 'email\na@b.co\n')).status, 403)
  const { port } = new URL(api.url)
  const answer = await new Promise<string>((resolve) => {
    const socket = connect(Number(port), '127.0.0.1')
    // The server closes the connection with the file unread, which may reset it.
    socket.on('error', () => undefined)
    socket.once('data', (data) => resolve(data.toString()))
    socket.write(
      `POST /api/v2/imports HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${organization.token}\r\n` +
        'Content-Type: text/csv\r\nContent-Length: 1000000001\r\n\r\nemail\n',
    )
  })
  t.regex(answer, /^HTTP\/1\.1 413 /)
})

test('a row with a NUL character is refused, and the rows around it are imported', async (t) => {
  const organization = await api.organization()
  // The beginning of the file, in which such a character shows another encoding, is longer than this.
  const lines = Array.from({ length: 2_500 }, (_, index) => `p${index}@padding.example.com,Somebody`)
  const file = ['email,name', ...lines, 'nul@example.com,A\0nn', 'last@example.com,Last'].join('\n')
  t.like(await imported(organization, file), { status: 'COMPLETED', imported: 2_501, failed: 1 })
  const [{ id }] = (await api.request('GET', '/api/v2/imports', { token: organization.token })).body.data
  t.regex(
    (await rejectedOf(organization, id)).body,
    /nul@example\.com,Ann,2502,"name holds a control character/,
  )
})

test('an upload that breaks off leaves nothing, and one whose process died is swept', async (t) => {
  const organization = await api.organization()
  const { port } = new URL(api.url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(
    `POST /api/v2/imports HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${organization.token}\r\n` +
      'Content-Type: text/csv\r\nContent-Length: 50000000\r\n\r\nemail\n',
  )
  socket.write('someone@example.com\n'.repeat(150_000))
  await eventually('two pieces to be kept', async () => ((await leftOf(organization))?.chunks ?? 0) >= 2)
  socket.destroy()
  await eventually('nothing to be left', async () => (await leftOf(organization))?.imports === 0)
  t.deepEqual(await leftOf(organization), { imports: 0, chunks: 0 })
  const em = api.services.orm.em.fork()
  await rows(
    em,
    sql`insert into subscriber_import (id, organization_id, settings, actor, updated_at)
      values (new_id(), ${organization.id}, '{}', '{}', now() - interval '2 hours')`,
  )
  t.is((await leftOf(organization))?.imports, 1)
  await forgetExpired(em)
  t.is((await leftOf(organization))?.imports, 0)
})

test('a quote that is never closed fails the import after the rows before it, and says so', async (t) => {
  const organization = await api.organization()
  const lines = Array.from({ length: 20 }, (_, index) => `p${index}@example.com,x`).join('\n')
  const done = await imported(
    organization,
    `email,name\n${lines}\nlast@example.com,"open\n${'x,\n'.repeat(50)}`,
  )
  t.like(done, { status: 'FAILED', imported: 20, failed: 0 })
  t.regex(done.error ?? '', /quote/)
  t.deepEqual(await leftOf(organization), { imports: 1, chunks: 0 })
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(importWorkflowId(done.id))
  await eventually('the end of its workflow', async () => (await handle.describe()).status.name === 'FAILED')
  t.pass()
})

test('an import whose workflow was terminated has failed and says so; one that was never begun goes on', async (t) => {
  const quiet = await startApi({ TEMPORAL_TASK_QUEUE: `import-lost-${process.pid}`, LOG_LEVEL: 'error' })
  t.teardown(() => quiet.close())
  const organization = await quiet.organization()
  const list = async () =>
    (await upload(organization, 'email\na@example.com\nb@example.com\n', {}, quiet)).body
  const terminated = await list()
  const relay = startOutboxRelay(quiet.services, { knowsAttributes: () => Promise.resolve(false) })
  const client = await quiet.services.temporal.client()
  const handle = client.workflow.getHandle(importWorkflowId(terminated.id))
  await eventually('the workflow to be there', () => handle.describe().catch(() => null))
  await relay.stop()
  const lost = await list()
  await execute(quiet.services.orm.em.fork(), sql`delete from outbox`)
  await handle.terminate('the wrong list')
  for (let round = 0; round < 2; round++) await reconcile(quiet.services, 0)

  const done = await ended(organization, terminated.id, quiet)
  t.like(done, { status: 'FAILED', imported: 0 })
  t.regex(done.error ?? '', /TERMINATED.*send the file again/)
  const engine = await startEngine(quiet.services)
  t.teardown(() => engine.stop())
  t.like(await ended(organization, lost.id, quiet), { status: 'COMPLETED', imported: 2 })
})

test('an organization sees its own imports alone, newest first', async (t) => {
  const [one, other] = [await api.organization(), await api.organization()]
  const first = await imported(one, 'email\na@example.com\n')
  const second = await imported(one, 'email\nb@example.com\n')
  const list = async ({ token }: TestOrganization, query = '') =>
    (await api.request('GET', `/api/v2/imports${query}`, { token })).body
  t.deepEqual(await list(one), { object: 'list', data: [second, first], has_more: false })
  t.like(await list(one, '?limit=1'), { data: [second], has_more: true })
  t.like(await list(one, `?limit=1&after=${second.id}`), { data: [first], has_more: false })
  t.deepEqual((await list(other)).data, [])
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/rejected'],
    ['DELETE', ''],
  ] as const) {
    for (const id of [first.id, 'imp_00000000000000000000000000', 'nonsense']) {
      const { status, body } = await api.request(method, `/api/v2/imports/${id}${path}`, {
        token: other.token,
      })
      t.is(status, 404)
      t.is(body.name, 'not_found')
    }
  }
  const over = await api.request('DELETE', `/api/v2/imports/${first.id}`, { token: one.token })
  t.is(over.status, 409)
  t.regex(over.body.message, /COMPLETED/)
})

test('the same file with the same Idempotency-Key is one import', async (t) => {
  const organization = await api.organization()
  const headers = { 'idempotency-key': 'list-1' }
  const first = await upload(organization, 'email\na@example.com\n', { headers })
  const again = await upload(organization, 'email\na@example.com\n', { headers })
  t.is(again.body.id, first.body.id)
  const other = await upload(organization, 'email\nb@example.com\n', { headers })
  t.is(other.body.name, 'invalid_idempotent_request')
  await ended(organization, first.body.id)
  t.deepEqual(await leftOf(organization), { imports: 1, chunks: 0 })
})

test('workflows start only when asked, and events say which import was their cause', async (t) => {
  const organization = await api.organization()
  const causes = async () =>
    await rows<{ kind: string; id: string; silent: boolean | null }>(
      api.services.orm.em.fork(),
      sql`select distinct cause ->> 'kind' as kind, cause ->> 'id' as id, (cause ->> 'silent')::boolean as silent
        from subscriber_event where organization_id = ${organization.id} order by 2`,
    )
  const one = await imported(organization, 'email\na@example.com\n')
  t.deepEqual(await causes(), [{ kind: 'import', id: one.id, silent: true }])
  const two = await imported(organization, 'email\nb@example.com\n', { query: { triggerWorkflows: 'true' } })
  t.deepEqual((await causes())[1], { kind: 'import', id: two.id, silent: null })
})

/**
 * Returns rows of which some are repeated and some are invalid, and the expected result. Repetitions within a page
 * count as one change.
 */
function longList(count: number) {
  const lines = Array.from({ length: count }, (_, index) => {
    if (index % 50 === 7) return `refused ${index},"Nobody, ""${index}""",,`
    if (index % 50 === 9) return `p${index - 1}@example.com,Again ${index},late,`
    return `p${index}@example.com,"Person\r\n${index} é",vip;g${index % 5},${index % 90}`
  })
  const refused = count / 50
  return {
    file: `email,name,tags,age\r\n${lines.join('\r\n')}\r\n`,
    outcome: { rows: count, imported: count - 2 * refused, updated: refused, failed: refused },
    events: [`SUBSCRIBED ${count - 2 * refused}`, `TAG_ADDED ${refused + 2 * (count - 2 * refused)}`],
  }
}

async function eventCounts({ services }: TestApi, { id }: TestOrganization): Promise<string[]> {
  const found = await rows<{ text: string }>(
    services.orm.em.fork(),
    sql`select type || ' ' || count(*) as text from subscriber_event where organization_id = ${id}
      group by type order by 1`,
  )
  return found.map(({ text }) => text)
}

/** Uploads a long list, kills the importing process repeatedly, and checks the result. */
async function killAgainAndAgain(
  t: ExecutionContext,
  rowCount: number,
  kills: number,
  begin: (on: TestApi, organization: TestOrganization, importId: string) => ChildProcess,
): Promise<void> {
  const seed = randomInt(1_000_000)
  t.log(`seed ${seed}`)
  const quiet = await startApi({ TEMPORAL_TASK_QUEUE: `import-kill-${seed}-${process.pid}` })
  const organization = await quiet.organization()
  const { file, outcome, events } = longList(rowCount)
  const { id } = (await upload(organization, file, {}, quiet)).body
  const em = quiet.services.orm.em.fork()
  const checkpoint = () =>
    row<{ rows: number }>(
      em,
      sql`select rows from subscriber_import where organization_id = ${organization.id}`,
    )
  for (let kill = 0; kill < kills; kill++) {
    const before = (await checkpoint())?.rows ?? 0
    const child = begin(quiet, organization, id)
    // At a random moment during the page that follows a visible one.
    const isMoved = async () => ((await checkpoint())?.rows ?? 0) > before
    await eventually('a page to be applied', isMoved, { withinMs: 150_000 })
    await sleep((seed * (kill + 7)) % 60)
    await endProcess(child)
  }
  const { rows: reached = 0 } = (await checkpoint()) ?? {}
  t.true(reached < rowCount, `the list was too short: ${reached} rows were applied before the last kill`)
  const last = begin(quiet, organization, id)
  const done = await ended(organization, id, quiet)
  await endProcess(last)
  t.like(done, { status: 'COMPLETED', ...outcome })
  t.deepEqual(await eventCounts(quiet, organization), events)
  const named = await row<{ count: number }>(
    em,
    sql`select count(*)::int as count from subscriber where organization_id = ${organization.id}
      and name ~ '^(Person [0-9]+ é|Again [0-9]+)$'`,
  )
  t.is(named?.count, outcome.imported)
  await quiet.close()
}

test('an import that is killed with -9 ten times ends with exactly the right rows and events', async (t) => {
  // Runs what the activity runs, without waiting for Temporal's heartbeat timeout.
  await killAgainAndAgain(t, 24_000, 10, ({ services }, organization, importId) =>
    startProcess(services, 'test/helpers/import-process.ts', { parameters: [organization.id, importId] }),
  )
})

test('a worker that is killed with -9 is followed by another, which goes on where it was', async (t) => {
  await killAgainAndAgain(t, 10_000, 2, ({ services }) => startProcess(services, 'worker/main.ts'))
})
