import { createPublicKey } from 'node:crypto'

import test from 'ava'
import { sql } from 'kysely'

import type { DomainRecord } from '../schema/domain.ts'
import { row } from '../src/database.ts'
import { newId } from '../src/ids.ts'
import { startApi, type TestApi } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi({
    TEMPORAL_TASK_QUEUE: `domains-${process.pid}`,
    BOUNCE_HOST: 'in.postloom.example',
    SPF_MECHANISMS: 'include:relay.example',
    SENDING_REGION: 'eu-1',
  })
})
test.after.always(async () => {
  await api?.close()
})

const em = () => api.services.orm.em.fork()
const fresh = () => `d${newId().slice(-12)}.example`

function recordOf(records: readonly DomainRecord[], purpose: DomainRecord['purpose']): DomainRecord {
  const found = records.find((record) => record.purpose === purpose)
  if (!found) throw new Error(`there is no ${purpose} record`)
  return found
}

test('create_domain answers the records to add, with a 2048-bit key of its own', async (t) => {
  const organization = await api.organization()
  const host = fresh()
  const { domain } = await organization.data('create_domain', { domain: host.toUpperCase() })
  t.like(domain, { domain: host, status: 'PENDING', region: 'eu-1', fallbackPriority: null })
  t.truthy(domain.verificationRequestedAt)
  const records: DomainRecord[] = domain.providerRecords
  t.deepEqual(
    records.map(({ name, type, purpose, status }) => [
      name.replace(/^pl[0-9a-f]+/, 'pl'),
      type,
      purpose,
      status,
    ]),
    [
      [`_postloom.${host}`, 'TXT', 'OWNERSHIP', 'PENDING'],
      [`pl._domainkey.${host}`, 'TXT', 'DKIM', 'PENDING'],
      [`send.${host}`, 'MX', 'MAIL_FROM_MX', 'PENDING'],
      [`send.${host}`, 'TXT', 'MAIL_FROM_SPF', 'PENDING'],
      [`_dmarc.${host}`, 'TXT', 'DMARC', 'PENDING'],
    ],
  )
  t.like(recordOf(records, 'MAIL_FROM_MX'), { value: 'in.postloom.example', priority: 10, checkedAt: null })
  t.is(recordOf(records, 'MAIL_FROM_SPF').value, 'v=spf1 include:relay.example ~all')
  const key = /p=(.*)$/.exec(recordOf(records, 'DKIM').value)?.[1] ?? ''
  const { asymmetricKeyDetails } = createPublicKey({
    key: Buffer.from(key, 'base64'),
    format: 'der',
    type: 'spki',
  })
  t.is(asymmetricKeyDetails?.modulusLength, 2_048)
  t.deepEqual((await organization.data('list_domains')).domains.at(-1), domain)
  for (const name of [domain.id, host, host.toUpperCase()]) {
    t.deepEqual((await organization.data('get_domain_dns_records', { domain: name })).records, records)
  }
})

test('what is no host name is refused, and a domain is registered once', async (t) => {
  const organization = await api.organization()
  for (const domain of [
    '',
    'example',
    'https://example.com',
    'a b.example',
    'x@y.example',
    '1.2.3.4',
    '-a.example',
    `${'a'.repeat(64)}.example`,
  ]) {
    const answer = await organization.call('create_domain', { domain })
    t.is(answer.status, 400, domain)
    t.is(answer.body.details[0].path, 'domain')
  }
  const host = fresh()
  await organization.data('create_domain', { domain: host })
  const again = await organization.call('create_domain', { domain: host })
  t.is(again.status, 409)
  t.is(again.body.code, 'ALREADY_EXISTS')
  t.is(
    (await organization.data('create_domain', { domain: 'Bücher.example' })).domain.domain,
    'xn--bcher-kva.example',
  )
})

test('several organizations may register a domain, each with its own key and token', async (t) => {
  const host = fresh()
  const made = await Promise.all(
    [1, 2].map(async () => (await (await api.organization()).data('create_domain', { domain: host })).domain),
  )
  const [one, other] = made.map((domain) => domain.providerRecords as DomainRecord[])
  for (const purpose of ['OWNERSHIP', 'DKIM'] as const) {
    t.not(recordOf(one ?? [], purpose).value, recordOf(other ?? [], purpose).value)
  }
  t.not(recordOf(one ?? [], 'DKIM').name, recordOf(other ?? [], 'DKIM').name)
})

test('domains need their permission, and the private key is in no answer and not readable in the database', async (t) => {
  const organization = await api.organization()
  const host = fresh()
  const { domain } = await organization.data('create_domain', { domain: host })
  const token = await organization.tokenWith(['emails', 'organization', 'content'])
  for (const [tool, body] of [
    ['list_domains', {}],
    ['create_domain', { domain: fresh() }],
    ['get_domain_dns_records', { domain: host }],
  ] as const) {
    t.is((await api.request('POST', `/api/v2/tools/${tool}`, { token, body })).status, 403, tool)
  }
  t.notRegex(JSON.stringify(domain), /private/i)
  const stored = await row<{ text: string }>(
    em(),
    sql`select encode(private_key, 'base64') as text from dkim_key where organization_id = ${organization.id}`,
  )
  // The base64 text of every unencrypted PKCS #8 key of this type begins with this.
  t.notRegex(stored?.text ?? 'MIIE', /MIIE/)
})

test('a domain that is not verified has senders, but none that may send', async (t) => {
  const organization = await api.organization()
  const host = fresh()
  await organization.data('create_domain', { domain: host })
  const { sender } = await organization.data('create_email_sender', {
    localPart: 'hi',
    domain: host,
    name: 'Hi',
  })
  t.false(sender.verified)
  const answer = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: 'ada@reader.example', from: `hi@${host}`, subject: 'Hi', content: 'Hi' },
  })
  t.is(answer.status, 403)
})

test('REST v2 lists, creates and reads domains', async (t) => {
  const { token } = await api.organization()
  const host = fresh()
  const created = await api.request('POST', '/api/v2/domains', { token, body: { domain: host } })
  t.is(created.status, 201)
  t.like(created.body, { domain: host, status: 'PENDING' })
  for (const name of [host, created.body.id]) {
    const read = await api.request('GET', `/api/v2/domains/${name}`, { token })
    t.is(read.status, 200)
    t.deepEqual(read.body, created.body)
  }
  const listed = await api.request('GET', '/api/v2/domains', { token })
  t.like(listed.body, { object: 'list', has_more: false })
  t.deepEqual(listed.body.data[0], created.body)
  const refused = await api.request('POST', '/api/v2/domains', { token, body: { domain: 'nonsense' } })
  t.is(refused.status, 422)
  t.is((await api.request('GET', '/api/v2/domains/nowhere.example', { token })).status, 404)
})
