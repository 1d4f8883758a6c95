import test from 'ava'
import { sql } from 'kysely'

import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute, row, rows } from '../src/database.ts'
import { claimCampaignMails, reviveQueue } from '../src/delivery/claims.ts'
import { acceptance } from '../src/delivery/outcomes.ts'
import { tick } from '../src/delivery/tick.ts'
import { type TrackingToken, signToken } from '../src/delivery/tracking-token.ts'
import { writeAwaited } from '../src/domain/campaigns/batches.ts'
import { READER, settleVisits } from '../src/domain/emails/visits.ts'
import { encodeId } from '../src/ids.ts'
import type { TestApi, TestOrganization } from './helpers/api.ts'
import { campaignUnderWay } from './helpers/campaign-under-way.ts'
import { eventually } from './helpers/eventually.ts'
import type { Sink } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'

// Emails of campaigns get their rows only with their outcome. These tests cover emails that something asks about before
// that, and emails whose sender is gone.

const FROM = 'news@shop.example'

let stack: Stack
let api: TestApi
let sink: Sink

test.before(async () => {
  stack = await startStack()
  ;({ api, sink } = stack)
})
test.after.always(() => stack?.close())
test.afterEach.always(async () => {
  sink.behaviour = {}
  await stack.lanes.stop()
  await stack.lanes.start()
})

const em = () => stack.em()

async function peopleOf(organization: TestOrganization, count: number): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em(),
    sql`insert into subscriber (id, organization_id, email, name, status)
      select new_id(), ${organization.id}, 'reader' || n || '@' || ${organization.id} || '.example', 'Reader', 'SUBSCRIBED'
      from generate_series(1, ${count}::int) n returning id`,
  )
  return found.map(({ id }) => id)
}

async function stateOf(messageId: string | undefined) {
  return await row<{ status: string; attempts: number; resent: boolean; state: string | null }>(
    em(),
    sql`select m.status, m.attempts, m.resent, q.state from message m left join delivery_queue q on q.id = m.id
      where m.id = ${messageId}`,
  )
}

/** Sends a campaign to one person; the relay accepts the email when the test resolves `answer`. */
async function sendSlowly(organization: TestOrganization) {
  const [subscriberId = ''] = await peopleOf(organization, 1)
  const answer = Promise.withResolvers<void>()
  let isTaken = false
  sink.behaviour = {
    onMessage: () => {
      isTaken = true
      return { after: answer.promise, reply: 'accept' }
    },
  }
  const { messageIds } = await campaignUnderWay(em(), organization.id, {
    from: FROM,
    people: [subscriberId],
    content: '[read](https://shop.example/a), [leave]({{unsubscribeUrl}})',
  })
  await eventually('the relay to have the email', () => isTaken)
  const messageId = messageIds[0] ?? ''
  return { subscriberId, messageId, answer: () => answer.resolve() }
}

const settle = ({ id }: TestOrganization) =>
  unitOfWork(api.services, { organizationId: id, actor: READER }, (call) => settleVisits(call, 10))

function address(token: TrackingToken): string {
  const door = { click: 'c', open: 'o', unsubscribe: 'u', view: 'v', confirm: 's' }[token.kind]
  return `/${door}/${signToken(api.services.config.secret, token)}${token.kind === 'open' ? '.gif' : ''}`
}

test.serial('an email is written with its outcome, in the queue it never was', async (t) => {
  const organization = await api.organization()
  const { messageId, subscriberId, answer } = await sendSlowly(organization)
  t.is(await stateOf(messageId), null)
  answer()
  const sent = await eventually('the email', () => stateOf(messageId))
  t.deepEqual(sent, { status: 'SENT', attempts: 1, resent: false, state: null })
  t.is(await row(em(), sql`select from campaign_batch where organization_id = ${organization.id}`), null)
  t.deepEqual(
    await row(
      em(),
      sql`select count(*)::int as events, (select email_count from subscriber_stat where subscriber_id = ${subscriberId}) as count
        from subscriber_event where subscriber_id = ${subscriberId} and type = 'EMAIL_SENT'`,
    ),
    { events: 1, count: 1 },
  )
})

