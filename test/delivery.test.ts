import test from 'ava'
import { sql } from 'kysely'
import { simpleParser } from 'mailparser'

import { execute, row } from '../src/database.ts'
import { encodeId } from '../src/ids.ts'
import { eventually } from './helpers/eventually.ts'
import { openMailroom } from './helpers/mailroom.ts'

test('an accepted email is sent, with its parts, headers and frozen links, and recorded once', async (t) => {
  const room = await openMailroom()
  t.teardown(() => room.close())
  const person = await room.person({ name: 'Lin Chen' })
  await room.start()
  const id = await room.send(person)

  await eventually('the email to be recorded', async () => (await room.message(id)).status === 'SENT')
  t.is(room.sink.accepted().length, 1)
  const [entry] = room.sink.accepted()
  t.is(entry?.recipient, person.email)
  t.is(entry?.messageId, `<${encodeId('eml', id)}@shop.example>`)
  const mail = await simpleParser(entry?.raw ?? '')
  t.is(mail.subject, 'Hello Lin Chen')
  t.is(mail.from?.text, '"Shop" <hello@shop.example>')
  t.regex(mail.text ?? '', /Hi Lin Chen/)
  t.regex(String(mail.html), /\/c\/[A-Za-z0-9_-]{60,}/)
  t.regex(String(mail.html), /\/o\/[A-Za-z0-9_-]{60,}\.gif/)
  t.false(mail.headers.has('list-unsubscribe'))
  t.like(await room.message(id), { subject: 'Hello Lin Chen', attempts: 1, response: '250 2.0.0 ok', resent: false })
  const link = await row<{ targets: string[] }>(
    room.services.orm.em.fork(),
    sql`select targets from link where message_id = ${id}`,
  )
  t.is(link?.targets[0], 'https://shop.example/a')
  t.deepEqual(await room.events(person.id), ['EMAIL_SENT'])
  const stat = await row<{ sent: number }>(
    room.services.orm.em.fork(),
    sql`select email_count as sent from subscriber_stat where subscriber_id = ${person.id}`,
  )
  t.is(stat?.sent, 1)
  t.is(await room.queueSize(), 0)
})

test('marketing mail carries the one-click headers and goes to subscribed people only', async (t) => {
  const room = await openMailroom()
  t.teardown(() => room.close())
  const [subscribed, gone] = [await room.person(), await room.person({ status: 'UNSUBSCRIBED' })]
  await room.start()
  const first = await room.send(subscribed, { class: 'CAMPAIGN', marketing: true })
  const second = await room.send(gone, { class: 'CAMPAIGN', marketing: true })
  await eventually('both outcomes', async () => (await room.queueSize()) === 0)

  t.is((await room.message(first)).status, 'SENT')
  t.like(await room.message(second), { status: 'SKIPPED', reason: 'UNSUBSCRIBED' })
  const raw = room.sink.accepted()[0]?.raw.toString() ?? ''
  t.regex(raw, /^List-Unsubscribe: <http:\/\/127\.0\.0\.1:3000\/u\/[A-Za-z0-9_-]+>\r\n/m)
  t.regex(raw, /^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n/m)
  const decision = await row<{ action: string; reason: string }>(
    room.services.orm.em.fork(),
    sql`select action, reason from decision where message_id = ${second}`,
  )
  t.deepEqual(decision, { action: 'SEND_EMAIL', reason: 'UNSUBSCRIBED' })
})

test('a key makes one message, whoever asks and however often', async (t) => {
  const room = await openMailroom()
  t.teardown(() => room.close())
  const person = await room.person()
  const draft = room.draftTo(person, { key: 'run/1/step/1' })
  const both = await room.enqueue(room.organizationId, [draft, draft])
  const again = await Promise.all(Array.from({ length: 10 }, () => room.enqueue(room.organizationId, [draft])))
  const ids = new Set([...both, ...again.flat()].map(({ id }) => id))
  t.is(ids.size, 1)
  t.deepEqual(
    again.flat().map(({ created }) => created),
    Array.from({ length: 10 }, () => false),
  )
  t.is(await room.queueSize(), 1)
})
