import { fork } from 'node:child_process'
import { queryObjects } from 'node:v8'

import test from 'ava'
import { sql } from 'kysely'
import { simpleParser } from 'mailparser'
import { pino } from 'pino'

import { selfSigned } from '../scripts/services/certificate.ts'
import { execute, row, rows } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { returnPathOf } from '../src/delivery/return-path.ts'
import { createWaiter } from '../src/delivery/waiter.ts'
import type { NewMessage } from '../src/domain/emails/messages.ts'
import { encodeId, newId } from '../src/ids.ts'
import { eventually } from './helpers/eventually.ts'
import { openMailroom, QUICK, type RelayUrl } from './helpers/mailroom.ts'

function withoutSource(draft: NewMessage): NewMessage {
  const copy = { ...draft }
  delete copy.source
  return copy
}

test.serial(
  'an accepted email is sent, with its parts, headers and frozen links, and recorded once',
  async (t) => {
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
    const { organizationId } = person
    const mailFrom = { organizationId, id, fromEmail: 'hello@shop.example' }
    t.is(entry?.from, returnPathOf(room.services.config.secret, mailFrom))
    const mail = await simpleParser(entry?.raw ?? '')
    t.is(mail.subject, 'Hello Lin Chen')
    t.is(mail.from?.text, '"Shop" <hello@shop.example>')
    t.regex(mail.text ?? '', /Hi Lin Chen/)
    t.regex(String(mail.html), /\/c\/[A-Za-z0-9_-]{60,}/)
    t.regex(String(mail.html), /\/o\/[A-Za-z0-9_-]{60,}\.gif/)
    t.false(mail.headers.has('list-unsubscribe'))
    t.like(await room.message(id), {
      subject: 'Hello Lin Chen',
      attempts: 1,
      response: '250 2.0.0 ok',
      resent: false,
    })
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
  },
)

