import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import { execute, rows } from '../src/database.ts'
import { returnPathOf } from '../src/delivery/return-path.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import type { TestOrganization } from './helpers/api.ts'
import { runsOf } from './helpers/automation.ts'
import { openPostOffice, type PostOffice, readReportFile, type SentEmail } from './helpers/reports.ts'
import { Talk } from './helpers/smtp-talk.ts'
import { publishWorkflow } from './helpers/workflow.ts'

type Context = { office: PostOffice; organization: TestOrganization }
const test = anyTest as TestFn<Context>

test.before(async (t) => {
  const office = await openPostOffice()
  t.context = { office, organization: await office.api.organization() }
})
test.after.always(async (t) => {
  await t.context.office?.close()
})

async function person({ office, organization }: Context, email: string) {
  const [found] = await rows<{
    id: string
    status: string
    category: string | null
    suppression: string | null
  }>(
    office.api.services.orm.em.fork(),
    sql`select s.id, s.status, s.bounce_category as category, b.reason as suppression from subscriber s
      left join suppression b on b.organization_id = s.organization_id and b.email_key = s.email_key
      where s.organization_id = ${organization.id} and s.email = ${email}`,
  )
  return found
}

async function events(
  context: Context,
  email: string,
): Promise<{ type: string; data: Record<string, unknown> }[]> {
  const { id } = (await person(context, email)) ?? {}
  const found = await rows<{ type: string; data: Record<string, unknown> }>(
    context.office.api.services.orm.em.fork(),
    sql`select type, data from subscriber_event where organization_id = ${context.organization.id}
      and subscriber_id = ${id} and type <> 'EMAIL_SENT' order by id`,
  )
  return found
}

async function types(context: Context, email: string): Promise<string[]> {
  return (await events(context, email)).map(({ type }) => type)
}

async function reportsOf({ office }: Context, { id }: SentEmail): Promise<string[]> {
  const found = await rows<{ kind: string }>(
    office.api.services.orm.em.fork(),
    sql`select kind from email_report where message_id = ${id} order by id`,
  )
  return found.map(({ kind }) => kind)
}

test('a hard bounce ends the email and its address, once however often it is told', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  t.regex(await office.bring('postfix-no-such-user', email), /^250 2\.6\.0 stored/)
  t.like(await office.email(email.id), { status: 'BOUNCED', category: 'NO_SUCH_USER' })
  t.regex((await office.email(email.id)).response ?? '', /^550 5\.1\.1 .*User unknown/)
  t.like(await person(t.context, email.recipient), {
    status: 'BOUNCED',
    category: 'NO_SUCH_USER',
    suppression: 'HARD_BOUNCE',
  })

  t.regex(await office.bring('postfix-no-such-user', email), /^250/)
  t.regex(await office.bring('sendmail-user-unknown', email), /^250/)
  const told = await events(t.context, email.recipient)
  t.deepEqual(
    told.map(({ type }) => type),
    ['EMAIL_BOUNCED'],
  )
  t.like(told[0]?.data, { emailId: encodeId('eml', email.id), category: 'NO_SUCH_USER', status: '5.1.1' })
  t.deepEqual(await reportsOf(t.context, email), ['BOUNCE'])

  const again = await office.api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: email.recipient, subject: 'Again', content: 'Hi' },
  })
  t.is(again.status, 409, 'nothing more is sent to it')
  const { subscribers } = await organization.data('list_suppressed_subscribers', {})
  const listed = subscribers.find((each: { email: string }) => each.email === email.recipient)
  t.like(listed, { status: 'BOUNCED', reason: 'HARD_BOUNCE', bounceCategory: 'NO_SUCH_USER' })
})