test.serial(
  'a reader who is faster than the answer of the relay finds everything an email leads to',
  async (t) => {
    for (const kind of ['click', 'view', 'unsubscribe'] as const) {
      const organization = await api.organization()
      const { messageId, subscriberId, answer } = await sendSlowly(organization)
      const ids = { organizationId: organization.id, messageId }
      const tokens = {
        click: { kind: 'click', ...ids, position: 0 },
        view: { kind: 'view', ...ids },
        unsubscribe: { kind: 'unsubscribe', ...ids, subscriberId },
      } as const
      const found = await api.request(kind === 'unsubscribe' ? 'POST' : 'GET', address(tokens[kind]))
      t.is(found.status, kind === 'click' ? 302 : 200, kind)
      if (kind === 'click') t.is(found.headers.get('location'), 'https://shop.example/a')
      t.like(await stateOf(messageId), { status: 'QUEUED', state: 'claimed' }, kind)
      answer()
      await eventually('the outcome', async () => (await stateOf(messageId))?.status === 'SENT')
      t.deepEqual(await stateOf(messageId), { status: 'SENT', attempts: 1, resent: false, state: null }, kind)
      t.is(sink.journal.filter(({ raw }) => raw.includes(encodeId('eml', messageId))).length, 1, kind)
    }
  },
)

test.serial('an email that is opened before its outcome counts as opened', async (t) => {
  const organization = await api.organization()
  const { messageId, answer } = await sendSlowly(organization)
  const ids = { organizationId: organization.id, messageId }
  t.is((await api.request('GET', address({ kind: 'open', ...ids }))).status, 200)
  await eventually('the visit to be settled', async () => (await settle(organization)) === 1)
  t.like(await stateOf(messageId), { status: 'QUEUED', state: 'claimed' })
  t.deepEqual(
    await row(
      em(),
      sql`select kind, people + machines as visits from engagement where message_id = ${messageId}`,
    ),
    { kind: 'OPEN', visits: 1 },
  )
  answer()
  await eventually('the outcome', async () => (await stateOf(messageId))?.status === 'SENT')
})

test.serial('a report that comes before the outcome is told again', async (t) => {
  const organization = await api.organization()
  const { messageId, answer } = await sendSlowly(organization)
  const report = () =>
    api.request('POST', '/internal/reports', {
      headers: { 'postloom-internal': api.services.config.internalSecret },
      body: {
        organizationId: organization.id,
        messageId,
        kind: 'BOUNCE',
        fingerprint: 'f'.repeat(64),
        status: '5.1.1',
        diagnostic: 'no such user',
        subject: null,
        from: null,
        raw: Buffer.from('Status: 5.1.1').toString('base64'),
      },
    })
  const early = await report()
  t.is(early.status, 503, JSON.stringify(early.body))
  answer()
  await eventually('the report to be taken', async () => (await report()).status < 300)
  t.like(await stateOf(messageId), { status: 'BOUNCED' })
})

test.serial('whoever is being written to at this moment is not erased before that is over', async (t) => {
  const organization = await api.organization()
  const { messageId, subscriberId, answer } = await sendSlowly(organization)
  const erase = () =>
    api.request('DELETE', `/api/v2/subscribers/${encodeId('sub', subscriberId)}`, {
      token: organization.token,
    })
  const early = await erase()
  t.is(early.status, 503)
  t.regex(early.body.message, /being handed to a mail server/)
  answer()
  await eventually('the erasure', async () => (await erase()).status === 200)
  t.like(await stateOf(messageId), { status: 'SENT' })
})