test.serial('marketing mail carries the one-click headers and goes to subscribed people only', async (t) => {
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

test.serial('a key makes one message, whoever asks and however often', async (t) => {
  const room = await openMailroom()
  t.teardown(() => room.close())
  const person = await room.person()
  const draft = room.draftTo(person, { key: 'run/1/step/1' })
  const both = await room.enqueue(room.organizationId, [draft, draft])
  const again = await Promise.all(
    Array.from({ length: 10 }, () => room.enqueue(room.organizationId, [draft])),
  )
  const ids = new Set([...both, ...again.flat()].map(({ id }) => id))
  t.is(ids.size, 1)
  t.deepEqual(
    again.flat().map(({ created }) => created),
    Array.from({ length: 10 }, () => false),
  )
  t.is(await room.queueSize(), 1)
})

test.serial('4xx is tried again and told once, and the retry gets through', async (t) => {
  let refusals = 3
  const room = await openMailroom({
    behaviour: {
      onRecipient: () => (refusals-- > 0 ? { code: 451, text: '4.7.1 greylisted' } : 'accept'),
    },
  })
  t.teardown(() => room.close())
  const person = await room.person()
  await room.start()
  const id = await room.send(person)
  await eventually('the retry', async () => (await room.message(id)).status === 'SENT')
  t.like(await room.message(id), { attempts: 4, reason: null, bounceCategory: null })
  t.deepEqual(await room.events(person.id), ['EMAIL_DELIVERY_DELAYED', 'EMAIL_SENT'])
  t.is(room.sink.accepted().length, 1)
})

test.serial('the links of a retry lead where the email that arrives says', async (t) => {
  let isAway = true
  const room = await openMailroom({
    behaviour: { onRecipient: () => (isAway ? { code: 451, text: '4.7.1 greylisted' } : 'accept') },
  })
  t.teardown(() => room.close())
  const person = await room.person()
  const em = () => room.services.orm.em.fork()
  const setCode = (code: string) =>
    execute(
      em(),
      sql`update subscriber set fields = jsonb_build_object('code', ${code}::text) where id = ${person.id}`,
    )
  await setCode('first')
  const content = '[Redeem](https://shop.example/{{code}}) the code {{code}}'
  const source = { subject: 'Hello', content, contentType: 'MARKDOWN', preview: null } as const
  const id = await room.send(person, { source })
  await room.start()
  await eventually('the first try', async () => (await room.message(id)).status === 'DELAYED')
  await setCode('second')
  // A try that was under way still has the first code, so the relay refuses one more.
  const { attempts } = await room.message(id)
  await eventually('another try', async () => (await room.message(id)).attempts > attempts + 1)
  isAway = false
  await eventually('the retry', async () => (await room.message(id)).status === 'SENT')
  t.regex((await simpleParser(room.sink.accepted()[0]?.raw ?? '')).text ?? '', /the code second/)
  const link = await row<{ targets: string[] }>(em(), sql`select targets from link where message_id = ${id}`)
  t.is(link?.targets[0], 'https://shop.example/second')
})

test.serial(
  'an address that does not exist bounces at once, is suppressed and gets nothing more',
  async (t) => {
    const room = await openMailroom({
      behaviour: { onRecipient: () => ({ code: 550, text: '5.1.1 no such user' }) },
    })
    t.teardown(() => room.close())
    const person = await room.person()
    await room.start()
    const id = await room.send(person)
    await eventually('the bounce', async () => (await room.message(id)).status === 'BOUNCED')
    t.like(await room.message(id), {
      bounceCategory: 'NO_SUCH_USER',
      response: '550 5.1.1 no such user',
      attempts: 1,
    })
    t.deepEqual(await room.events(person.id), ['EMAIL_BOUNCED'])
    const em = room.services.orm.em.fork()
    const subscriber = sql`select status, bounce_category as category from subscriber where id = ${person.id}`
    t.deepEqual(await row(em, subscriber), { status: 'BOUNCED', category: 'NO_SUCH_USER' })
    t.like(await row(em, sql`select reason, source from suppression where email_key = ${person.email}`), {
      reason: 'HARD_BOUNCE',
      source: 'delivery',
    })
    const next = await room.send(person)
    await eventually(
      'the next email to be skipped',
      async () => (await room.message(next)).status === 'SKIPPED',
    )
    t.is((await room.message(next)).reason, 'SUPPRESSED')
  },
)

test.serial('a refusal of the sender fails the email and says nothing of the recipient', async (t) => {
  const replies: Record<string, { code: number; text: string }> = {
    domain: { code: 550, text: '5.1.8 <x@shop.example>: Sender address rejected: Domain not found' },
    mailbox: { code: 553, text: '5.1.8 Domain of sender address does not exist' },
    malformed: { code: 550, text: '5.1.7 bad sender address' },
    unlisted: { code: 550, text: '5.1.0 <x@shop.example>: Sender address rejected: User unknown' },
    unverified: {
      code: 550,
      text: 'Verification failed for <x@shop.example>: No Such User; Sender verify failed',
    },
    later: { code: 450, text: '4.1.8 <x@shop.example>: Sender address rejected: Domain not found' },
  }
  const room = await openMailroom({
    behaviour: { onRecipient: (address) => replies[address.split('@')[0] ?? ''] ?? 'accept' },
  })
  t.teardown(() => room.close())
  await room.start()
  const people = await Promise.all(
    Object.keys(replies).map((name) => room.person({ email: `${name}@reader.example` })),
  )
  const ids = await Promise.all(people.map((person) => room.send(person)))
  await eventually('those refused for good to end', async () => (await room.queueSize()) === 1)
  const em = room.services.orm.em.fork()
  await execute(em, sql`update delivery_queue set first_tried_at = now() - interval '25 hours'`)
  await eventually('the last to be given up', async () => (await room.queueSize()) === 0)

  for (const id of ids) {
    t.like(await room.message(id), { status: 'FAILED', reason: 'SENDER_REFUSED', bounceCategory: null })
  }
  t.deepEqual(await rows(em, sql`select email from subscriber where status = 'BOUNCED'`), [])
  t.deepEqual(await rows(em, sql`select email_key from suppression`), [])
  const events = await Promise.all(people.map(({ id }) => room.events(id)))
  t.false(events.flat().includes('EMAIL_BOUNCED'))
})

test.serial(
  'an email that is too large for the relay fails because of its size, not of its sender',
  async (t) => {
    const texts = [
      '5.3.4 Message size exceeds fixed limit',
      'message size exceeds fixed maximum message size',
    ]
    let count = 0
    const room = await openMailroom({
      behaviour: { onSender: () => ({ code: 552, text: texts[count++] ?? '' }) },
    })
    t.teardown(() => room.close())
    await room.start()
    for (const text of texts) {
      const id = await room.send(await room.person())
      await eventually('the refusal', async () => (await room.queueSize()) === 0)
      t.like(await room.message(id), {
        status: 'FAILED',
        reason: 'CONTENT',
        bounceCategory: null,
        response: `552 ${text}`,
      })
    }
  },
)

test.serial('each refusal gets its category; soft ones are tried until a day is over', async (t) => {
  const replies: Record<string, { code: number; text: string }> = {
    full: { code: 552, text: '5.2.2 mailbox full' },
    filling: { code: 452, text: '4.2.2 mailbox over quota' },
    policy: { code: 554, text: '5.7.1 rejected by policy' },
    content: { code: 554, text: '5.6.0 bad content' },
    internal: { code: 550, text: '5.4.4 no route' },
    loop: { code: 554, text: '5.4.6 too many hops' },
    plain: { code: 550, text: 'no' },
  }
  const room = await openMailroom({
    behaviour: { onRecipient: (address) => replies[address.split('@')[0] ?? ''] ?? 'accept' },
  })
  t.teardown(() => room.close())
  await room.start()
  const ids: Record<string, string> = {}
  for (const name of Object.keys(replies)) {
    ids[name] = await room.send(await room.person({ email: `${name}@reader.example` }))
  }
  const of = (name: string) => room.message(ids[name] ?? '')
  await eventually('the hard one', async () => (await of('internal')).status === 'BOUNCED')
  for (const name of ['full', 'filling', 'policy', 'content', 'loop', 'plain']) {
    await eventually(`${name} to be tried again`, async () => (await of(name)).attempts > 1)
    t.is((await of(name)).status, 'DELAYED')
  }
  await execute(
    room.services.orm.em.fork(),
    sql`update delivery_queue set first_tried_at = now() - interval '25 hours'`,
  )
  await eventually('all to be over', async () => (await room.queueSize()) === 0)
  const categories = await Promise.all(
    Object.keys(replies).map(async (name) => (await of(name)).bounceCategory),
  )
  t.deepEqual(categories, [
    'MAILBOX_FULL',
    'MAILBOX_FULL',
    'POLICY',
    'CONTENT',
    'INTERNAL',
    'TRANSIENT',
    'POLICY',
  ])
  const ledger = await rows<{ reason: string; last: string; attempts: number }>(
    room.services.orm.em.fork(),
    sql`select reason, data ->> 'reason' as last, (data ->> 'attempts')::int as attempts from decision
      where action = 'SEND_EMAIL' order by reason, last`,
  )
  t.deepEqual(
    ledger.map(({ reason, last }) => `${reason} ${last}`),
    [
      'INTERNAL INTERNAL',
      ...['CONTENT', 'MAILBOX_FULL', 'MAILBOX_FULL', 'POLICY', 'POLICY', 'TRANSIENT'].map(
        (last) => `RETRIES_OVER ${last}`,
      ),
    ],
  )
  t.true(ledger.slice(1).every(({ attempts }) => attempts > 1))
})

test.serial(
  'without a code, words decide that a mailbox is unknown, and only what is said of the recipient',
  async (t) => {
    const said: Record<string, [text: string, status: string, category: string | null]> = {
      none: ['No such user here', 'BOUNCED', 'NO_SUCH_USER'],
      unknown: ['<x@reader.example>: User unknown', 'BOUNCED', 'NO_SUCH_USER'],
      postbox: ['sorry, no mailbox here by that name', 'BOUNCED', 'NO_SUCH_USER'],
      host: ['your address 192.0.2.1 is unknown', 'DELAYED', null],
      policy: ['5.7.1 no such user, says our policy', 'DELAYED', null],
    }
    const answer = (address: string) => said[address.split('@')[0] ?? '']?.[0] ?? 'no'
    const room = await openMailroom({
      behaviour: {
        onRecipient: (address) =>
          address.startsWith('content') ? 'accept' : { code: 550, text: answer(address) },
        onMessage: () => ({ code: 550, text: 'No such user' }),
      },
    })
    t.teardown(() => room.close())
    await room.start()
    said['content'] = ['', 'DELAYED', null]
    for (const [name, [, status, category]] of Object.entries(said)) {
      const id = await room.send(await room.person({ email: `${name}@reader.example` }))
      await eventually(`an answer about ${name}`, async () => (await room.message(id)).attempts > 0)
      const { status: found, bounceCategory } = await room.message(id)
      t.deepEqual([found, found === 'BOUNCED' ? bounceCategory : null], [status, category], name)
    }
  },
)

test.serial('soft bounces count for the address that they came from, and not for the next one', async (t) => {
  const room = await openMailroom({
    behaviour: { onRecipient: () => ({ code: 552, text: '5.2.2 mailbox full' }) },
  })
  t.teardown(() => room.close())
  const person = await room.person({ email: 'new@reader.example' })
  const em = room.services.orm.em.fork()
  await room.start()
  const giveUp = async () => {
    const id = await room.send(person)
    await eventually('a first try', async () => (await room.message(id)).status === 'DELAYED')
    await execute(em, sql`update delivery_queue set first_tried_at = now() - interval '25 hours'`)
    await eventually('it to be given up', async () => (await room.message(id)).status === 'BOUNCED')
  }
  const suppressed = async () =>
    (await rows<{ reason: string }>(em, sql`select reason from suppression`)).map(({ reason }) => reason)
  await execute(
    em,
    sql`insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email, status,
        bounce_category)
      select new_id(), ${person.organizationId}, 'TRANSACTIONAL', false, ${person.id}, 'old@reader.example',
        'hello@shop.example', 'BOUNCED', 'MAILBOX_FULL' from generate_series(1, 4)`,
  )
  await giveUp()
  t.deepEqual(await suppressed(), [])
  await execute(
    em,
    sql`update message set recipient = 'New@reader.example' where recipient = 'old@reader.example'`,
  )
  await giveUp()
  t.deepEqual(await suppressed(), ['SOFT_BOUNCE'])
})

test.serial('the day of tries begins with the first, however long an email waited before', async (t) => {
  let puttings = 2
  const room = await openMailroom({
    behaviour: {
      onRecipient: () => (puttings-- > 0 ? { code: 451, text: '4.7.1 greylisted' } : 'accept'),
    },
  })
  t.teardown(() => room.close())
  const id = await room.send(await room.person())
  await execute(
    room.services.orm.em.fork(),
    sql`update delivery_queue set created_at = now() - interval '40 hours'`,
  )
  await room.start()
  await eventually('the third try', async () => (await room.message(id)).status === 'SENT')
  t.is((await room.message(id)).attempts, 3)
})

test.serial(
  'a relay that is away delays nothing but the email: no try is counted and nobody is told',
  async (t) => {
    const room = await openMailroom({ behaviour: { onConnect: (n) => (n <= 3 ? 'drop' : 'accept') } })
    t.teardown(() => room.close())
    const person = await room.person()
    await room.start()
    const id = await room.send(person)
    await eventually('the relay to be back', async () => (await room.message(id)).status === 'SENT')
    t.is((await room.message(id)).attempts, 1)
    t.deepEqual(await room.events(person.id), ['EMAIL_SENT'])
  },
)

test.serial(
  'an outage of the relay uses up nothing of the day of tries, before or after the first',
  async (t) => {
    let [isAway, isPuttingOff] = [true, true]
    const room = await openMailroom({
      env: { LOG_LEVEL: 'silent' },
      behaviour: {
        onConnect: () => (isAway ? 'drop' : 'accept'),
        onRecipient: () => (isPuttingOff ? { code: 451, text: '4.7.1 greylisted' } : 'accept'),
      },
    })
    t.teardown(() => room.close())
    const em = room.services.orm.em.fork()
    const aDayPasses = sql`update delivery_queue set first_tried_at = first_tried_at - interval '25 hours',
    next_attempt_at = next_attempt_at - interval '25 hours'`
    await room.start()
    const id = await room.send(await room.person())
    const isBack = async () => (await room.message(id)).reason === 'RELAY_UNREACHABLE'
    await eventually('the relay to be found away', isBack)
    await execute(em, aDayPasses)
    isAway = false
    await eventually('the first try', async () => (await room.message(id)).status === 'DELAYED')
    await execute(em, aDayPasses)
    const { attempts } = await room.message(id)
    // The next try may have begun before that day had passed.
    await eventually('a try after that day', async () => (await room.message(id)).attempts > attempts + 1)
    isPuttingOff = false
    await eventually('the email to go out', async () => (await room.message(id)).status === 'SENT')
    t.is((await room.message(id)).bounceCategory, null)
  },
)

test.serial(
  'a connection that drops before 250 sends again with the same Message-ID and says so',
  async (t) => {
    let drops = 1
    const room = await openMailroom({ behaviour: { onMessage: () => (drops-- > 0 ? 'drop' : 'accept') } })
    t.teardown(() => room.close())
    await room.start()
    const id = await room.send(await room.person())
    await eventually('the repetition', async () => (await room.message(id)).status === 'SENT')
    t.is(room.sink.journal.length, 2)
    t.is(room.sink.journal[0]?.messageId, room.sink.journal[1]?.messageId)
    t.true((await room.message(id)).resent)
  },
)

test.serial('an email whose outcome the database rejects holds up nobody else', async (t) => {
  const names = ['good', 'reply', 'outcome', 'link', 'well', 'fine']
  const room = await openMailroom({
    env: { LOG_LEVEL: 'silent' },
    behaviour: {
      onMessage: ({ recipient }) =>
        recipient.startsWith('reply') ? { code: 250, text: '2.0.0 cursed' } : 'accept',
    },
  })
  t.teardown(() => room.close())
  await execute(
    room.services.orm.em.fork(),
    sql`alter table message add check (response not like '%cursed%'),
      add check (status <> 'SENT' or recipient not like 'outcome%')`,
  )
  await execute(
    room.services.orm.em.fork(),
    sql`alter table link add check (not 'https://shop.example/cursed' = any(targets))`,
  )
  const ids: string[] = []
  for (const name of names) {
    const person = await room.person({ email: `${name}@reader.example` })
    const content = name === 'link' ? '[read](https://shop.example/cursed)' : 'Hi'
    ids.push(
      await room.send(person, {
        source: { subject: 'Hello', content, contentType: 'MARKDOWN', preview: null },
      }),
    )
  }
  await room.start()
  await eventually('every outcome', async () => (await room.queueSize()) === 0)
  const found = await Promise.all(ids.map((id) => room.message(id)))
  t.deepEqual(
    found.map(({ status, reason }, index) => [names[index], status, reason]),
    [
      ['good', 'SENT', null],
      ['reply', 'SENT', null],
      ['outcome', 'FAILED', 'OUTCOME_REJECTED'],
      ['link', 'FAILED', 'RENDER_FAULT'],
      ['well', 'SENT', null],
      ['fine', 'SENT', null],
    ],
  )
  t.is(room.sink.journal.length, 5)
})

test.serial(
  'an email whose content or key the database fails to read goes back, and out later',
  async (t) => {
    const room = await openMailroom({ env: { LOG_LEVEL: 'silent' } })
    t.teardown(() => room.close())
    const fork = () => room.services.orm.em.fork()
    const [reader, customer] = [await room.person(), await room.person()]
    const automationId = newId()
    const parts = { class: 'AUTOMATION', marketing: true, automationId, stepId: 'hello' } as const
    const draft = { ...parts, ...(await room.automation(automationId, reader)) }
    const [queued] = await room.enqueue(reader.organizationId, [withoutSource(room.draftTo(reader, draft))])
    const ids = [queued?.id ?? '', await room.send(customer)]
    const found = async () => await Promise.all(ids.map((id) => room.message(id)))

    await fork().transactional(async (em) => {
      await execute(em, sql`lock table automation_version, dkim_key in access exclusive mode`)
      await room.start()
      await eventually('both to have gone back', async () => {
        await rows(
          fork(),
          sql`select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database()
          and wait_event_type = 'Lock' and (query like '%from automation_version%' or query like '%join dkim_key%')
          and pid <> pg_backend_pid()`,
        )
        return (await found()).every(({ reason }) => reason !== null)
      })
      t.deepEqual(
        (await found()).map(({ status, reason }) => [status, reason]),
        ids.map(() => ['QUEUED', 'CONTENT_UNREADABLE']),
      )
    })
    await eventually('both to be sent', async () => (await room.queueSize()) === 0)
    t.deepEqual(
      (await found()).map(({ status, reason, attempts }) => [status, reason, attempts]),
      ids.map(() => ['SENT', null, 1]),
    )
    t.is(room.sink.journal.length, 2)
  },
)

test.serial(
  'an email of which the database takes nothing is ended or set apart, is said once, and holds up nobody',
  async (t) => {
    const names = ['good', 'stuck', 'unmarked', 'well']
    const room = await openMailroom({ env: { LOG_LEVEL: 'silent' } })
    t.teardown(() => room.close())
    const em = room.services.orm.em.fork()
    await execute(em, sql`alter table message add check (status = 'QUEUED' or recipient not like 'stuck%')`)
    const ids: string[] = []
    for (const name of names) {
      const person = await room.person({ email: `${name}@reader.example` })
      const source = { subject: 'Hello', content: 'Hi', contentType: 'MARKDOWN' as const, preview: null }
      ids.push(await room.send(person, { source }))
    }
    await execute(
      em,
      sql`alter table delivery_queue add check (not submitting or id <> ${sql.lit(ids[names.indexOf('unmarked')])})`,
    )
    // If the lease ran out, the email would be claimed again.
    await room.start({ leaseMs: 5_000 })
    const states = async () =>
      await rows<{ name: string; state: string }>(
        em,
        sql`select split_part(m.recipient, '@', 1) as name, q.state from delivery_queue q join message m on m.id = q.id`,
      )
    await eventually('what can be ended to be over', async () => {
      const left = await states()
      return left.length === 1 && left[0]?.state === 'apart'
    })
    t.deepEqual(await states(), [{ name: 'stuck', state: 'apart' }])
    // Another email takes longer than that lease.
    room.sink.behaviour = { onMessage: () => ({ afterMs: 5_500, reply: 'accept' }) }
    const later = await room.send(await room.person({ email: 'later@reader.example' }))
    await eventually('the later email', async () => (await room.message(later)).status === 'SENT')
    const found = await Promise.all(ids.map((id) => room.message(id)))
    t.deepEqual(
      found.map(({ status, reason }, index) => [names[index], status, reason]),
      [
        ['good', 'SENT', null],
        ['stuck', 'QUEUED', null],
        ['unmarked', 'FAILED', 'MARK_REJECTED'],
        ['well', 'SENT', null],
      ],
    )
    const said = room.sink.journal.map(({ recipient }) => recipient.split('@')[0] ?? '')
    t.deepEqual(
      said.toSorted((one, other) => one.localeCompare(other)),
      ['good', 'later', 'stuck', 'well'],
    )
  },
)

test.serial('a server that stalls before the final dot is given up before the lease ends', async (t) => {
  let stalls = 1
  const room = await openMailroom({ behaviour: { onRecipient: () => (stalls-- > 0 ? 'hang' : 'accept') } })
  t.teardown(() => room.close())
  await room.start({ leaseMs: 10_000, marginMs: 6_000 })
  const id = await room.send(await room.person())
  await eventually('the second try', async () => (await room.message(id)).status === 'SENT')
  t.is(room.sink.journal.length, 1)
  t.like(await room.message(id), { resent: false, attempts: 2 })
})

test.serial(
  'waits that end without news leave nothing behind: an idle worker waits twice a second',
  async (t) => {
    const waiter = createWaiter()
    const timers = (): number => queryObjects(setTimeout(() => {}).constructor, { format: 'count' })
    const before = timers()
    await Promise.all(Array.from({ length: 1_000 }, async () => await waiter.until(() => false, 1)))
    const kept = timers() - before
    t.true(kept < 100, `${kept} timers are kept`)
  },
)

for (const method of ['PLAIN', 'LOGIN'] as const) {
  test.serial(`a relay that wants STARTTLS and AUTH ${method} gets both, and the mail`, async (t) => {
    const guard = { ...selfSigned('localhost'), login: { user: 'shop', password: 'a secret', method } }
    const room = await openMailroom({ guard, relay: (port) => `smtp://shop:a%20secret@127.0.0.1:${port}` })
    t.teardown(() => room.close())
    await room.start()
    const id = await room.send(await room.person())
    await eventually('the email', async () => (await room.message(id)).status === 'SENT')
    t.is(room.sink.accepted().length, 1)
  })
}

test.serial(
  'with a wrong password, or a certificate nobody vouches for, mail waits with a reason',
  async (t) => {
    const guard = {
      ...selfSigned('localhost'),
      login: { user: 'shop', password: 'right', method: 'PLAIN' as const },
    }
    const relays: Record<string, [RelayUrl, RegExp]> = {
      password: [(port) => `smtp://shop:wrong@127.0.0.1:${port}`, /^535 5\.7\.8/],
      certificate: [
        (port) => `smtp://shop:right@127.0.0.1:${port}?starttls=required`,
        /self-signed certificate/,
      ],
    }
    for (const [relay, response] of Object.values(relays)) {
      const room = await openMailroom({ guard, relay, env: { LOG_LEVEL: 'silent' } })
      t.teardown(() => room.close())
      const lanes = await room.start()
      const person = await room.person()
      const id = await room.send(person)
      await eventually('a reason', async () => (await room.message(id)).response !== null)
      const waiting = await room.message(id)
      t.is(waiting.reason, 'RELAY_UNREACHABLE')
      t.regex(waiting.response ?? '', response)
      t.true(['QUEUED', 'SUBMITTING'].includes(waiting.status), waiting.status)
      t.is(await room.queueSize(), 1)
      t.deepEqual(room.sink.journal, [])
      t.deepEqual(await room.events(person.id), [])
      await lanes.stop()
      t.is(await room.queueSize(), 1)
    }
  },
)

test.serial('a sender that froze past its lease sends nothing more once another took over', async (t) => {
  const connections = 4
  const leaseMs = 15_000
  const answers = Promise.withResolvers<void>()
  let isFirst = true
  const room = await openMailroom({
    behaviour: {
      // For the first sender, one email reaches the final dot and the others reach their recipient.
      onRecipient: (address) =>
        isFirst && !address.startsWith('late') ? { after: answers.promise, reply: 'accept' } : 'accept',
      onMessage: () => (isFirst ? 'hang' : 'accept'),
    },
  })
  t.teardown(() => room.close())
  const people = await Promise.all(
    ['late', 'one', 'two', 'three'].map((name) => room.person({ email: `${name}@reader.example` })),
  )
  const made = await room.enqueue(
    room.organizationId,
    people.map((person) => room.draftTo(person)),
  )
  const sender = fork(new URL('helpers/sender-process.ts', import.meta.url), {
    env: {
      ...process.env,
      DATABASE_URL: room.services.databaseUrl,
      RELAY_URL: room.sink.url,
      CONNECTIONS: String(connections),
      LEASE_MS: String(leaseMs),
      LANE_RATE_TRANSACTIONAL: '0',
      LOG_LEVEL: 'silent',
    },
  })
  t.teardown(() => sender.kill('SIGKILL'))
  await eventually(
    'the first sender',
    () => room.sink.journal.length === 1 && room.sink.connections.open === 4,
  )
  sender.kill('SIGSTOP')
  isFirst = false
  answers.resolve()
  await room.start({ connections, leaseMs })
  await eventually('everything to be sent', async () => (await room.queueSize()) === 0)
  sender.kill('SIGCONT')
  // The resumed sender now gets its late answers, and must not act on them.
  await eventually(
    'the first sender to give up',
    () => room.sink.connections.open <= room.sink.connections.total - 3,
  )

  t.is(room.sink.accepted().length, 4)
  t.is(room.sink.journal.length, 5)
  const messages = await Promise.all(made.map(({ id }) => room.message(id)))
  t.deepEqual(
    messages.map(({ status, resent }) => [status, resent]),
    [
      ['SENT', true],
      ['SENT', true],
      ['SENT', true],
      ['SENT', true],
    ],
  )
})

test.serial(
  'kill -9 between DATA and the outcome repeats at most the open connections and loses nothing',
  async (t) => {
    const connections = 4
    let hanging = true
    const room = await openMailroom({ behaviour: { onMessage: () => (hanging ? 'hang' : 'accept') } })
    t.teardown(() => room.close())
    const sender = fork(new URL('helpers/sender-process.ts', import.meta.url), {
      env: {
        ...process.env,
        DATABASE_URL: room.services.databaseUrl,
        RELAY_URL: room.sink.url,
        CONNECTIONS: String(connections),
        LEASE_MS: '10000',
        LANE_RATE_TRANSACTIONAL: '0',
        LOG_LEVEL: 'silent',
      },
    })
    t.teardown(() => sender.kill('SIGKILL'))
    const people = await Promise.all(Array.from({ length: 20 }, () => room.person()))
    const made = await room.enqueue(
      room.organizationId,
      people.map((person) => room.draftTo(person)),
    )
    await eventually('every connection to hang', () => room.sink.journal.length === connections)
    sender.kill('SIGKILL')
    hanging = false
    await room.start({ connections })
    await eventually('everything to be sent', async () => (await room.queueSize()) === 0)

    const sent = room.sink.accepted().map(({ messageId }) => messageId)
    t.is(sent.length, 20)
    t.is(new Set(sent).size, 20)
    const before = room.sink.journal.slice(0, connections).map(({ messageId }) => messageId)
    t.true(before.every((messageId) => sent.includes(messageId)))
    const messages = await Promise.all(made.map(({ id }) => room.message(id)))
    t.is(messages.filter(({ resent }) => resent).length, connections)
    t.true(messages.every(({ status }) => status === 'SENT'))
  },
)

test.serial(
  'what is withdrawn before submission is skipped with its reason, or held while its automation is paused',
  async (t) => {
    const room = await openMailroom({
      behaviour: { onRecipient: () => ({ code: 451, text: '4.7.1 greylisted' }) },
    })
    t.teardown(() => room.close())
    const em = room.services.orm.em.fork()
    const person = await room.person()
    const automationId = newId()
    const { versionId, runId } = await room.automation(automationId, person)
    const draft = {
      class: 'AUTOMATION',
      marketing: true,
      automationId,
      versionId,
      runId,
      stepId: 'hello',
    } as const
    await execute(em, sql`update automation set status = 'PAUSED' where id = ${automationId}`)
    await room.start()
    const [held] = await room.enqueue(room.organizationId, [
      withoutSource(room.draftTo(person, { ...draft, key: 'held' })),
    ])
    const heldId = held?.id ?? ''
    const state = async () =>
      (await row<{ state: string }>(em.fork(), sql`select state from delivery_queue where id = ${heldId}`))
        ?.state
    await eventually('the email to be held', async () => (await state()) === 'held')
    await execute(em, sql`update delivery_queue set first_tried_at = now() - interval '25 hours'`)
    await execute(em, sql`update automation set status = 'ACTIVE' where id = ${automationId}`)
    await eventually('another day of tries', async () => (await room.message(heldId)).status === 'DELAYED')
    room.sink.behaviour = {}
    await eventually('the held email to go out', async () => (await room.message(heldId)).status === 'SENT')
    t.is((await room.message(heldId)).subject, 'Welcome Lin')
    const nudges = await row<{ nudges: number }>(em, sql`select count(*)::int as nudges from outbox`)
    t.is(nudges?.nudges, 1)

    await execute(
      em,
      sql`update automation_run set status = 'CANCELED', exit_reason = 'MANUAL' where id = ${runId}`,
    )
    const canceled = await room.send(person, draft)
    await eventually('the skip', async () => (await room.message(canceled)).status === 'SKIPPED')
    t.is((await room.message(canceled)).reason, 'MANUAL')
    await execute(em, sql`update automation set status = 'ARCHIVED' where id = ${automationId}`)
    const archived = await room.send(person, draft)
    await eventually('the skip', async () => (await room.message(archived)).status === 'SKIPPED')
    t.is((await room.message(archived)).reason, 'ARCHIVED')
    for (const status of ['BANNED', 'COMPLAINED']) {
      const id = await room.send(await room.person({ status }))
      await eventually('the skip', async () => (await room.message(id)).status === 'SKIPPED')
      t.is((await room.message(id)).reason, status)
    }
    t.is(room.sink.accepted().length, 1)
  },
)

test.serial('an automation that listens for EMAIL_SENT hears it', async (t) => {
  const room = await openMailroom()
  t.teardown(() => room.close())
  const person = await room.person()
  const automationId = newId()
  await room.automation(automationId, await room.person())
  await execute(
    room.services.orm.em.fork(),
    sql`insert into automation_trigger (organization_id, automation_id, step_id, type, match_key)
      values (${room.organizationId}, ${automationId}, 'start', 'EVENT', 'EMAIL_SENT')`,
  )
  await room.start()
  const id = await room.send(person)
  await eventually('the outcome', async () => (await room.message(id)).status === 'SENT')
  t.true((await room.events(person.id)).includes('EMAIL_SENT'))
})

test.serial('a small organization does not wait behind a large one', async (t) => {
  const room = await openMailroom({ env: { LANE_RATE_TRANSACTIONAL: '100' } })
  t.teardown(() => room.close())
  const person = await room.person()
  await room.enqueue(
    room.organizationId,
    Array.from({ length: 150 }, () => room.draftTo(person)),
  )
  const other = await room.organization()
  const small = await room.person({ organizationId: other })
  const smallId = await room.send(small)
  await room.start({ connections: 4 })
  await eventually('the small one', async () => (await room.message(smallId)).status === 'SENT')
  t.true(room.sink.accepted().findIndex(({ recipient }) => recipient === small.email) < 40)
})

test.serial(
  'ticks overlap, and yet no more is marked than there are connections, nor fewer of them used',
  async (t) => {
    const [connections, waves] = [6, 30]
    let turn = 0
    const room = await openMailroom({
      behaviour: { onMessage: () => ({ afterMs: (turn++ * 7) % 12, reply: 'accept' }) },
      env: { LANE_RATE_TRANSACTIONAL: '0' },
    })
    t.teardown(() => room.close())
    const person = await room.person()
    const enqueue = async (count: number) =>
      await room.enqueue(
        room.organizationId,
        Array.from({ length: count }, () => room.draftTo(person)),
      )
    await room.start({ connections, graceMs: 100 })
    const em = room.services.orm.em.fork()
    const marked: number[] = []
    for (let wave = 1; wave <= waves; wave++) {
      await enqueue(3 * connections)
      await eventually(
        'the wave to be sent',
        async () => {
          const found = await row<{ left: number; marked: number }>(
            em,
            sql`select count(*)::int as left, count(*) filter (where submitting)::int as marked from delivery_queue`,
          )
          marked.push(found?.marked ?? 0)
          return found?.left === 0
        },
        { everyMs: 2 },
      )
    }
    t.is(room.sink.journal.length, waves * 3 * connections)
    t.true(Math.max(...marked) <= connections, String(marked))

    room.sink.clear()
    room.sink.behaviour = { onMessage: () => 'hang' }
    await enqueue(2 * connections)
    await eventually('every connection to be used', () => room.sink.journal.length === connections)
  },
)

test.serial('names, subjects and addresses from anywhere stay inside their headers', async (t) => {
  const room = await openMailroom()
  t.teardown(() => room.close())
  await room.start()
  const hostile = 'Lin\r\nBcc: victim@evil.example\r\n\r\n<script>'
  const person = await room.person({ name: hostile })
  const id = await room.send(person, { fromName: `Шоп "x" ${hostile}`, replyTo: 'answers@shop.example' })
  await eventually('the email', async () => (await room.message(id)).status === 'SENT')
  const raw = room.sink.accepted()[0]?.raw.toString() ?? ''
  const head = raw.slice(0, raw.indexOf('\r\n\r\n'))
  t.notRegex(head, /^bcc:/im)
  t.notRegex(head, /[^\x20-\x7e\r\n]/)
  t.true(head.split('\r\n').every((line) => line.length <= 998))
  const mail = await simpleParser(raw)
  t.is(mail.from?.value[0]?.address, 'hello@shop.example')
  t.is(mail.from?.value[0]?.name, 'Шоп "x" Lin Bcc: victim@evil.example <script>')
  t.is(mail.subject, 'Hello Lin Bcc: victim@evil.example <script>')
  t.is(mail.replyTo?.value[0]?.address, 'answers@shop.example')

  const bad = await room.person({ email: 'x>\r\nRCPT TO:<victim@evil.example' })
  const refused = await room.send(bad)
  await eventually('the refusal', async () => (await room.message(refused)).status === 'FAILED')
  t.is((await room.message(refused)).reason, 'ADDRESS_NOT_SENDABLE')
  t.is(room.sink.journal.length, 1)
})

test.serial('a stop finishes what is being sent and puts back the rest', async (t) => {
  const room = await openMailroom({ behaviour: { onMessage: () => ({ afterMs: 300, reply: 'accept' }) } })
  t.teardown(() => room.close())
  const people = await Promise.all(Array.from({ length: 12 }, () => room.person()))
  await room.enqueue(
    room.organizationId,
    people.map((person) => room.draftTo(person)),
  )
  const lanes = await room.start({ connections: 3 })
  await eventually('some to be under way', () => room.sink.journal.length >= 3)
  await lanes.stop()
  const em = room.services.orm.em.fork()
  const left = await row<{ queued: number; other: number }>(
    em,
    sql`select count(*) filter (where state = 'queued')::int as queued, count(*) filter (where state <> 'queued')::int
      as other from delivery_queue`,
  )
  t.is(left?.other, 0)
  t.is(12 - (left?.queued ?? 0), room.sink.accepted().length)
})

test.serial('a lane that was stopped tries once to record what ends after its grace', async (t) => {
  const [quick, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const room = await openMailroom({
    behaviour: {
      onMessage: ({ recipient }) => ({
        after: recipient.startsWith('slow') ? slow.promise : quick.promise,
        reply: 'accept',
      }),
    },
  })
  t.teardown(() => room.sink.close())
  const complaints: string[] = []
  const log = pino({ level: 'error' }, { write: (line: string) => void complaints.push(line) })
  const lanes = await startLanes({ ...room.services, log }, { workerName: 'test', lane: QUICK, graceMs: 50 })
  const ids = [
    await room.send(await room.person({ email: 'quick@reader.example' })),
    await room.send(await room.person({ email: 'slow@reader.example' })),
  ]
  await eventually('both to be under way', () => room.sink.journal.length === 2)
  await lanes.stop()
  await room.services.close()
  const about = (id: string | undefined) => complaints.filter((line) => id !== undefined && line.includes(id))
  quick.resolve()
  await eventually('the end of the quick one', () => about(ids[0]).length > 0)
  slow.resolve()
  await eventually('the end of the slow one', () => about(ids[1]).length > 0)
  t.deepEqual(
    ids.map((id) => about(id).length),
    [1, 1],
  )
  t.is(complaints.length, 2)
})