test('complaints, delays, replies and absences each do what they are', async (t) => {
  const { office, organization } = t.context
  const [complained, marked, delayed, answered, away] = await Promise.all(
    Array.from({ length: 5 }, () => office.send(organization)),
  )
  if (!complained || !marked || !delayed || !answered || !away) throw new Error('five were sent')

  const desk = `complaints@${organization.domain}`
  t.regex(await office.bring('arf-yahoo', complained, { to: desk, from: 'feedback@arf.example' }), /^250/)
  t.is((await office.email(complained.id)).status, 'COMPLAINED')
  t.like(await person(t.context, complained.recipient), { status: 'COMPLAINED', suppression: 'COMPLAINT' })
  t.deepEqual(await types(t.context, complained.recipient), ['EMAIL_COMPLAINED'])
  t.regex(await office.bring('hotmail-jmrp', marked, { to: desk }), /^250/)
  t.is((await office.email(marked.id)).status, 'COMPLAINED')

  t.regex(await office.bring('gmail-delay', delayed), /^250/)
  t.regex(await office.bring('postfix-delayed', delayed), /^250/)
  t.is((await office.email(delayed.id)).status, 'SENT')
  t.deepEqual(await types(t.context, delayed.recipient), ['EMAIL_DELIVERY_DELAYED'], 'told once')

  t.regex(await office.bring('reply', answered, { from: answered.recipient }), /^250/)
  t.is((await office.email(answered.id)).status, 'SENT')
  const [reply] = await events(t.context, answered.recipient)
  t.is(reply?.type, 'EMAIL_RECEIVED')
  t.like(reply?.data, { from: 'lin@reader.example', subject: 'Re: Hello Lin' })

  for (const name of ['vacation', 'challenge-response', 'read-receipt', 'left-the-company']) {
    t.regex(await office.bring(name, away, { from: away.recipient }), /^250/, name)
  }
  t.is((await office.email(away.id)).status, 'SENT')
  t.deepEqual(await types(t.context, away.recipient), [])
  t.is(
    office.sink.accepted().filter(({ recipient }) => recipient === away.recipient).length,
    1,
    'never answered',
  )
})

test('whoever got an email cannot fill the database with reports about it, nor hide what comes after', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  const reply = readReportFile('reply').replaceAll('{{RETURN_PATH}}', email.returnPath)
  for (let count = 1; count <= 12; count++) {
    const another = reply.replace('<r1@', `<another-${count}@`)
    t.regex(await office.report(another, email.returnPath, { from: email.recipient }), /^250/)
  }
  t.is((await types(t.context, email.recipient)).length, 10)
  t.regex(await office.bring('postfix-no-such-user', email), /^250/)
  t.is((await office.email(email.id)).status, 'BOUNCED')
  t.deepEqual(await reportsOf(t.context, email), [...Array<string>(10).fill('REPLY'), 'BOUNCE'])
})

test('reports in any order come to the same: a complaint outlasts a bounce, a bounce a delay', async (t) => {
  const { office, organization } = t.context
  const [early, late] = [await office.send(organization), await office.send(organization)]
  await office.bring('postfix-quota', early)
  await office.bring('postfix-delayed', early)
  t.like(await office.email(early.id), { status: 'BOUNCED', category: 'MAILBOX_FULL' })
  t.deepEqual(await types(t.context, early.recipient), ['EMAIL_BOUNCED'], 'a delay is no news after it')
  t.like(await person(t.context, early.recipient), { suppression: null }, 'a soft bounce suppresses nobody')
  await office.bring('arf-yahoo', early)
  t.is((await office.email(early.id)).status, 'COMPLAINED')

  await office.bring('arf-yahoo', late)
  await office.bring('postfix-no-such-user', late)
  t.is((await office.email(late.id)).status, 'COMPLAINED')
  t.is((await person(t.context, late.recipient))?.status, 'COMPLAINED')
  t.deepEqual(await types(t.context, late.recipient), ['EMAIL_COMPLAINED'])
})

test('a complaint counts although the email was given up or withdrawn, because its outcome was not heard', async (t) => {
  const { office, organization } = t.context
  for (const status of ['FAILED', 'SKIPPED']) {
    const email = await office.send(organization)
    const em = office.api.services.orm.em.fork()
    await execute(em, sql`update message set status = ${status}, sent_at = null where id = ${email.id}`)
    t.regex(await office.bring('arf-yahoo', email), /^250/)
    t.regex(await office.bring('hotmail-jmrp', email), /^250/)
    t.is((await office.email(email.id)).status, 'COMPLAINED')
    t.like(await person(t.context, email.recipient), { status: 'COMPLAINED', suppression: 'COMPLAINT' })
    t.deepEqual(await types(t.context, email.recipient), ['EMAIL_COMPLAINED'])
  }
})