test.serial('what a sender leaves behind goes on where nobody can have it twice unseen', async (t) => {
  const organization = await api.organization()
  await stack.lanes.stop()
  const { messageIds } = await campaignUnderWay(em(), organization.id, {
    from: FROM,
    people: await peopleOf(organization, 4),
  })
  const taken = await claimCampaignMails(em(), 4, 60_000)
  t.is(taken.length, 4)
  const [first, second] = taken
  // The first email is marked as handed over, so its outcome is unknown.
  const marked = first ? [{ ...first, targets: [] }] : []
  t.deepEqual(await tick(em(), [], marked, 60_000), { left: [], withheld: [] })
  await reviveQueue(em())
  t.is(await stateOf(first?.id), null, 'not while its sender may live')
  await execute(
    em(),
    sql`update campaign_batch set lease_until = now() - interval '1 second' where organization_id = ${organization.id}`,
  )
  t.deepEqual(await claimCampaignMails(em(), 4, 60_000), [])
  await reviveQueue(em())
  t.is(await row(em(), sql`select from campaign_batch where organization_id = ${organization.id}`), null)
  await stack.lanes.start()
  await eventually('everybody to have their email', async () => {
    const states = await Promise.all(messageIds.map(stateOf))
    return states.every((state) => state?.status === 'SENT')
  })
  t.like(await stateOf(first?.id), { resent: true })
  t.like(await stateOf(second?.id), { resent: false })
  t.is(sink.journal.filter(({ recipient }) => recipient.endsWith(`@${organization.id}.example`)).length, 4)
})

test.serial('what is held back has not been with a relay, whoever of its batch has', async (t) => {
  const organization = await api.organization()
  await stack.lanes.stop()
  const { campaignId, messageIds } = await campaignUnderWay(em(), organization.id, {
    from: FROM,
    people: await peopleOf(organization, 2),
  })
  const [first, second] = await claimCampaignMails(em(), 2, 60_000)
  const mark = async (mail: typeof first) =>
    (await tick(em(), [], mail ? [{ ...mail, targets: [] }] : [], 60_000)).withheld.map(
      ({ verdict }) => verdict,
    )
  t.deepEqual(await mark(second), [])
  await execute(em(), sql`update campaign set paused = true where id = ${campaignId}`)
  t.deepEqual(await mark(first), ['HELD'])
  t.like(await stateOf(first?.id), { status: 'QUEUED', state: 'held' })
  await execute(
    em(),
    sql`with going as (update campaign set paused = false where id = ${campaignId})
      update campaign_batch set lease_until = now() - interval '1 second' where organization_id = ${organization.id}`,
  )
  await stack.lanes.start()
  await eventually('both to be sent', async () => {
    const states = await Promise.all(messageIds.map(stateOf))
    return states.every((state) => state?.status === 'SENT')
  })
  t.like(await stateOf(first?.id), { resent: false })
  t.like(await stateOf(second?.id), { resent: true })
})

test.serial('emails that cannot be written hold up nobody else, and are sent once they can', async (t) => {
  const [broken, sound] = [await api.organization(), await api.organization()]
  await stack.lanes.stop()
  const begin = async ({ id }: TestOrganization, people: string[]) =>
    await campaignUnderWay(em(), id, { from: FROM, people })
  const campaigns = [
    await begin(broken, await peopleOf(broken, 3)),
    await begin(sound, await peopleOf(sound, 3)),
  ]
  t.is((await claimCampaignMails(em(), 100, 60_000)).length, 6)
  await execute(
    em(),
    sql`update campaign_batch set lease_until = now() - interval '1 second';
      create function refuse_message() returns trigger language plpgsql as $fn$ begin
        raise 'the disk of this organization is full'; end $fn$;
      create trigger refuse_message before insert on message for each row
        when (new.organization_id = ${sql.raw(`'${broken.id}'`)}) execute function refuse_message()`,
  )
  await stack.lanes.start()
  const sentOf = async (place: number) => {
    const states = await Promise.all((campaigns[place]?.messageIds ?? []).map(stateOf))
    return states.filter((state) => state?.status === 'SENT').length
  }
  await eventually('the sound one to be sent', async () => (await sentOf(1)) === 3)
  t.is(await sentOf(0), 0)
  t.deepEqual(await row(em(), sql`select fault from campaign_send where organization_id = ${broken.id}`), {
    fault: 'database error P0001',
  })
  // Dropping the trigger locks every partition. Running lanes lock them in another order, which could deadlock.
  await stack.lanes.stop()
  await execute(em(), sql`drop trigger refuse_message on message; drop function refuse_message`)
  await stack.lanes.start()
  await eventually('the other to be sent', async () => (await sentOf(0)) === 3)
  t.is(sink.journal.filter(({ recipient }) => recipient.endsWith(`@${broken.id}.example`)).length, 3)
})

