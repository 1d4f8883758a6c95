import test from 'ava'
import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { type Lanes, startLanes } from '../src/delivery/lanes.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { QUICK } from './helpers/mailroom.ts'
import { type Sink, startSmtpSink } from './helpers/smtp-sink.ts'

/**
 * S5: what a caller or a reader writes reaches From, To, Reply-To and Subject. Whatever it holds, the bytes on the wire
 * have only our own headers: what could end a line is refused at the door or made harmless.
 */
let api: TestApi
let sink: Sink
let lanes: Lanes
let organization: TestOrganization

test.before(async () => {
  sink = await startSmtpSink()
  api = await startApi({ RELAY_URL: sink.url, TEMPORAL_TASK_QUEUE: `headers-${process.pid}` })
  lanes = await startLanes(api.services, { workerName: 'test', lane: QUICK, reviveMs: 50 })
  organization = await api.organization({ doubleOptIn: true })
})
test.after.always(async () => {
  await lanes?.stop()
  await api?.close()
  await sink?.close()
})

const EVIL = 'X-Evil: yes'
const ATTACKS = [
  ...[
    '\r\n',
    '\n',
    '\r',
    '\r\n ',
    '\n\t',
    '\u0000',
    '\u0085',
    '\u2028',
    '\u2029',
    '\u000b',
    '\u000c',
    '\r\n\r\n',
  ].map((end) => `A${end}${EVIL}`),
  `=?utf-8?Q?A=0D=0A${EVIL.replaceAll(' ', '_')}?=`,
  `=?utf-8?B?${Buffer.from(`A\r\n${EVIL}`).toString('base64')}?=`,
  `" <evil@evil.example>, "${EVIL}`,
  `A%0d%0a${EVIL}`,
  `${'é'.repeat(90)}\u2028${EVIL}`,
  `${'word '.repeat(60)}\u2029${EVIL}`,
]
const ALWAYS = ['from', 'to', 'subject', 'date', 'message-id', 'mime-version', 'content-type']
const OURS = new Set([...ALWAYS, 'reply-to', 'list-unsubscribe', 'list-unsubscribe-post'])
const UNPRINTABLE = /[^\t\x20-\x7e]/
const CONTROL = /[\p{Cc}\u2028\u2029]/u

/** The headers of a message as bytes say them, each with its continuations; a header that is not ours fails. */
function headersOf(raw: Buffer): Map<string, string> {
  const text = raw.toString('latin1')
  const head = text.slice(0, text.indexOf('\r\n\r\n'))
  const headers = new Map<string, string>()
  for (const line of head.split(/\r\n(?![ \t])/)) {
    const [, name = '', value = ''] = /^([!-9;-~]+): (.*)$/s.exec(line) ?? []
    if (!OURS.has(name.toLowerCase())) throw new Error(`a header that is not ours: ${JSON.stringify(line)}`)
    if (headers.has(name.toLowerCase())) throw new Error(`${name} stands twice`)
    headers.set(name.toLowerCase(), value)
  }
  for (const name of ALWAYS)
    if (!headers.has(name)) throw new Error(`${name} is missing, the header ended early`)
  // Every line ends with CRLF and nothing else looks like an end, nor an empty line that is only folded.
  const lines = head.split('\r\n')
  if (lines.some((line) => line.trim() === '' || UNPRINTABLE.test(line)))
    throw new Error(JSON.stringify(head))
  // Encoded words are only our own, and hold no line either; a bare address is never decoded.
  const decodable = ['from', 'to', 'subject'].map((name) => headers.get(name) ?? '').join('\n')
  for (const [, coded = '', end] of decodable.matchAll(/=\?((?:utf-8\?B\?[A-Za-z0-9+/=]+)?)(\?=)?/g)) {
    const decoded = Buffer.from(coded.slice('utf-8?B?'.length), 'base64').toString()
    if (!coded || !end || CONTROL.test(decoded)) throw new Error(`not an encoded word of ours: ${head}`)
  }
  return headers
}

/** Headers of the one message that reached an address, once it has. */
async function received(email: string): Promise<Map<string, string>> {
  const mail = await eventually(`the email to ${email}`, () =>
    sink.accepted().find(({ recipient }) => recipient === email),
  )
  return headersOf(mail.raw)
}

