import test from 'ava'
import { sql } from 'kysely'
import { simpleParser } from 'mailparser'

import { array, execute, row, rows } from '../src/database.ts'
import { readDueTime } from '../src/domain/campaigns/due-time.ts'
import { freezeAudience } from '../src/domain/campaigns/freeze.ts'
import { findStrandedSends } from '../src/domain/campaigns/stranded.ts'
import { decodeId, newId } from '../src/ids.ts'
import {
  type CampaignSendProgress,
  type CampaignSendResult,
  campaignWorkflowId,
  NUDGE,
} from '../temporal/contract.ts'
import { campaignDetails } from '../temporal/timer.ts'
import { reconcile } from '../worker/reconciler.ts'
import type { TestApi, TestOrganization } from './helpers/api.ts'
import { UNFOLLOWED } from './helpers/control.ts'
import { eventually } from './helpers/eventually.ts'
import { mailText } from './helpers/mail-text.ts'
import type { Sink } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'

const CONTENT = 'Hi {{name}}, [read](https://shop.example/a) or [leave]({{unsubscribeUrl}}).'

let stack: Stack
let api: TestApi
let sink: Sink

test.before(async () => {
  stack = await startStack({ queue: 'campaigns' })
  ;({ api, sink } = stack)
})
test.after.always(() => stack?.close())
test.afterEach(() => {
  sink.behaviour = {}
})

const em = () => stack.em()

async function people(organization: TestOrganization, count: number, status = 'SUBSCRIBED'): Promise<string> {
  const mark = newId().slice(-12)
  await execute(
    em(),
    sql`insert into subscriber (id, organization_id, email, name, status)
      select new_id(), ${organization.id}, ${mark} || '-' || n || '@reader.example', 'Reader ' || n, ${status}
      from generate_series(1, ${count}::int) n`,
  )
  return mark
}

async function draft(organization: TestOrganization, input: object = {}): Promise<string> {
  const whole = { subject: 'News for {{name}}', contentType: 'MARKDOWN', content: CONTENT, ...input }
  return (await organization.data('create_campaign', whole)).campaign.id
}

async function setFilters(
  organization: TestOrganization,
  campaignId: string,
  filters: unknown,
): Promise<void> {
  await execute(
    em(),
    sql`update campaign set recipient_filters = ${JSON.stringify(filters)}::jsonb
      where organization_id = ${organization.id} and id = ${decodeId('cmp', campaignId)}`,
  )
}

async function progress(organization: TestOrganization, campaignId: string) {
  return (await organization.data('get_campaign_progress', { campaignId })).progress
}

async function ended(organization: TestOrganization, campaignId: string, withinMs = 60_000) {
  return await eventually(
    'the campaign to end',
    async () => {
      const now = await progress(organization, campaignId)
      return ['SENT', 'FAILED'].includes(now.status) && now
    },
    { withinMs, everyMs: 100 },
  )
}

/** Waits for the workflow of a schedule and returns its result. */
async function resultOf(campaignId: string, number: number): Promise<CampaignSendResult> {
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(campaignWorkflowId(campaignId, number))
  await eventually('the workflow to be there', () => handle.describe())
  // The result type of CampaignSend.
  return (await handle.result()) as CampaignSendResult
}

/** Waits for the text that the Temporal UI shows at the workflow of a schedule. */
async function detailsOf(campaignId: string, number: number, expected: RegExp): Promise<string> {
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(campaignWorkflowId(campaignId, number))
  const show = async () => {
    const { currentDetails = '' } = await handle.query<{ currentDetails?: string }>(
      '__temporal_workflow_metadata',
    )
    return expected.test(currentDetails) && currentDetails
  }
  // Shorter than the minute after which a paused send looks again in any case.
  return await eventually('the details', show, { withinMs: 40_000 })
}

/** Returns how often each recipient whose address begins with `mark` got the email. */
function received(mark: string): number[] {
  const counts = new Map<string, number>()
  for (const { recipient } of sink.accepted()) {
    if (recipient.startsWith(mark)) counts.set(recipient, (counts.get(recipient) ?? 0) + 1)
  }
  return [...counts.values()]
}

/** Returns the recorded decisions about a campaign, without deferred emails. */
async function decisions(campaignId: string): Promise<string[]> {
  const found = await rows<{ text: string }>(
    em(),
    sql`select action || ' ' || reason || ' ' || count(*) as text from decision
      where campaign_id = ${decodeId('cmp', campaignId)} and action <> 'EMAIL_DEFERRED'
      group by action, reason order by 1`,
  )
  return found.map(({ text }) => text)
}

/**
 * Installs a trigger that pauses a campaign in the transaction in which its send fulfils a condition, so that the test
 * can act at that point. The returned function removes it.
 */
async function pauseWhen(
  column: 'audience_frozen' | 'enqueued',
  condition: string,
): Promise<() => Promise<void>> {
  await execute(
    em(),
    sql`create function hold_campaign() returns trigger language plpgsql as $fn$ begin
      update campaign set paused = true where id = new.campaign_id; return new; end $fn$;
      create trigger hold_campaign after update of ${sql.raw(column)} on campaign_send for each row
        when (${sql.raw(condition)}) execute function hold_campaign()`,
  )
  return async () => {
    await execute(em(), sql`drop trigger hold_campaign on campaign_send; drop function hold_campaign`)
  }
}

async function isFrozen(campaignId: string): Promise<boolean> {
  const found = await row(
    em(),
    sql`select from campaign_send where campaign_id = ${decodeId('cmp', campaignId)} and audience_frozen`,
  )
  return found !== null
}