test.serial('an email that a relay refuses is tried again from the queue', async (t) => {
  const organization = await api.organization()
  const people = await peopleOf(organization, 1)
  let tries = 0
  sink.behaviour = {
    onMessage: () => ((tries += 1) === 1 ? { code: 451, text: '4.3.0 come back later' } : 'accept'),
  }
  const { campaignId, messageIds } = await campaignUnderWay(em(), organization.id, { from: FROM, people })
  await eventually('the second try', async () => (await stateOf(messageIds[0]))?.status === 'SENT')
  t.deepEqual(await stateOf(messageIds[0]), { status: 'SENT', attempts: 2, resent: false, state: null })
  t.deepEqual(
    await rows(
      em(),
      sql`select status, sum(emails)::int as emails from campaign_tally where campaign_id = ${campaignId} group by 1`,
    ),
    [{ status: 'SENT', emails: 1 }],
  )
})

/** Creates two campaigns to the same two people, whose emails one sender has claimed. */
async function takeTwoCampaigns() {
  const organization = await api.organization()
  const people = await peopleOf(organization, 2)
  for (const _ of [1, 2]) await campaignUnderWay(em(), organization.id, { from: FROM, people })
  const [a1, a2, b1, b2] = await claimCampaignMails(em(), 4, 60_000)
  if (!a1 || !a2 || !b1 || !b2) throw new Error('not everything was taken')
  return { organization, a1, a2, b1, b2 }
}

/**
 * Runs all functions while email rows cannot be written, and releases them when each has reached that point and
 * `meanwhile` is done.
 */
async function together<Done>(
  begin: () => Promise<Done>[],
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<Done[]> {
  const { done } = await em().transactional(async (other) => {
    await execute(other, sql`lock table message in share mode`)
    const begun = begin()
    await eventually('all to wait', async () => {
      const waiting = await rows(
        em(),
        sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return waiting.length === begun.length
    })
    await meanwhile()
    return { done: Promise.all(begun) }
  })
  return await done
}

test.serial(
  'two ticks that record and mark the same batches the other way round do not block each other',
  async (t) => {
    await stack.lanes.stop()
    const { organization, a1, a2, b1, b2 } = await takeTwoCampaigns()
    const candidate = (mail: typeof a1) => ({ ...mail, targets: [] })
    await tick(em(), [], [candidate(a1), candidate(b1)], 60_000)
    const done = await together(() => [
      tick(em(), [acceptance(a1, 'News', '250 ok')], [candidate(b2)], 60_000),
      tick(em(), [acceptance(b1, 'News', '250 ok')], [candidate(a2)], 60_000),
    ])
    t.deepEqual(done, [
      { left: [], withheld: [] },
      { left: [], withheld: [] },
    ])
    t.deepEqual(
      await rows(em(), sql`select unwritten from campaign_batch where organization_id = ${organization.id}`),
      [{ unwritten: 1 }, { unwritten: 1 }],
    )
  },
)

test.serial(
  'two who ask about emails of the same batches the other way round do not block each other',
  async (t) => {
    await stack.lanes.stop()
    const { organization, a1, a2, b1, b2 } = await takeTwoCampaigns()
    const ask = (mails: (typeof a1)[]) =>
      writeAwaited(
        em(),
        mails.map(({ organizationId, id }) => ({ organizationId, messageId: id })),
      )
    t.deepEqual(await together(() => [ask([a1, b1]), ask([b2, a2])]), [true, true])
    t.is(await row(em(), sql`select from campaign_batch where organization_id = ${organization.id}`), null)
  },
)

test.serial(
  'a visit that comes while others are settled is not settled before its email is written',
  async (t) => {
    await stack.lanes.stop()
    const { organization, a1, b1 } = await takeTwoCampaigns()
    const visit = async ({ id }: typeof a1) =>
      await execute(
        em(),
        sql`insert into pending_visit (organization_id, id, message_id, machine, user_agent, created_at)
        values (${organization.id}, new_id(), ${id}, true, '', now())`,
      )
    await visit(a1)
    t.deepEqual(
      await together(
        () => [settle(organization)],
        () => visit(b1),
      ),
      [1],
    )
    t.is(await settle(organization), 1)
    t.is((await rows(em(), sql`select from engagement where organization_id = ${organization.id}`)).length, 2)
  },
)
