import test from 'ava'
import { sql } from 'kysely'

import type { Domain, DomainRecord } from '../schema/domain.ts'
import { execute, row } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { decodeId, newId } from '../src/ids.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { checkSignatures, unstuffed } from './helpers/mail-check.ts'
import { QUICK } from './helpers/mailroom.ts'
import { type NameServer, startNameServer, txt } from './helpers/name-server.ts'
import { type Sink, startSmtpSink } from './helpers/smtp-sink.ts'

let api: TestApi
let engine: Engine
let names: NameServer
let sink: Sink

test.before(async () => {
  names = await startNameServer()
  sink = await startSmtpSink()
  api = await startApi({
    TEMPORAL_TASK_QUEUE: `rotation-${process.pid}`,
    DNS_SERVERS: names.address,
    RELAY_URL: sink.url,
  })
  engine = await startEngine(api.services)
})
test.after.always(async () => {
  await engine?.stop()
  await api?.close()
  await names?.close()
  await sink?.close()
})

const em = () => api.services.orm.em.fork()

async function verifiedDomain(organization: TestOrganization): Promise<Domain> {
  const { domain } = await organization.data('create_domain', { domain: `d${newId().slice(-12)}.example` })
  publish(domain.providerRecords)
  await organization.data('create_email_sender', { localPart: 'hi', domain: domain.id, name: 'Hi' })
  return (await organization.data('verify_domain', { domain: domain.id })).domain
}

function publish(records: readonly DomainRecord[]): void {
  for (const { name } of records) {
    const here = records.filter((record) => record.name === name)
    names.set(
      name,
      ...here.map(({ type, value, priority = 0 }) =>
        type === 'MX' ? { type, exchange: value, priority } : txt(value),
      ),
    )
  }
}

function keysOf(domain: Domain): DomainRecord[] {
  return domain.providerRecords.filter(({ purpose }) => purpose === 'DKIM')
}

function selectorOf(record: DomainRecord | undefined): string {
  return record?.name.split('.')[0] ?? ''
}

/** Sends one email through newly started lanes and returns its bytes. */
async function send(organization: TestOrganization, domain: Domain): Promise<string> {
  const to = `${newId()}@reader.example`
  const answer = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to, from: `hi@${domain.domain}`, subject: 'Hi', content: 'Hi' },
  })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  const lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK })
  try {
    return await eventually('the email', () => {
      const mail = sink.accepted().find(({ recipient }) => recipient === to)
      return mail && unstuffed(mail.raw)
    })
  } finally {
    await lanes.stop()
  }
}

async function signature(raw: string): Promise<string> {
  const [result] = await checkSignatures(names, raw)
  return `${result?.status.result} ${result?.selector}`
}

test('a key is rotated without a moment in which mail does not pass', async (t) => {
  const organization = await api.organization()
  const domain = await verifiedDomain(organization)
  const [old] = keysOf(domain)
  const first = await send(organization, domain)
  t.is(await signature(first), `pass ${selectorOf(old)}`)

  const { domain: rotated } = await organization.data('rotate_dkim_key', { domain: domain.domain })
  t.is(rotated.status, 'VERIFIED')
  const [next, same] = keysOf(rotated)
  t.deepEqual(same, old)
  t.like(next, { status: 'PENDING', checkedAt: null })
  t.not(next?.value, old?.value)
  // The old key signs until the new one is in DNS.
  t.is(await signature(await send(organization, domain)), `pass ${selectorOf(old)}`)
  const again = await organization.call('rotate_dkim_key', { domain: domain.domain })
  t.is(again.status, 409)
  t.regex(again.body.error, new RegExp(`add the record ${next?.name}`))
  const unpublished = (await organization.data('verify_domain', { domain: domain.id })).domain
  t.is(unpublished.status, 'VERIFIED')
  t.deepEqual(
    keysOf(unpublished).map(({ status }) => status),
    ['MISSING', 'VERIFIED'],
  )

  publish(keysOf(rotated))
  const promoted = (await organization.data('verify_domain', { domain: domain.id })).domain
  t.is(promoted.status, 'VERIFIED')
  t.deepEqual(
    keysOf(promoted).map(({ status }) => status),
    ['VERIFIED', 'VERIFIED'],
  )
  t.is(await signature(await send(organization, domain)), `pass ${selectorOf(next)}`)
  // Emails signed before the rotation still pass.
  t.is(await signature(first), `pass ${selectorOf(old)}`)
  const retired = await row<{ privateKey: Buffer | null }>(
    em(),
    sql`select private_key as "privateKey" from dkim_key where selector = ${selectorOf(old)}`,
  )
  t.is(retired?.privateKey, null)

  names.set(old?.name ?? '')
  t.is((await organization.data('verify_domain', { domain: domain.id })).domain.status, 'VERIFIED')
  await execute(
    em(),
    sql`update dkim_key set retired_at = now() - interval '8 days' where state = 'RETIRING'`,
  )
  const done = (await organization.data('verify_domain', { domain: domain.id })).domain
  t.deepEqual(
    keysOf(done).map(({ name }) => name),
    [next?.name],
  )
  t.is((await organization.data('rotate_dkim_key', { domain: domain.id })).domain.providerRecords.length, 6)
})

test('a new key is looked for by itself, and signs once it is found', async (t) => {
  const organization = await api.organization()
  const domain = await verifiedDomain(organization)
  const asked = names.questions.length
  const { domain: rotated } = await organization.data('rotate_dkim_key', { domain: domain.id })
  const [next] = keysOf(rotated)
  await eventually('the new key to be looked for', () =>
    names.questions.slice(asked).some((question) => question === `TXT ${next?.name}`),
  )
  const found = await eventually('the answer to be kept', async () => {
    const { records } = await organization.data('get_domain_dns_records', { domain: domain.id })
    return records.find(({ name, status }: DomainRecord) => name === next?.name && status === 'MISSING')
  })
  t.truthy(found.repair)
})

test('many who rotate at once make one new key', async (t) => {
  const organization = await api.organization()
  const domain = await verifiedDomain(organization)
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => organization.call('rotate_dkim_key', { domain: domain.id })),
  )
  t.is(answers.filter(({ status }) => status === 200).length, 1)
  t.is(answers.filter(({ status }) => status === 409).length, 3)
})

test('the key of the development domain, and one of somebody else, is not rotated', async (t) => {
  const organization = await api.organization()
  const domain = await verifiedDomain(organization)
  await execute(em(), sql`update domain set development = true where id = ${decodeId('dom', domain.id)}`)
  const answer = await organization.call('rotate_dkim_key', { domain: domain.id })
  t.is(answer.status, 409)
  t.is(answer.body.code, 'WRONG_STATE')
  const stranger = await api.organization()
  t.is((await stranger.call('rotate_dkim_key', { domain: domain.id })).status, 404)
})