test('the fifth soft bounce within two weeks suppresses an address; older ones do not count', async (t) => {
  const { office, organization } = t.context
  const to = 'full@reader.example'
  for (let count = 1; count <= 4; count += 1) {
    const email = await office.send(organization, to)
    await office.bring('postfix-quota', email)
    await office.bring('gmail-over-quota', email)
  }
  t.is((await person(t.context, to))?.suppression, null, 'four emails, each counted once')
  await office.bring('exchange-mailbox-full', await office.send(organization, to))
  t.is((await person(t.context, to))?.suppression, 'SOFT_BOUNCE')
  t.not((await person(t.context, to))?.status, 'BOUNCED')
})

test('a report that the sender was refused fails the email, however often, and blocks nobody', async (t) => {
  const { office, organization } = t.context
  const to = 'innocent@reader.example'
  const reports = ['postfix-sender-refused', 'postfix-sender-unlisted', 'exim-sender-verify']
  for (const name of [...reports, ...reports]) {
    const email = await office.send(organization, to)
    t.regex(await office.bring(name, email), /^250/)
    t.like(await office.email(email.id), { status: 'FAILED', category: null }, name)
    const { body } = await office.api.request('GET', `/api/v2/emails/${encodeId('eml', email.id)}`, {
      token: organization.token,
    })
    t.is(body.last_event, 'failed')
    t.deepEqual(
      body.events.map(({ event }: { event: string }) => event),
      ['queued', 'sent', 'failed'],
    )
  }
  t.like(await person(t.context, to), { suppression: null, category: null })
  t.not((await person(t.context, to))?.status, 'BOUNCED')
  t.deepEqual(await types(t.context, to), [])
})

test('a bounce starts the automations that listen for it, and filters know of it', async (t) => {
  const { office } = t.context
  const organization = await office.api.organization()
  const workflowId = await publishWorkflow(organization, [
    { id: 'start', type: 'TRIGGER', config: { type: 'EVENT', eventType: 'EMAIL_BOUNCED' } },
    { id: 'mark', type: 'ADD_TAG', config: { tagNames: ['bounced'] } },
  ])
  const email = await office.send(organization)
  await office.bring('qmail-over-quota', email)
  const runs = await runsOf(office.api.services, organization, decodeId('wf', workflowId))
  t.is(runs.length, 1)
  const filters = [{ field: 'event', operator: 'performed', event: 'EMAIL_BOUNCED' }]
  t.is((await organization.data('count_subscribers', { filters })).total, 1)
})

test('what is not recorded as sent yet is told again later, and 250 is never said in vain', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  const em = office.api.services.orm.em.fork()
  await execute(em, sql`update message set status = 'QUEUED' where id = ${email.id}`)
  t.regex(await office.bring('postfix-no-such-user', email), /^451 4\.3\.0 /)
  await execute(em, sql`update message set status = 'SENT' where id = ${email.id}`)

  const lost = await office.openDoor({ apiUrl: 'http://127.0.0.1:9' })
  t.teardown(() => lost.close())
  const raw = readReportFile('postfix-no-such-user')
  t.regex(await office.report(raw, email.returnPath, { door: lost }), /^451 4\.3\.0 /)
  t.is((await office.email(email.id)).status, 'SENT')
  t.regex(await office.bring('postfix-no-such-user', email), /^250/)
  t.is((await office.email(email.id)).status, 'BOUNCED')
})