async function isPaused(organization: TestOrganization, campaignId: string): Promise<boolean> {
  return (await progress(organization, campaignId)).paused
}

test.serial('a campaign goes to every subscribed reader once, and tells how it went', async (t) => {
  const organization = await api.organization()
  const mark = await people(organization, 300)
  await people(organization, 5, 'UNSUBSCRIBED')
  await execute(
    em(),
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (new_id(), ${organization.id}, ${`${mark}-7@reader.example`}, 'SOFT_BOUNCE', 'delivery')`,
  )
  const campaignId = await draft(organization)
  const asked = await organization.call('schedule_campaign', { campaignId })
  t.is(asked.status, 428)
  t.is(asked.body.summary.recipients, 299)
  t.regex(
    asked.body.summary.effects.join(' '),
    /every SUBSCRIBED subscriber when it is due: 299 recipients as of now/,
  )
  t.regex(asked.body.summary.warnings.join(' '), /1 more subscriber would be skipped/)
  const { body } = await organization.call('schedule_campaign', {
    campaignId,
    confirmationCode: asked.body.confirmationCode,
  })
  t.is(body.data.campaign.status, 'SCHEDULED')
  const done = await ended(organization, campaignId)
  t.like(done, { status: 'SENT', total: 300, sent: 299, queued: 0, failed: 0, ambiguousResent: 0 })
  t.deepEqual(done.skipped, { SUPPRESSED: 1 })
  t.truthy(done.startedAt && done.finishedAt)
  t.deepEqual(
    received(mark),
    Array.from({ length: 299 }, () => 1),
  )
  t.deepEqual(await decisions(campaignId), ['SEND_EMAIL SUPPRESSED 1'])
  const [mail] = sink.accepted().filter(({ recipient }) => recipient === `${mark}-42@reader.example`)
  t.regex(mail?.raw.toString() ?? '', /Subject: News for Reader 42/)
  t.regex(mail?.raw.toString() ?? '', /List-Unsubscribe-Post: List-Unsubscribe=One-Click/)
  const events = await row<{ count: number }>(
    em(),
    sql`select count(distinct subscriber_id)::int as count from subscriber_event
      where organization_id = ${organization.id} and type = 'EMAIL_SENT' and data ->> 'campaignId' = ${campaignId}`,
  )
  t.is(events?.count, 299)
  // The campaign becomes SENT a moment before its workflow ends.
  await resultOf(campaignId, 1)
  const client = await api.services.temporal.client()
  const described = await client.workflow.getHandle(campaignWorkflowId(campaignId, 1)).describe()
  t.is(described.status.name, 'COMPLETED')
  t.is(described.type, 'CampaignSend')
  const { analytics } = await organization.data('get_campaign_analytics', { campaignId })
  t.like(analytics, { recipients: 300, sent: 299, unsubscribes: 0, revenue: [] })
  t.deepEqual(analytics.links, [{ position: 0, url: 'https://shop.example/a', unique: 0, total: 0 }])
})

test.serial(
  'a campaign that nobody is meant by is SENT, and one that every server refuses is FAILED',
  async (t) => {
    const organization = await api.organization()
    const lonely = await draft(organization)
    t.is((await organization.confirmed('schedule_campaign', { campaignId: lonely })).status, 200)
    t.like(await ended(organization, lonely), { status: 'SENT', total: 0 })
    await people(organization, 3)
    sink.behaviour = { onRecipient: () => ({ code: 550, text: '5.1.1 nobody of that name' }) }
    const refused = await draft(organization)
    await organization.confirmed('schedule_campaign', { campaignId: refused })
    const done = await ended(organization, refused)
    t.like(done, { status: 'FAILED', total: 3, sent: 0 })
    const { campaign } = await organization.data('get_campaign', { campaignId: refused })
    t.regex(campaign.failure, /nothing could be sent: 3 of 3 were refused/)
    t.deepEqual(await decisions(refused), ['SEND_CAMPAIGN NOTHING_SENT 1', 'SEND_EMAIL NO_SUCH_USER 3'])
  },
)

test.serial('a campaign that cannot be sent is not scheduled, and the refusal says why', async (t) => {
  const organization = await api.organization()
  const refusal = async (input: object) => {
    const { status, body } = await organization.call('schedule_campaign', input)
    return `${status} ${body.code} ${body.error}`
  }
  const plain = await draft(organization, { content: 'No way out.' })
  t.regex(await refusal({ campaignId: plain }), /409 WRONG_STATE .*no unsubscribe link/)
  const empty = await draft(organization, { content: '' })
  t.regex(await refusal({ campaignId: empty }), /409 WRONG_STATE .*no content/)
  const good = await draft(organization)
  await execute(em(), sql`update campaign set subject = ' ' where id = ${decodeId('cmp', empty)}`)
  t.regex(await refusal({ campaignId: empty }), /409 WRONG_STATE .*no subject.*1 more/)
  const crowded = await draft(organization, {
    content: `${'{{name}} '.repeat(30_000)}[leave]({{unsubscribeUrl}})`,
  })
  t.regex(
    await refusal({ campaignId: crowded }),
    /409 WRONG_STATE .*takes [\d.]+ MB with its variables and links, and at most 2 MB go to many/,
  )
  await setFilters(organization, good, [{ field: 'tags', operator: 'has_any', value: ['gone'] }])
  t.regex(await refusal({ campaignId: good }), /409 FILTER_REFERENCE_MISSING/)
  await setFilters(organization, good, [{ field: 'nonsense', operator: 'equals', value: 1 }])
  t.regex(await refusal({ campaignId: good }), /409 WRONG_STATE .*recipientFilters/)
  await setFilters(organization, good, [])
  await execute(em(), sql`update domain set status = 'FAILED' where organization_id = ${organization.id}`)
  t.regex(await refusal({ campaignId: good }), /409 WRONG_STATE .*which is FAILED; verify/)
  await execute(em(), sql`update domain set status = 'VERIFIED' where organization_id = ${organization.id}`)
  t.regex(await refusal({ campaignId: good, hours: 9 }), /400 INVALID_INPUT hours needs a date/)
  t.regex(
    await refusal({ campaignId: good, date: '2031-01-01T09:00:00Z', minutes: 1 }),
    /400 INVALID_INPUT minutes cannot stand beside/,
  )
  t.regex(await refusal({ campaignId: good, date: '2020-01-01' }), /400 INVALID_INPUT date is in the past/)
  t.regex(await refusal({ campaignId: good, date: 'tomorrow' }), /400 INVALID_INPUT date must be/)
  const beyond = { campaignId: good, date: '9999-12-31T23:59:59-12:00' }
  t.regex(await refusal(beyond), /400 INVALID_INPUT date must be/)
  t.regex(await refusal({ campaignId: good, timezone: 'Mars/Base' }), /400 INVALID_INPUT timezone/)
  t.regex(await refusal({ campaignId: good, hours: 24 }), /400 INVALID_INPUT/)
  const morning = { date: '2090-06-01', hours: 9, timezone: 'Europe/Paris' }
  const odd = await draft(organization, { content: '{{nmae}} [leave]({{unsubscribeUrl}})' })
  const { summary } = (await organization.call('schedule_campaign', { campaignId: odd, ...morning })).body
  t.regex(summary.effects[0], /is sent on 1 June 2090 at 09:00 \(Europe\/Paris\) from /)
  t.regex(summary.warnings.join(' '), /The content: \{\{nmae\}\} is not known and will be empty/)
  const scheduled = await organization.confirmed('schedule_campaign', {
    campaignId: good,
    date: '2090-06-01',
  })
  t.is(scheduled.body.data.campaign.scheduledAt, '2090-05-31T22:00:00.000Z')
  t.regex(await refusal({ campaignId: good }), /409 WRONG_STATE .*is SCHEDULED and cannot be scheduled/)
  for (const tool of ['pause_campaign', 'resume_campaign']) {
    t.is((await organization.call(tool, { campaignId: good })).body.code, 'WRONG_STATE')
  }
  const back = await organization.data('cancel_campaign_schedule', { campaignId: good })
  t.like(back.campaign, { status: 'DRAFT', scheduledAt: null })
  t.is((await organization.call('cancel_campaign_schedule', { campaignId: good })).body.code, 'WRONG_STATE')
  t.like(await resultOf(good, 1), { stage: 'CANCELED' })
  const again = await organization.confirmed('schedule_campaign', { campaignId: good })
  t.is(again.body.data.campaign.status, 'SCHEDULED')
  t.like(await ended(organization, good), { status: 'SENT' })
  t.like(await resultOf(good, 2), { stage: 'SENT' })
})

test.serial('another organization knows nothing of a campaign', async (t) => {
  const [organization, other] = await Promise.all([api.organization(), api.organization()])
  const campaignId = await draft(organization)
  for (const tool of [
    'schedule_campaign',
    'cancel_campaign_schedule',
    'pause_campaign',
    'resume_campaign',
    'get_campaign_progress',
    'get_campaign_analytics',
  ]) {
    const foreign = await other.call(tool, { campaignId })
    const missing = await other.call(tool, { campaignId: 'cmp_00000000000000000000000000' })
    t.is(foreign.status, 404, tool)
    t.is(missing.status, 404, tool)
  }
  t.like(await progress(organization, campaignId), { status: 'DRAFT', total: 0, startedAt: null })
})

test.serial('a paused campaign sends nothing more, and goes on to exactly the rest', async (t) => {
  const organization = await api.organization()
  const mark = await people(organization, 200)
  const campaignId = await draft(organization)
  let seen = 0
  const reached = Promise.withResolvers<void>()
  sink.behaviour = {
    onMessage: ({ recipient }) => {
      if (recipient.startsWith(mark) && ++seen === 40) reached.resolve()
      // The last ones get their outcome long after the pause; its details have to show them too.
      return { afterMs: seen < 40 ? 20 : 1_000, reply: 'accept' }
    },
  }
  await organization.confirmed('schedule_campaign', { campaignId })
  await reached.promise
  const paused = await organization.data('pause_campaign', { campaignId })
  const atAnswer = seen
  t.like(paused.campaign, { status: 'SENDING', paused: true })
  const held = await eventually('the queue to be held', async () => {
    const states = await rows<{ state: string }>(
      em(),
      sql`select state from delivery_queue where organization_id = ${organization.id}
        union select 'taken' from campaign_batch where organization_id = ${organization.id}`,
    )
    return states.length === 1 && states[0]?.state === 'held'
  })
  t.true(held)
  t.true(seen - atAnswer <= sink.connections.peak, `${seen - atAnswer} were sent after the answer`)
  const during = await progress(organization, campaignId)
  t.like(during, { status: 'SENDING', paused: true, sent: seen, queued: 200 - seen, etaSeconds: null })
  const shown = await detailsOf(campaignId, 1, new RegExp(`${seen} of 200[^]*paused`))
  t.is(shown, `**DELIVERING**: ${seen} of 200\n\npaused until resume_campaign`)
  const left = await organization.call('resume_campaign', { campaignId })
  t.is(left.body.summary.recipients, 200 - seen)
  sink.behaviour = {}
  await organization.call('resume_campaign', { campaignId, confirmationCode: left.body.confirmationCode })
  t.like(await ended(organization, campaignId), { status: 'SENT', sent: 200 })
  t.deepEqual(
    received(mark),
    Array.from({ length: 200 }, () => 1),
  )
  t.is(await detailsOf(campaignId, 1, /SENT/), '**SENT**: 200 of 200\n\neverybody has an outcome')
})

test('the Temporal UI tells how many are done, how fast, and until when', (t) => {
  const progress: CampaignSendProgress = {
    stage: 'DELIVERING',
    waitMs: 0,
    label: 'delivering',
    total: 1_000_000,
    done: 12_345,
    perSecond: 5_000,
    expectedEnd: Date.parse('2030-01-31T09:00:00Z'),
    error: null,
  }
  t.is(
    campaignDetails(progress),
    '**DELIVERING**: 12,345 of 1,000,000, 5,000 a second, until about 2030-01-31T09:00:00.000Z\n\ndelivering',
  )
  t.is(
    campaignDetails({
      ...progress,
      stage: 'SCHEDULED',
      perSecond: null,
      expectedEnd: null,
      label: 'until 09:00',
    }),
    '**SCHEDULED**\n\nuntil 09:00',
  )
})

test.serial(
  'links that everybody gets are kept once for a campaign, and personal ones with each email',
  async (t) => {
    const organization = await api.organization()
    const mark = await people(organization, 3)
    const shared = await draft(organization)
    const personal = await draft(organization, {
      content:
        '[a](https://shop.example/a), [b](https://shop.example/?who={{email}}), [leave]({{unsubscribeUrl}}).',
    })
    for (const campaignId of [shared, personal]) {
      await organization.confirmed('schedule_campaign', { campaignId })
      t.like(await ended(organization, campaignId), { status: 'SENT', sent: 3 })
    }
    const kept = await rows<{ id: string; targets: string[] }>(
      em(),
      sql`select m.campaign_id as id, link.targets from link join message m on m.id = link.message_id
      where link.organization_id = ${organization.id} order by m.id`,
    )
    t.deepEqual(
      kept.map(({ id, targets }) => [id, targets.length]),
      Array.from({ length: 3 }, () => [decodeId('cmp', personal), 2]),
    )
    await execute(
      em(),
      sql`update message set sent_at = now() - interval '1 minute' where organization_id = ${organization.id}`,
    )
    const reader = `${mark}-2@reader.example`
    const mails = sink.accepted().filter(({ recipient }) => recipient === reader)
    const texts = await Promise.all(mails.map(async ({ raw }) => (await simpleParser(raw)).text ?? ''))
    const urls = texts.flatMap((text) => text.match(/http:\S+\/c\/[\w-]+/g) ?? [])
    const visits = [...urls, ...urls].map(async (url) => {
      const headers = { 'user-agent': 'Mozilla/5.0 (Macintosh) Safari/605.1.15' }
      const answer = await api.request('GET', new URL(url).pathname, { headers })
      return answer.headers.get('location') ?? ''
    })
    const targets = [
      'https://shop.example/a',
      'https://shop.example/a',
      `https://shop.example/?who=${encodeURIComponent(reader)}`,
    ]
    t.deepEqual((await Promise.all(visits)).toSorted(), [...targets, ...targets].toSorted())
  },
)

