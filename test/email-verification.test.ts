import test from 'ava'

import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { type NameServer, startNameServer } from './helpers/name-server.ts'

let api: TestApi
let names: NameServer

test.before(async () => {
  names = await startNameServer()
  api = await startApi({ DNS_SERVERS: names.address })
  names.set('reader.example', { type: 'MX', exchange: 'mx.reader.example', priority: 10 })
  names.set('yopmail.com', { type: 'MX', exchange: 'mx.yopmail.com', priority: 10 })
  names.set('address.example', { type: 'A', address: '192.0.2.1' })
  names.set('nomail.example', { type: 'MX', exchange: '', priority: 0 }, { type: 'A', address: '192.0.2.1' })
})
test.after.always(async () => {
  await api?.close()
  await names?.close()
})
test.afterEach.always(() => {
  names.mood = 'records'
})

async function verify({ token }: TestOrganization, email: string) {
  const answer = await api.request('POST', '/api/v2/emails/verify', { token, body: { email } })
  return { status: answer.status, body: answer.body }
}

const NOTHING = { syntax: true, mx: true, disposable: false, role: false, suppressed: false }

test.serial('an address is judged by how it is written and by its domain', async (t) => {
  const organization = await api.organization()
  const verdicts: Record<
    string,
    [string, string | null, Partial<Record<keyof typeof NOTHING, boolean | null>>]
  > = {
    'Ada@Reader.example': ['valid', null, {}],
    'ada@sub.address.example': ['invalid', 'no_mail_server', { mx: false }],
    'ada@address.example': ['valid', null, {}],
    'ada@nomail.example': ['invalid', 'no_mail_server', { mx: false }],
    'ada@nowhere.example': ['invalid', 'no_mail_server', { mx: false }],
    'ada@@reader.example': ['invalid', 'invalid_syntax', { syntax: false, mx: null }],
    'ada lovelace@reader.example': ['invalid', 'invalid_syntax', { syntax: false, mx: null }],
    'INFO+shop@reader.example': ['risky', 'role', { role: true }],
    'ada@yopmail.com': ['risky', 'disposable', { disposable: true }],
    'ada@any.yopmail.com': ['invalid', 'no_mail_server', { mx: false, disposable: true }],
    '': ['invalid', 'invalid_syntax', { syntax: false, mx: null }],
  }
  for (const [email, [status, reason, checks]] of Object.entries(verdicts)) {
    t.deepEqual(
      await verify(organization, email),
      { status: 200, body: { email, status, reason, checks: { ...NOTHING, ...checks } } },
      email,
    )
  }
  t.true(names.questions.every((question) => /^(MX|A|AAAA) /.test(question)))
})

test.serial('without an answer of a name server an address is risky and never invalid', async (t) => {
  const organization = await api.organization()
  names.mood = 'broken'
  t.like((await verify(organization, 'ada@reader.example')).body, {
    status: 'risky',
    reason: 'dns_unavailable',
    checks: { ...NOTHING, mx: null },
  })
})

test.serial('who gets no email here is invalid here, and nowhere else', async (t) => {
  const organization = await api.organization()
  const other = await api.organization()
  await organization.confirmed('add_suppression', { email: 'ada@reader.example' })
  t.like((await verify(organization, 'ADA@reader.example')).body, { status: 'invalid', reason: 'suppressed' })
  t.like((await verify(other, 'ada@reader.example')).body, { status: 'valid', checks: NOTHING })
})

test.serial('it needs the permission for emails and an address', async (t) => {
  const organization = await api.organization()
  const path = '/api/v2/emails/verify'
  const body = { email: 'ada@reader.example' }
  t.like(await api.request('POST', path, { body }), { status: 401 })
  const token = await organization.tokenWith(['subscribers'])
  t.like(await api.request('POST', path, { token, body }), { status: 403 })
  t.like(await api.request('POST', path, { token: organization.token, body: {} }), {
    status: 422,
    body: { name: 'missing_required_field' },
  })
  t.like(await organization.call('verify_email_address', body), { status: 404 })
})