test('nothing else is taken: no relaying, no login, no mail to people, no forged return path', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  const door = await office.openDoor({ unknownRecipients: 1_000 })
  t.teardown(() => door.close())
  const talk = await Talk.open(door.port)
  const hello = await talk.say('EHLO somebody.example')
  t.false(/AUTH/.test(hello), 'no login is offered')
  t.regex(await talk.say('AUTH PLAIN AGEAYg=='), /^5\d\d /)
  await talk.say('MAIL FROM:<spam@elsewhere.example>')
  const [local = '', domain = ''] = email.returnPath.split('@')
  const refused = [
    'victim@elsewhere.example',
    `hello@${organization.domain}`,
    'postmaster@mx.test',
    `${local.slice(0, -1)}${local.endsWith('a') ? 'b' : 'a'}@${domain}`,
    `x${local}@${domain}`,
    returnPathOf('another secret', {
      organizationId: organization.id,
      id: email.id,
      fromEmail: 'a@b.example',
    }),
  ]
  for (const address of refused) {
    t.regex(await talk.say(`RCPT TO:<${address}>`), /^550 5\.1\.1 /, address)
  }
  t.regex(await talk.say(`RCPT TO:<${email.returnPath.toUpperCase()}>`), /^250 /)
  t.regex(await talk.say(`RCPT TO:<${email.returnPath}>`), /^452 4\.5\.3 /)
  talk.close()

  const unknown = returnPathOf(office.api.services.config.secret, {
    organizationId: organization.id,
    id: newId(),
    fromEmail: 'a@b.example',
  })
  t.regex(await office.report(readReportFile('vacation'), unknown), /^550 5\.1\.1 /, 'about no email of ours')
  const secured = await Talk.secured(door)
  t.regex(await secured.say('MAIL FROM:<>'), /^250/, 'TLS is there for who wants it')
  secured.close()
})

test('a report moves the email of its return path alone, whatever it says of others', async (t) => {
  const { office, organization } = t.context
  const [own, foreign] = [await office.send(organization), await office.send(await office.api.organization())]
  const raw = readReportFile('arf-yahoo').replaceAll('{{RETURN_PATH}}', foreign.returnPath)
  t.regex(await office.report(raw, own.returnPath), /^250/)
  t.is((await office.email(own.id)).status, 'COMPLAINED')
  t.is((await office.email(foreign.id)).status, 'SENT')

  const desk = 'complaints@anything.example'
  const forged = readReportFile('arf-yahoo').replaceAll(
    '{{RETURN_PATH}}',
    `${'a'.repeat(64)}@send.shop.example`,
  )
  t.regex(await office.report(forged, desk), /^550 5\.7\.1 /, 'a complaint about nothing of ours')
  t.regex(await office.report(readReportFile('reply'), desk), /^550 5\.7\.1 /, 'no complaint')
  t.is((await office.email(foreign.id)).status, 'SENT')
})

test('a complaint that keeps only the unsubscribe header is believed for its token', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  const { id = '' } = (await person(t.context, email.recipient)) ?? {}
  const { signToken } = await import('../src/delivery/tracking-token.ts')
  const token = signToken(office.api.services.config.secret, {
    kind: 'unsubscribe',
    organizationId: organization.id,
    messageId: email.id,
    subscriberId: id,
  })
  const raw = readReportFile('arf-aol').replace(
    'Return-Path: <{{RETURN_PATH}}>',
    `List-Unsubscribe: <https://mail.shop.example/u/${token}>`,
  )
  t.regex(await office.report(raw.replaceAll('{{RETURN_PATH}}', 'x@y.example'), 'complaints@mx.test'), /^250/)
  t.is((await office.email(email.id)).status, 'COMPLAINED')
})

test('of an erased person nothing is kept, also not what comes later', async (t) => {
  const { office, organization } = t.context
  const email = await office.send(organization)
  await office.bring('postfix-delayed', email)
  t.deepEqual(await reportsOf(t.context, email), ['DELAY'])
  const erased = await office.api.request('DELETE', `/api/v2/subscribers/${email.recipient}`, {
    token: organization.token,
  })
  t.is(erased.status, 200, JSON.stringify(erased.body))
  t.regex(await office.bring('postfix-no-such-user', email), /^250/)
  t.deepEqual(await reportsOf(t.context, email), [])
  t.is((await office.email(email.id)).status, 'SENT')
})

test('the internal door is for the listener alone', async (t) => {
  const { api } = t.context.office
  const answer = await api.request('POST', '/internal/reports', {
    body: {},
    headers: { 'postloom-internal': 'x' },
  })
  t.is(answer.status, 404)
  const headers = { 'postloom-internal': api.services.config.internalSecret }
  t.is((await api.request('POST', '/internal/reports', { body: { kind: 'NOTHING' }, headers })).status, 400)
})