test.serial(
  'who leaves or is suppressed after the audience was frozen is skipped with the reason',
  async (t) => {
    const organization = await api.organization()
    const mark = await people(organization, 60)
    const campaignId = await draft(organization)
    await stack.lanes.stop()
    await organization.confirmed('schedule_campaign', { campaignId })
    await eventually('the audience to be written down', () => isFrozen(campaignId))
    const address = (number: number) => `${mark}-${number}@reader.example`
    await execute(em(), sql`update subscriber set status = 'UNSUBSCRIBED' where email = ${address(1)}`)
    await execute(
      em(),
      sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (new_id(), ${organization.id}, ${address(2)}, 'MANUAL', 'test')`,
    )
    await people(organization, 10)
    await execute(
      em(),
      sql`update campaign set content = '"changed"'::jsonb, subject = 'Changed' where id = ${decodeId('cmp', campaignId)}`,
    )
    await stack.lanes.start()
    const done = await ended(organization, campaignId)
    t.like(done, { status: 'SENT', total: 60, sent: 58 })
    t.deepEqual(done.skipped, { SUPPRESSED: 1, UNSUBSCRIBED: 1 })
    t.deepEqual(await decisions(campaignId), ['SEND_EMAIL SUPPRESSED 1', 'SEND_EMAIL UNSUBSCRIBED 1'])
    t.is(received(mark).length, 58)
    t.false(sink.accepted().some(({ raw }) => raw.includes('Subject: Changed')))
  },
)

test.serial('what is more than a day late is never sent by itself', async (t) => {
  const organization = await api.organization()
  const mark = await people(organization, 2)
  const campaignId = await draft(organization)
  await stack.engine.stop()
  await organization.confirmed('schedule_campaign', { campaignId })
  await execute(
    em(),
    sql`update campaign set send_at = now() - interval '25 hours' where id = ${decodeId('cmp', campaignId)}`,
  )
  await stack.engine.start()
  t.like(await ended(organization, campaignId), { status: 'FAILED', total: 0, sent: 0 })
  const { campaign } = await organization.data('get_campaign', { campaignId })
  t.regex(campaign.failure, /^missed window/)
  t.deepEqual(await decisions(campaignId), ['SEND_CAMPAIGN MISSED_WINDOW 1'])
  t.deepEqual(received(mark), [])
})

test.serial(
  'an operator who cancels the workflow ends the campaign, and nobody is left without an outcome',
  async (t) => {
    const organization = await api.organization()
    const mark = await people(organization, 2_500)
    const campaignId = await draft(organization)
    // The lane claims fewer emails at once than there are, so some recipients have one and some do not when it stops.
    const release = await pauseWhen('enqueued', 'new.enqueued > 0')
    await organization.confirmed('schedule_campaign', { campaignId })
    await eventually('the campaign to be held', () => isPaused(organization, campaignId))
    await release()
    await stack.lanes.stop()
    const client = await api.services.temporal.client()
    await client.workflow.getHandle(campaignWorkflowId(campaignId, 1)).cancel()
    await stack.lanes.start()
    await ended(organization, campaignId)
    const done = await eventually('every outcome', async () => {
      const now = await progress(organization, campaignId)
      return now.queued === 0 && now
    })
    t.like(done, { status: 'FAILED', total: 2_500, sent: 0 })
    t.deepEqual(done.skipped, { CAMPAIGN_ENDED: 2_500 })
    t.deepEqual(await decisions(campaignId), [
      'SEND_CAMPAIGN OPERATOR_CANCELED 1',
      'SEND_EMAIL CAMPAIGN_ENDED 2500',
    ])
    t.deepEqual(received(mark), [])
  },
)

/** Returns a part of an email with the original links, without the pixel, and with a neutral unsubscribe link. */
async function uncounted(part: string): Promise<string> {
  let plain = part.replace(/<img src="[^"]*\/o\/[^>]*>/, '').replaceAll(/\/u\/[\w-]+/g, '/u/preview')
  for (const [url] of part.matchAll(/http:\/\/127\.0\.0\.1:\d+\/c\/[\w-]+/g)) {
    const answer = await api.request('GET', new URL(url).pathname)
    plain = plain.replaceAll(url, answer.headers.get('location') ?? '')
  }
  return plain.trim()
}

test.serial('rich text of both kinds arrives as HTML and as text, filled for each reader', async (t) => {
  const organization = await api.organization()
  const mark = await people(organization, 2)
  const link = { type: 'link', attrs: { href: 'https://shop.example/a' } }
  const contents = {
    MAILY: {
      type: 'doc',
      content: [
        { type: 'heading', attrs: { level: 1 }, content: [{ type: 'text', text: 'Spring' }] },
        {
          type: 'paragraph',
          content: [
            { type: 'text', text: 'Dear ' },
            { type: 'variable', attrs: { id: 'name', fallback: 'friend' } },
            { type: 'text', text: ', look: ' },
            { type: 'text', text: 'our shop', marks: [link] },
          ],
        },
        { type: 'button', attrs: { text: 'Buy', url: 'https://shop.example/buy' } },
        { type: 'footer', content: [{ type: 'text', text: 'Shop' }] },
      ],
    },
    PLATE: [
      { type: 'h1', children: [{ text: 'Spring' }] },
      {
        type: 'p',
        children: [
          { text: 'Dear {{name}}, look: ' },
          { type: 'a', url: 'https://shop.example/a', children: [{ text: 'our shop' }] },
        ],
      },
      {
        type: 'p',
        children: [{ type: 'a', url: '{{unsubscribeUrl}}', children: [{ text: 'Unsubscribe' }] }],
      },
    ],
  }
  for (const [contentType, content] of Object.entries(contents)) {
    sink.clear()
    const campaignId = await draft(organization, { contentType, content })
    await organization.confirmed('schedule_campaign', { campaignId })
    t.like(await ended(organization, campaignId), { status: 'SENT', total: 2, sent: 2 })
    const [mail] = sink.accepted().filter(({ recipient }) => recipient === `${mark}-2@reader.example`)
    const seen = mailText(mail?.raw ?? Buffer.alloc(0))
    const [text = '', html = ''] = seen.split(/Content-Type: text\/html/)
    t.regex(text, /Dear Reader 2, look: our shop/, contentType)
    t.regex(html, /<h1[^>]*>\s*Spring/, contentType)
    t.regex(html, /Dear Reader 2/, contentType)
    t.regex(html, /href="http:\/\/127\.0\.0\.1:\d+\/c\//, contentType)
    t.regex(html, /href="http:\/\/127\.0\.0\.1:\d+\/u\//, contentType)
    t.notRegex(seen, /\{\{|shop\.example\/a"/, contentType)
    const { analytics } = await organization.data('get_campaign_analytics', { campaignId })
    t.is(analytics.links[0].url, 'https://shop.example/a')
    const reader = await organization.data('get_subscriber', { email: `${mark}-2@reader.example` })
    const subscriberId = reader.subscriber.id
    const rendered = await organization.data('render_campaign', { campaignId, subscriberId })
    const arrived = await simpleParser(mail?.raw ?? '')
    t.is(await uncounted(String(arrived.html)), rendered.html.trim(), `${contentType}: what is shown arrives`)
    t.is(await uncounted(arrived.text ?? ''), rendered.text.trim(), contentType)
  }
})

test.serial(
  'a restoration that takes the unsubscribe link away makes a scheduled campaign FAILED when it is due',
  async (t) => {
    const organization = await api.organization()
    const mark = await people(organization, 2)
    const campaignId = await draft(organization, { content: 'No way out.' })
    const [first] = (await organization.data('list_campaign_history', { campaignId })).entries
    await organization.data('edit_campaign', { id: campaignId, content: CONTENT })
    await organization.confirmed('schedule_campaign', { campaignId, date: '2090-01-01' })
    const restored = await organization.data('restore_campaign_history', { campaignId, historyId: first.id })
    t.is(restored.campaign.status, 'SCHEDULED')
    await execute(
      em(),
      sql`update campaign set send_at = now() - interval '3 minutes' where id = ${decodeId('cmp', campaignId)}`,
    )
    const client = await api.services.temporal.client()
    const handle = client.workflow.getHandle(campaignWorkflowId(campaignId, 1))
    await eventually('the workflow to look', () => handle.signal(NUDGE).then(() => true))
    t.like(await ended(organization, campaignId), { status: 'FAILED', total: 0 })
    const { campaign } = await organization.data('get_campaign', { campaignId })
    t.regex(
      campaign.failure,
      /cannot be sent yet: .*there is no unsubscribe link; add a link to \{\{unsubscribeUrl\}\}/,
    )
    t.deepEqual(await decisions(campaignId), ['SEND_CAMPAIGN WRONG_STATE 1'])
    t.deepEqual(received(mark), [])
  },
)

test.serial('who is deleted after the audience was written down is skipped with the reason', async (t) => {
  const organization = await api.organization()
  const mark = await people(organization, 20)
  const campaignId = await draft(organization)
  const release = await pauseWhen('audience_frozen', 'new.audience_frozen')
  await organization.confirmed('schedule_campaign', { campaignId })
  await eventually('the campaign to be held', () => isPaused(organization, campaignId))
  await release()
  await execute(
    em(),
    sql`delete from subscriber where organization_id = ${organization.id}
      and email = any(${array([`${mark}-1@reader.example`, `${mark}-20@reader.example`], 'text')})`,
  )
  await organization.confirmed('resume_campaign', { campaignId })
  const done = await ended(organization, campaignId)
  t.like(done, { status: 'SENT', total: 20, sent: 18, queued: 0 })
  t.deepEqual(done.skipped, { SUBSCRIBER_DELETED: 2 })
  t.deepEqual(await decisions(campaignId), ['SEND_EMAIL SUBSCRIBER_DELETED 2'])
  t.is(received(mark).length, 18)
})

test.serial('a send that somebody else has locked holds up no other, and goes on afterwards', async (t) => {
  const [locked, free] = [await api.organization(), await api.organization()]
  const marks = [await people(locked, 5), await people(free, 5)]
  const [first, second] = [await draft(locked), await draft(free)]
  const release = await pauseWhen('audience_frozen', 'new.audience_frozen')
  await locked.confirmed('schedule_campaign', { campaignId: first })
  await eventually('the campaign to be held', () => isPaused(locked, first))
  await release()
  await em().transactional(async (holder) => {
    await execute(
      holder,
      sql`select from campaign_send where campaign_id = ${decodeId('cmp', first)} for update`,
    )
    await locked.confirmed('resume_campaign', { campaignId: first })
    await free.confirmed('schedule_campaign', { campaignId: second })
    t.like(await ended(free, second), { status: 'SENT', sent: 5 })
    t.like(await progress(locked, first), { status: 'SENDING', sent: 0 })
  })
  t.like(await ended(locked, first), { status: 'SENT', sent: 5 })
  t.deepEqual(
    marks.map((mark) => received(mark).length),
    [5, 5],
  )
})

test.serial('a send whose recipients cannot be taken holds up no other, and is tried again', async (t) => {
  const [broken, sound] = [await api.organization(), await api.organization()]
  const marks = [await people(broken, 5), await people(sound, 5)]
  await execute(
    em(),
    sql`create function refuse_batch() returns trigger language plpgsql as $fn$ begin
      raise 'the disk of this organization is full'; end $fn$;
      create trigger refuse_batch before insert on campaign_batch for each row
        when (new.organization_id = ${sql.raw(`'${broken.id}'`)}) execute function refuse_batch()`,
  )
  const [first, second] = [await draft(broken), await draft(sound)]
  await broken.confirmed('schedule_campaign', { campaignId: first })
  await sound.confirmed('schedule_campaign', { campaignId: second })
  t.like(await ended(sound, second), { status: 'SENT', sent: 5 })
  const client = await api.services.temporal.client()
  await eventually('the workflow to show the fault', async () => {
    const { raw } = await client.workflow.getHandle(campaignWorkflowId(first, 1)).describe()
    return raw.pendingActivities?.[0]?.lastFailure?.message?.startsWith('fault ')
  })
  await execute(em(), sql`drop trigger refuse_batch on campaign_batch; drop function refuse_batch`)
  t.like(await ended(broken, first), { status: 'SENT', sent: 5 })
  t.deepEqual(
    marks.map((mark) => received(mark).length),
    [5, 5],
  )
})

test.serial(
  'soft refusals are tried again until a day is over, and then nothing could be sent',
  async (t) => {
    const organization = await api.organization()
    const mark = await people(organization, 3)
    const campaignId = await draft(organization)
    sink.behaviour = { onRecipient: () => ({ code: 451, text: '4.3.0 come back later' }) }
    await organization.confirmed('schedule_campaign', { campaignId })
    await eventually('a second try of each', async () => {
      const found = await row<{ count: number }>(
        em(),
        sql`select count(*)::int as count from message where campaign_id = ${decodeId('cmp', campaignId)}
        and status = 'DELAYED' and attempts > 1`,
      )
      return found?.count === 3
    })
    t.like(await progress(organization, campaignId), { status: 'SENDING', queued: 3, sent: 0, failed: 0 })
    await execute(
      em(),
      sql`update delivery_queue set first_tried_at = now() - interval '25 hours' where organization_id = ${organization.id}`,
    )
    t.like(await ended(organization, campaignId), {
      status: 'FAILED',
      total: 3,
      sent: 0,
      bounced: 3,
      queued: 0,
    })
    const { campaign } = await organization.data('get_campaign', { campaignId })
    t.regex(campaign.failure, /nothing could be sent: 3 of 3 were refused \(TRANSIENT\)/)
    t.deepEqual(await decisions(campaignId), ['SEND_CAMPAIGN NOTHING_SENT 1', 'SEND_EMAIL RETRIES_OVER 3'])
    const left = await rows<{ status: string }>(
      em(),
      sql`select status from subscriber where organization_id = ${organization.id} and email like ${`${mark}%`}`,
    )
    t.true(left.every(({ status }) => status === 'SUBSCRIBED'))
  },
)

test.serial(
  'a large campaign keeps neither another organization nor a transactional email waiting',
  async (t) => {
    const [large, small] = [await api.organization(), await api.organization()]
    const crowd = await people(large, 1_500)
    const few = await people(small, 15)
    const arrived: string[] = []
    const under = Promise.withResolvers<void>()
    // Replies for the large campaign are slow until the others are done, so that it is still being sent then.
    let crowdMs = 400
    sink.behaviour = {
      onMessage: ({ recipient }) => {
        arrived.push(recipient)
        if (arrived.length === 50) under.resolve()
        return { afterMs: recipient.startsWith(crowd) ? crowdMs : 1, reply: 'accept' }
      },
    }
    const first = await draft(large)
    await large.confirmed('schedule_campaign', { campaignId: first })
    await under.promise
    const second = await draft(small)
    await small.confirmed('schedule_campaign', { campaignId: second })
    const receipt = `receipt@${large.domain}`
    await large.confirmed('send_email', { email: receipt, subject: 'Receipt', content: 'Thank you.' })
    await eventually('the transactional email', () => arrived.includes(receipt))
    const atReceipt = arrived.length
    t.like(await ended(small, second), { status: 'SENT', sent: 15 })
    const atSmall = arrived.length
    t.like(await progress(large, first), { status: 'SENDING' })
    crowdMs = 1
    t.log(`the receipt came after ${atReceipt} emails, the small campaign was over after ${atSmall} of 1,516`)
    t.true(atReceipt < 1_500 && atSmall < 1_500)
    t.like(await ended(large, first), { status: 'SENT', sent: 1_500 })
    t.is(received(crowd).length, 1_500)
    t.is(received(few).length, 15)
  },
)

test.serial('a resumption puts everything that was held back into the queue with its answer', async (t) => {
  const organization = await api.organization()
  await people(organization, 30)
  const campaignId = await draft(organization)
  const states = async () => {
    const found = await rows<{ state: string }>(
      em(),
      sql`select state from delivery_queue where organization_id = ${organization.id}
        union select 'with a sender' from campaign_batch where organization_id = ${organization.id}`,
    )
    return found.map(({ state }) => state)
  }
  const release = await pauseWhen('enqueued', 'new.enqueued > 0')
  await organization.confirmed('schedule_campaign', { campaignId })
  await eventually('every email to be held', async () => (await states()).join() === 'held')
  await release()
  const deferrals = async () =>
    await rows<{ reason: string; emails: number; rows: number }>(
      em(),
      sql`select reason, count(distinct message_id)::int as emails, count(*)::int as rows from decision
        where organization_id = ${organization.id} and action = 'EMAIL_DEFERRED' group by reason`,
    )
  const held = await row<{ emails: number }>(
    em(),
    sql`select count(*)::int as emails from delivery_queue where organization_id = ${organization.id}`,
  )
  const emails = held?.emails ?? 0
  t.deepEqual(await deferrals(), [{ reason: 'CAMPAIGN_PAUSED', emails, rows: emails }])
  await stack.lanes.stop()
  await organization.confirmed('resume_campaign', { campaignId })
  t.deepEqual(await states(), ['queued'])
  await organization.data('pause_campaign', { campaignId })
  await stack.lanes.start()
  await eventually('every email to be held again', async () => (await states()).join() === 'held')
  t.deepEqual(await deferrals(), [{ reason: 'CAMPAIGN_PAUSED', emails, rows: emails * 2 }])
  await organization.confirmed('resume_campaign', { campaignId })
  t.like(await ended(organization, campaignId), { status: 'SENT', sent: 30 })
})

test.serial('a send whose workflow was terminated is found when it is due', async (t) => {
  const organization = await api.organization()
  const mark = await people(organization, 20)
  const campaignId = await draft(organization)
  await organization.confirmed('schedule_campaign', { campaignId, date: '2090-01-01' })
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(campaignWorkflowId(campaignId, 1))
  await eventually('the send to wait', async () => (await handle.describe()).historyLength > 10)
  await handle.terminate('by hand')
  await execute(
    em(),
    sql`update campaign set send_at = now() - interval '3 minutes' where id = ${decodeId('cmp', campaignId)}`,
  )
  await reconcile(api.services)
  t.like(await ended(organization, campaignId), { status: 'SENT', sent: 20 })
  t.deepEqual(
    received(mark),
    Array.from({ length: 20 }, () => 1),
  )
})

test.serial('a sender that lost its domain until the campaign was due makes it FAILED', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization)
  await stack.engine.stop()
  await organization.confirmed('schedule_campaign', { campaignId })
  await execute(em(), sql`update domain set status = 'FAILED' where organization_id = ${organization.id}`)
  await stack.engine.start()
  t.like(await ended(organization, campaignId), { status: 'FAILED' })
  const { campaign } = await organization.data('get_campaign', { campaignId })
  t.regex(campaign.failure, /which is FAILED; verify/)
})

test('local times follow the zone: what daylight saving skips moves forward, what comes twice is the first', (t) => {
  const due = (date: string, hours?: number, minutes?: number, timezone = 'Europe/Paris') => {
    const at = readDueTime({ date, hours, minutes, timezone }, 0)
    return at === null ? null : new Date(at).toISOString()
  }
  t.is(due('2030-01-31'), '2030-01-30T23:00:00.000Z')
  t.is(due('2030-07-01'), '2030-06-30T22:00:00.000Z')
  t.is(due('2030-01-31', 9), '2030-01-31T08:00:00.000Z')
  t.is(due('2030-01-31', undefined, 30), '2030-01-30T23:30:00.000Z')
  t.is(due('2030-01-31T09:00:00Z'), '2030-01-31T09:00:00.000Z')
  t.is(due('2030-01-31T09:00:00+05:30'), '2030-01-31T03:30:00.000Z')
  t.is(due('2030-01-31T09:00'), '2030-01-31T08:00:00.000Z')
  // In Paris, clocks go forward on 31 March 2030 at 02:00 and back on 27 October at 03:00.
  t.is(due('2030-03-31', 1, 59), '2030-03-31T00:59:00.000Z')
  t.is(due('2030-03-31', 2, 30), '2030-03-31T01:30:00.000Z')
  t.is(due('2030-03-31', 3, 0), '2030-03-31T01:00:00.000Z')
  t.is(due('2030-10-27', 2, 30), '2030-10-27T00:30:00.000Z')
  t.is(due('2030-10-27', 3, 0), '2030-10-27T02:00:00.000Z')
  t.is(due('2030-03-10', 2, 30, 'America/New_York'), '2030-03-10T07:30:00.000Z')
  t.is(due('2030-11-03', 1, 30, 'America/New_York'), '2030-11-03T05:30:00.000Z')
  // Daylight saving of half an hour.
  t.is(due('2030-10-06', 2, 15, 'Australia/Lord_Howe'), '2030-10-05T15:45:00.000Z')
  t.is(due('2030-04-07', 1, 45, 'Australia/Lord_Howe'), '2030-04-06T14:45:00.000Z')
  t.is(due('2030-01-31', 12, 0, 'Asia/Kathmandu'), '2030-01-31T06:15:00.000Z')
  t.is(due('2030-01-31', 12, 0, 'UTC'), '2030-01-31T12:00:00.000Z')
  t.throws(() => due('2030-01-31', 12, 0, 'PST'), { message: /timezone is not a time zone/ })
})

test.serial(
  'a small campaign that is due goes on at once, without another round through Temporal',
  async (t) => {
    const organization = await api.organization()
    await people(organization, 3)
    const campaignId = await draft(organization)
    await organization.confirmed('schedule_campaign', { campaignId })
    t.is((await resultOf(campaignId, 1)).stage, 'SENT')
    const client = await api.services.temporal.client()
    const { events } = await client.workflow.getHandle(campaignWorkflowId(campaignId, 1)).fetchHistory()
    const activities = (events ?? []).flatMap(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? [],
    )
    t.false(activities.includes('freezeAudience'), activities.join())
  },
)

/** Creates a send whose workflow is gone: nothing has worked on it for an hour, and two people have no email. */
async function leftSend(organization: TestOrganization, campaign: { status: string; paused: boolean }) {
  await people(organization, 2)
  const campaignId = await draft(organization)
  const id = decodeId('cmp', campaignId)
  await execute(
    em(),
    sql`with begun as (update campaign set status = ${campaign.status}, paused = ${campaign.paused}, schedule_version = 1,
        send_at = now() - interval '1 hour' where id = ${id} returning *)
      insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
        sender_email, recipient_filters, seen_at, total, finished_at)
      select ${newId()}, organization_id, id, 1, subject, content, content_type, 'Shop', 'news@shop.example', '[]',
        now() - interval '1 hour', 2, case when status = 'FAILED' then now() end from begun`,
  )
  await execute(
    em(),
    sql`insert into campaign_recipient (organization_id, campaign_id, subscriber_id, message_id)
      select organization_id, ${id}, id, new_id() from subscriber where organization_id = ${organization.id}`,
  )
  return { campaignId, key: { organizationId: organization.id, campaignId: id, number: 1 } }
}

test.serial(
  'a send that is paused while its audience is written down is not taken for abandoned',
  async (t) => {
    const organization = await api.organization()
    const { key } = await leftSend(organization, { status: 'SENDING', paused: true })
    const strandedIds = async () =>
      (await findStrandedSends(em(), 120, 100)).filter(({ id }) => id === key.campaignId).length
    t.is(await strandedIds(), 1)
    t.like(await freezeAudience(api.services, key, UNFOLLOWED), { stage: 'FREEZING', waitMs: 60_000 })
    t.is(await strandedIds(), 0)
  },
)

test.serial(
  'a campaign whose workflow was terminated between its failure and its last recipient ends all the same',
  async (t) => {
    const organization = await api.organization()
    const { campaignId } = await leftSend(organization, { status: 'FAILED', paused: false })
    t.like(await progress(organization, campaignId), { status: 'FAILED', total: 2, queued: 2 })
    await reconcile(api.services)
    const done = await eventually('everybody to have an outcome', async () => {
      const now = await progress(organization, campaignId)
      return now.queued === 0 && now
    })
    t.deepEqual(done.skipped, { CAMPAIGN_ENDED: 2 })
    t.deepEqual(await decisions(campaignId), ['SEND_EMAIL CAMPAIGN_ENDED 2'])
    await reconcile(api.services)
    t.deepEqual(await findStrandedSends(em(), 120, 100), [])
  },
)