test.serial('the frozen door: name of the sender, subject, preview, answers, recipient', async (t) => {
  const sent: string[] = []
  let count = 0
  for (const attack of ATTACKS) {
    const address = `hello@${organization.domain}`
    for (const change of [
      { subject: attack },
      { preview: attack },
      { from: `${attack} <${address}>` },
      { from: `"${attack}" <${address}>` },
      { from: `Shop <${address}${attack}>` },
      { replyTo: `a@b.example${attack}` },
      { to: `a@b.example${attack}` },
      { content: attack },
    ]) {
      const to = `v${(count += 1)}@reader.example`
      const body = { to, subject: 'Hi', content: 'Hi', ...change }
      const { status } = await api.request('POST', '/api/v1/emails', { token: organization.token, body })
      t.true([200, 422].includes(status), `${status} to ${JSON.stringify(change)}`)
      if (status === 200) sent.push(to)
    }
  }
  t.true(sent.length > 20)
  for (const to of sent) t.true((await received(to)).has('subject'))
})

test.serial(
  'double opt-in: name, fields, organization, sender and subject of the confirmation',
  async (t) => {
    await organization.data('add_subscriber', { email: 'first@reader.example', fields: { evil: 'x' } })
    const subject = 'Please confirm {{name}} {{evil}} {{org-name}} {{email}}'
    const markdown = 'Hi {{name}} [confirm]({{confirm-url}})'
    await organization.data('update_organization_settings', { confirmationEmail: { subject, markdown } })
    let count = 0
    for (const attack of ATTACKS) {
      const email = `d${(count += 1)}@reader.example`
      // The door refuses what it can tell; the rest of the way is held for rows that came in by another.
      const named = await organization.call('add_subscriber', {
        email: `x${email}`,
        name: attack,
        fields: { evil: attack },
      })
      t.true([200, 400].includes(named.status))
      if (named.status === 200) t.true((await received(`x${email}`)).has('subject'))
      for (const [tool, input] of [
        ['update_organization_settings', { name: attack }],
        ['update_organization_settings', { confirmationEmail: { subject: attack, markdown } }],
        ['create_email_sender', { localPart: `s${count}`, domain: organization.domain, name: attack }],
        [
          'create_email_sender',
          { localPart: `r${count}`, domain: organization.domain, name: 'x', replyTo: `a@b.co${attack}` },
        ],
        ['add_subscriber', { email: `a@reader.example${attack}` }],
      ] as const) {
        t.true([200, 400].includes((await organization.call(tool, input)).status), `${tool} ${attack}`)
      }
      await organization.data('update_organization_settings', { confirmationEmail: { subject, markdown } })
      await plant(attack)
      t.is((await organization.call('add_subscriber', { email })).status, 200)
      const headers = await received(email)
      t.is(headers.get('to'), email)
      t.true(headers.get('from')?.endsWith(`<hello@${organization.domain}>`), headers.get('from'))
    }
  },
)

test.serial(
  'whatever is stored: names, fields, answers and organization of an email to a subscriber',
  async (t) => {
    const text = 'Hi {{name}} {{evil}} {{org-name}} {{email}}'
    for (const [index, attack] of ATTACKS.entries()) {
      const email = `s${index}@reader.example`
      await organization.data('add_subscriber', { email, fields: { evil: 'x' }, skipDoubleOptIn: true })
      await plant(attack)
      const body = { to: email, subject: text, preview: text, content: text }
      const { status } = await api.request('POST', '/api/v1/emails', { token: organization.token, body })
      t.is(status, 200)
      const headers = await received(email)
      t.true(headers.get('to')?.endsWith(`<${email}>`), headers.get('to'))
      t.true(headers.get('from')?.endsWith(`<hello@${organization.domain}>`), headers.get('from'))
      t.true(headers.has('reply-to'))
    }
  },
)

/** Puts a text where every header takes from, past the doors; PostgreSQL keeps all of it but NUL. */
async function plant(attack: string): Promise<void> {
  const text = attack.replaceAll('\u0000', '')
  await execute(
    api.services.orm.em.fork(),
    sql`with named as (update organization set name = ${text} where id = ${organization.id}),
      answered as (update sender set name = ${text}, reply_to = ${`a@b.example${text}`}
        where organization_id = ${organization.id} and is_default)
      update subscriber set name = ${text}, fields = jsonb_build_object('evil', ${text}::text)
      where organization_id = ${organization.id}`,
  )
}
