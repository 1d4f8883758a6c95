import test from 'ava'
import { sql } from 'kysely'

import type { Explanation, Reason } from '../schema/explanation.ts'
import { execute, row } from '../src/database.ts'
import { keepHouse } from '../src/domain/housekeeping.ts'
import { decodeId } from '../src/ids.ts'
import { campaignWorkflowId } from '../temporal/contract.ts'
import type { TestApi, TestOrganization } from './helpers/api.ts'
import { CLOSED, passWait } from './helpers/automation.ts'
import { eventually } from './helpers/eventually.ts'
import type { Sink } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'
import { fastForward, publishWorkflow } from './helpers/workflow.ts'

const CONTENT = 'Hi {{name}}, [leave]({{unsubscribeUrl}}).'

let stack: Stack
let api: TestApi
let sink: Sink

test.before(async () => {
  stack = await startStack({ queue: 'explanation' })
  ;({ api, sink } = stack)
})
test.after.always(() => stack?.close())

const em = () => stack.em()

async function person(organization: TestOrganization, name: string, more: object = {}): Promise<string> {
  const email = `${name.toLowerCase()}@${organization.domain}`
  await organization.data('add_subscriber', { email, name, triggerWorkflows: false, ...more })
  return email
}

async function draft(organization: TestOrganization, filters: unknown[] = []): Promise<string> {
  const input = { name: 'Spring', subject: 'News', contentType: 'MARKDOWN', content: CONTENT }
  const campaignId: string = (await organization.data('create_campaign', input)).campaign.id
  if (filters.length > 0) await organization.data('update_campaign_filters', { campaignId, filters })
  return campaignId
}

async function explain(organization: TestOrganization, input: object): Promise<Explanation> {
  return await organization.data('explain_delivery', input)
}

function told({ reasons }: Explanation): string[] {
  return reasons.map(({ outcome, code }) => `${outcome} ${code}`)
}

function reason({ reasons }: Explanation, code: string): Reason {
  const found = reasons.find((each) => each.code === code)
  if (!found) throw new Error(`there is no ${code} among ${JSON.stringify(reasons)}`)
  return found
}

async function ended(organization: TestOrganization, campaignId: string): Promise<void> {
  await eventually('the campaign to end', async () => {
    const { progress } = await organization.data('get_campaign_progress', { campaignId })
    return ['SENT', 'FAILED'].includes(progress.status)
  })
}

test.serial(
  'before a campaign is sent, each filter that keeps somebody out is named with its path and their value',
  async (t) => {
    const organization = await api.organization()
    const { segment } = await organization.data('create_segment', {
      name: 'Buyers',
      filters: [{ field: 'revenue', operator: 'gt', value: 0 }],
    })
    await organization.data('create_tag', { name: 'vip' })
    await organization.data('create_tag', { name: 'staff' })
    const ann = await person(organization, 'Ann', {
      country: 'FR',
      tags: ['staff'],
      fields: { plan: 'free' },
    })
    const bob = await person(organization, 'Bob', { country: 'DE', fields: { plan: 'pro' } })
    const campaignId = await draft(organization, [
      { field: 'country', operator: 'in', value: ['DE', 'AT'] },
      {
        any: [
          { field: 'customFields.plan', operator: 'equals', value: 'pro' },
          {
            all: [
              { field: 'tags', operator: 'has_any', value: ['vip'] },
              { field: 'email', operator: 'contains', value: 'ann' },
            ],
          },
          { field: 'segment', operator: 'has_any', value: [segment.id] },
        ],
      },
      { not: { field: 'tags', operator: 'has_any', value: ['staff'] } },
    ])
    const kept = await explain(organization, { email: ann, campaignId })
    t.is(kept.verdict.outcome, 'WOULD_NOT_GET_IT')
    t.regex(kept.verdict.message, /^Ann \(ann@[^)]*\) would not get the campaign “Spring”\. /)
    t.deepEqual(told(kept).slice(0, 2), ['WAITING CAMPAIGN_DRAFT', 'FOR SUBSCRIBED'])
    const filters = kept.reasons.slice(2)
    t.deepEqual(
      filters.map(({ outcome, code, path, value }) => [outcome, code, path, value]),
      [
        ['AGAINST', 'FILTER', 'recipientFilters[0]', 'FR'],
        ['AGAINST', 'FILTER', 'recipientFilters[1].any[0]', 'free'],
        ['AGAINST', 'FILTER', 'recipientFilters[1].any[1].all[0]', ['staff']],
        ['AGAINST', 'FILTER', 'recipientFilters[1].any[2]', undefined],
        ['AGAINST', 'FILTER', 'recipientFilters[2].not', ['staff']],
      ],
    )
    t.is(
      filters[0]?.message,
      'The filter at recipientFilters[0] asks for “Country” to be one of “DE”, “AT”; theirs is “FR”.',
    )
    t.regex(filters[3]?.message ?? '', /“Segment” to include any of “Buyers”, which they do not fulfil\.$/)
    t.regex(
      filters[4]?.message ?? '',
      /does not allow “Tags” to include any of “staff”; theirs is “staff”\.$/,
    )
    const meant = await explain(organization, { email: bob, campaignId })
    t.deepEqual(told(meant), ['WAITING CAMPAIGN_DRAFT', 'FOR SUBSCRIBED', 'FOR FILTERS'])
    t.is(meant.verdict.outcome, 'WOULD_GET_IT')
    t.regex(
      meant.verdict.message,
      /would get .* The campaign is a draft: nobody gets it until it is scheduled\.$/,
    )

    await execute(em(), sql`delete from tag where organization_id = ${organization.id} and name = 'vip'`)
    await execute(em(), sql`update domain set status = 'FAILED' where organization_id = ${organization.id}`)
    const broken = await explain(organization, { email: bob, campaignId })
    t.deepEqual(told(broken), [
      'WAITING CAMPAIGN_DRAFT',
      'AGAINST CAMPAIGN_NOT_READY',
      'FOR SUBSCRIBED',
      'AGAINST FILTER_REFERENCE_MISSING',
    ])
    t.is(broken.reasons.at(-1)?.path, 'recipientFilters[1].any[1].all[0]')
  },
)

test.serial('consent, suppression and the state of the campaign are told as they are now', async (t) => {
  const organization = await api.organization()
  const campaignId = await draft(organization)
  const gone = await person(organization, 'Gone')
  await organization.confirmed('unsubscribe', { email: gone })
  await execute(
    em(),
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (new_id(), ${organization.id}, ${gone}, 'MANUAL', 'test'),
        (new_id(), ${organization.id}, erased_email_key(${organization.id}, ${gone}), 'COMPLAINT', 'test')`,
  )
  const out = await explain(organization, { email: gone, campaignId })
  t.deepEqual(told(out), [
    'AGAINST SUPPRESSED',
    'WAITING CAMPAIGN_DRAFT',
    'AGAINST UNSUBSCRIBED',
    'FOR NO_FILTERS',
  ])
  t.truthy(reason(out, 'SUPPRESSED').at)
  t.regex(reason(out, 'SUPPRESSED').message, /reported an email as spam/, 'the one that the lists show')
  const here = await person(organization, 'Here')
  await organization.confirmed('schedule_campaign', { campaignId, date: '2090-06-01', timezone: 'UTC' })
  const scheduled = await explain(organization, { email: here, campaignId })
  t.is(scheduled.verdict.outcome, 'WOULD_GET_IT')
  t.is(
    reason(scheduled, 'CAMPAIGN_SCHEDULED').message,
    'The campaign is due on 1 June 2090 at 02:00 (Europe/Paris).',
  )
  await organization.data('cancel_campaign_schedule', { campaignId })
  await organization.confirmed('archive_campaign', { campaignId })
  const archived = await explain(organization, { email: here, campaignId })
  t.deepEqual(told(archived), ['AGAINST CAMPAIGN_ARCHIVED', 'FOR SUBSCRIBED', 'FOR NO_FILTERS'])
  t.is(archived.verdict.outcome, 'WOULD_NOT_GET_IT')
})

test.serial(
  'what holds a campaign that has no recipients yet is told: its domain, and a pause',
  async (t) => {
    const organization = await api.organization()
    const ann = await person(organization, 'Ann')
    const campaignId = await draft(organization)
    await execute(
      em(),
      sql`insert into sending_stop (organization_id, domain_id, stream, names, reason, days, emails, counted)
      select organization_id, id, 'MARKETING', array[domain], 'BOUNCES', 1, 100, 20 from domain
      where organization_id = ${organization.id}`,
    )
    const stopped = await explain(organization, { email: ann, campaignId })
    t.deepEqual(told(stopped).slice(0, 2), ['WAITING CAMPAIGN_DRAFT', 'WAITING SENDING_STOPPED'])
    t.is(stopped.verdict.outcome, 'WOULD_GET_IT')
    t.regex(reason(stopped, 'SENDING_STOPPED').message, /resume_sending/)
    await execute(
      em(),
      sql`with begun as (
        update campaign set status = 'SENDING', paused = true, schedule_version = 1
        where id = ${decodeId('cmp', campaignId)} returning *)
      insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
        sender_email, recipient_filters)
      select new_id(), organization_id, id, 1, subject, content, content_type, 'S',
        ${`hello@${organization.domain}`}, '[]' from begun`,
    )
    t.deepEqual(told(await explain(organization, { email: ann, campaignId })).slice(0, 3), [
      'WAITING CAMPAIGN_SENDING',
      'WAITING PAUSED',
      'WAITING SENDING_STOPPED',
    ])
    // Marked as SENT, because no workflow sends this campaign and it would be taken for an abandoned one.
    await execute(em(), sql`update campaign set status = 'SENT' where id = ${decodeId('cmp', campaignId)}`)
  },
)

test.serial(
  'after a campaign was sent, everybody has their reasons from when they were decided',
  async (t) => {
    const organization = await api.organization()
    const names = ['Got', 'Blocked', 'Left', 'Refused', 'Elsewhere', 'Absent', 'Erased']
    const email: Record<string, string> = {}
    for (const name of names) {
      email[name] = await person(organization, name, { country: name === 'Elsewhere' ? 'FR' : 'DE' })
    }
    const of = (name: string) => email[name] ?? ''
    await organization.confirmed('unsubscribe', { email: of('Absent') })
    await execute(
      em(),
      sql`insert into suppression (id, organization_id, email_key, reason, source)
      values (new_id(), ${organization.id}, ${of('Blocked')}, 'COMPLAINT', 'test')`,
    )
    sink.behaviour = {
      onRecipient: (address) =>
        address === of('Refused') ? { code: 550, text: '5.1.1 nobody of that name' } : 'accept',
    }
    const campaignId = await draft(organization, [{ field: 'country', operator: 'equals', value: 'DE' }])
    await stack.lanes.stop()
    await organization.confirmed('schedule_campaign', { campaignId })
    const waiting = await eventually('the email to wait', async () => {
      const now = await explain(organization, { email: of('Left'), campaignId })
      return told(now).includes('WAITING IN_QUEUE') && now
    })
    t.is(waiting.verdict.outcome, 'UNDER_WAY')
    t.deepEqual(told(waiting), ['FOR IN_AUDIENCE', 'WAITING IN_QUEUE', 'FOR SUBSCRIBED'])
    t.regex(reason(waiting, 'IN_QUEUE').message, /on its way to them; \d recipients are before them\.$/)
    await organization.confirmed('unsubscribe', { email: of('Left') })
    const leaving = await explain(organization, { email: of('Left'), campaignId })
    t.is(leaving.verdict.outcome, 'WOULD_NOT_GET_IT')
    t.deepEqual(told(leaving), ['FOR IN_AUDIENCE', 'WAITING IN_QUEUE', 'AGAINST UNSUBSCRIBED'])
    await execute(
      em(),
      sql`delete from subscriber where organization_id = ${organization.id} and email = ${of('Erased')}`,
    )
    await stack.lanes.start()
    await ended(organization, campaignId)
    const late = await person(organization, 'Late', { country: 'DE' })

    const got = await explain(organization, { email: of('Got'), campaignId })
    t.deepEqual(told(got), ['FOR IN_AUDIENCE', 'FOR QUEUED', 'FOR SENT'])
    t.is(got.verdict.message, `Got (${of('Got')}) got the campaign “Spring”.`)
    t.regex(reason(got, 'SENT').message, /^The mail server took the email, saying “250 /)
    t.regex(reason(got, 'SENT').emailId ?? '', /^eml_/)
    const blocked = await explain(organization, { email: of('Blocked'), campaignId })
    t.deepEqual(told(blocked), ['FOR IN_AUDIENCE', 'AGAINST SUPPRESSED'])
    t.truthy(reason(blocked, 'SUPPRESSED').at)
    const left = await explain(organization, { email: of('Left'), campaignId })
    t.deepEqual(told(left), ['FOR IN_AUDIENCE', 'FOR QUEUED', 'AGAINST UNSUBSCRIBED'])
    t.regex(left.verdict.message, /did not get the campaign “Spring”\. They have unsubscribed\.$/)
    const refused = await explain(organization, { email: of('Refused'), campaignId })
    t.deepEqual(told(refused), ['FOR IN_AUDIENCE', 'FOR QUEUED', 'AGAINST NO_SUCH_USER'])
    t.regex(
      reason(refused, 'NO_SUCH_USER').message,
      /no such mailbox.*It said: “550 5\.1\.1 nobody of that name”\.$/,
    )
    const elsewhere = await explain(organization, { email: of('Elsewhere'), campaignId })
    t.deepEqual(told(elsewhere), ['AGAINST NOT_IN_AUDIENCE', 'FOR SUBSCRIBED', 'AGAINST FILTER'])
    t.is(elsewhere.verdict.outcome, 'DID_NOT_GET_IT')
    const absent = await explain(organization, { email: of('Absent'), campaignId })
    t.deepEqual(told(absent), ['AGAINST NOT_IN_AUDIENCE', 'AGAINST UNSUBSCRIBED', 'FOR FILTERS'])
    await organization.data('add_subscriber', { email: of('Absent') })
    const back = await explain(organization, { email: of('Absent'), campaignId })
    t.deepEqual(told(back), [
      'AGAINST NOT_IN_AUDIENCE',
      'NOTE SUBSCRIBED',
      'FOR SUBSCRIBED',
      'FOR FILTERS',
      'NOTE CHANGED_SINCE',
    ])
    t.deepEqual(told(await explain(organization, { email: late, campaignId })).slice(0, 2), [
      'AGAINST NOT_IN_AUDIENCE',
      'AGAINST ADDED_LATER',
    ])
    t.is((await organization.call('explain_delivery', { email: of('Erased'), campaignId })).status, 404)

    const there = names.filter((name) => name !== 'Erased')
    const everything = () =>
      Promise.all(there.map((name) => explain(organization, { email: of(name), campaignId })))
    const before = await everything()
    await execute(
      em(),
      sql`update campaign_send set finished_at = now() - interval '91 days'
        where campaign_id = ${decodeId('cmp', campaignId)}`,
    )
    await keepHouse(em())
    const kept = sql`select from campaign_recipient where campaign_id = ${decodeId('cmp', campaignId)}`
    t.is(await row(em(), kept), null, 'the audience is forgotten')
    t.deepEqual(await everything(), before)
  },
)

test.serial('what a mail server puts off, and gives up after a day, says what the server said', async (t) => {
  const organization = await api.organization()
  const email = await person(organization, 'Full')
  sink.behaviour = { onRecipient: () => ({ code: 452, text: '4.2.2 mailbox full' }) }
  const campaignId = await draft(organization)
  await organization.confirmed('schedule_campaign', { campaignId })
  const retrying = await eventually('a second try', async () => {
    const now = await explain(organization, { email, campaignId })
    return now.reasons.some(({ code }) => code === 'RETRYING') && now
  })
  t.is(retrying.verdict.outcome, 'UNDER_WAY')
  t.regex(reason(retrying, 'RETRYING').message, /tried again .*It said: “452 4\.2\.2 mailbox full”\.$/)
  await organization.data('pause_campaign', { campaignId })
  const paused = await eventually('the email to be held', async () => {
    const now = await explain(organization, { email, campaignId })
    return now.reasons.some(({ code }) => code === 'HELD') && now
  })
  t.regex(
    paused.verdict.message,
    /is on the way to getting .* The campaign is paused until somebody resumes it\.$/,
  )
  const aDayIsOver = sql`update delivery_queue set first_tried_at = now() - interval '25 hours'
    where organization_id = ${organization.id}`
  await execute(em(), aDayIsOver)
  await organization.confirmed('resume_campaign', { campaignId })
  await eventually('it to be tried for another day, because the pause was ours', async () => {
    const now = await explain(organization, { email, campaignId })
    return told(now).includes('WAITING RETRYING')
  })
  await execute(em(), aDayIsOver)
  await ended(organization, campaignId)
  const over = await explain(organization, { email, campaignId })
  t.deepEqual(told(over), [
    'FOR IN_AUDIENCE',
    'FOR QUEUED',
    'NOTE CAMPAIGN_PAUSED',
    'AGAINST RETRIES_OVER',
    'AGAINST NOTHING_SENT',
  ])
  t.regex(reason(over, 'RETRIES_OVER').message, /given up after \d+ tries, because a day was over\./)
  sink.behaviour = {}
})

test.serial('a campaign that failed says so to everybody it was for', async (t) => {
  const organization = await api.organization()
  const email = await person(organization, 'Reader')
  const missed = await draft(organization)
  await stack.engine.stop()
  await organization.confirmed('schedule_campaign', { campaignId: missed })
  await execute(
    em(),
    sql`update campaign set send_at = now() - interval '25 hours' where id = ${decodeId('cmp', missed)}`,
  )
  await stack.engine.start()
  await ended(organization, missed)
  const late = await explain(organization, { email, campaignId: missed })
  t.deepEqual(told(late), ['AGAINST MISSED_WINDOW', 'FOR SUBSCRIBED', 'FOR NO_FILTERS'])
  t.regex(late.verdict.message, /did not get .* The campaign failed: missed window: /)

  const canceled = await draft(organization)
  await stack.lanes.stop()
  await organization.confirmed('schedule_campaign', { campaignId: canceled })
  await eventually('the email to wait', async () =>
    told(await explain(organization, { email, campaignId: canceled })).includes('WAITING IN_QUEUE'),
  )
  const client = await api.services.temporal.client()
  await client.workflow.getHandle(campaignWorkflowId(canceled, 1)).cancel()
  await ended(organization, canceled)
  await stack.lanes.start()
  const stopped = await eventually('the email to be skipped', async () => {
    const now = await explain(organization, { email, campaignId: canceled })
    return told(now).includes('AGAINST CAMPAIGN_ENDED') && now
  })
  t.true(told(stopped).includes('AGAINST OPERATOR_CANCELED'))
  t.is(stopped.verdict.outcome, 'DID_NOT_GET_IT')
})

const HELLO = {
  id: 'hello',
  type: 'EMAIL',
  config: { subject: 'Hi', content: 'Hi {{name}}', contentType: 'MARKDOWN' },
}
const LONG = { id: 'rest', type: 'WAIT', config: { amount: 3, unit: 'DAYS' } }

test.serial(
  'of a workflow: what its triggers ask, who was refused, where a run stands and what became of its email',
  async (t) => {
    const organization = await api.organization()
    const trigger = {
      id: 'start',
      type: 'TRIGGER',
      config: {
        type: 'TAG_ADDED',
        tagNames: ['vip'],
        filters: [{ field: 'country', operator: 'equals', value: 'DE' }],
      },
    }
    const workflowId = await publishWorkflow(organization, [trigger, HELLO, LONG])
    const ann = await person(organization, 'Ann', { country: 'DE' })
    const bob = await person(organization, 'Bob', { country: 'FR' })
    const ahead = await explain(organization, { email: ann, workflowId })
    t.deepEqual(told(ahead), ['FOR SUBSCRIBED', 'WAITING TRIGGER_TAG_ADDED', 'FOR FILTERS'])
    t.is(ahead.verdict.outcome, 'WOULD_GET_IT')
    t.regex(
      ahead.verdict.message,
      /would get email of the workflow “Series”\. The workflow takes them in when a tag is added: vip\.$/,
    )
    const kept = await explain(organization, { email: bob, workflowId })
    t.is(kept.verdict.outcome, 'WOULD_NOT_GET_IT')
    t.like(reason(kept, 'FILTER'), { path: 'steps[0].config.filters[0]', value: 'FR', stepId: 'start' })

    await organization.data('update_subscriber', { subscriber: bob, tags: ['vip'] })
    const refused = await explain(organization, { email: bob, workflowId })
    t.is(refused.verdict.outcome, 'DID_NOT_GET_IT')
    t.like(reason(refused, 'FILTERS'), { outcome: 'AGAINST', stepId: 'start' })
    t.is((await organization.call('add_subscriber_to_workflow', { workflowId, email: bob })).status, 409)
    t.is(
      told(await explain(organization, { email: bob, workflowId })).filter(
        (each) => each === 'AGAINST FILTERS',
      ).length,
      2,
    )

    await organization.data('update_subscriber', { subscriber: ann, tags: ['vip'] })
    const inside = await eventually('the email to be sent', async () => {
      const now = await explain(organization, { email: ann, workflowId })
      return told(now).includes('FOR SENT') && reason(now, 'IN_WORKFLOW').stepId === 'rest' && now
    })
    t.deepEqual(told(inside), [
      'FOR ENTERED',
      'FOR QUEUED',
      'FOR SENT',
      'WAITING IN_WORKFLOW',
      'FOR SUBSCRIBED',
    ])
    t.is(inside.verdict.outcome, 'GOT_IT', 'no email is ahead')
    t.regex(
      reason(inside, 'IN_WORKFLOW').message,
      /at the step rest until \d+ \w+ \d{4} at \d\d:\d\d \(Europe\/Paris\)\.$/,
    )
    const { workflow } = await organization.data('get_workflow', { workflowId })
    const email = workflow.draft.steps.find(({ id }: { id: string }) => id === 'hello').config.campaignId
    const alone = await explain(organization, { email: ann, campaignId: email })
    t.deepEqual(told(alone), told(inside))
    t.regex(alone.verdict.message, / got the email “Hi” of the workflow “Series”\.$/)

    await organization.data('remove_subscriber_from_workflow', { workflowId, email: ann })
    const removed = await explain(organization, { email: ann, workflowId })
    t.is(removed.verdict.outcome, 'GOT_IT')
    t.like(reason(removed, 'MANUAL'), { outcome: 'AGAINST' })
    t.like(reason(removed, 'ALREADY_ENTERED'), { outcome: 'NOTE' })

    await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
    const late = await person(organization, 'Late', { country: 'DE' })
    await organization.data('update_subscriber', { subscriber: late, tags: ['vip'] })
    const paused = await explain(organization, { email: late, workflowId })
    t.deepEqual(told(paused).slice(0, 2), ['AGAINST PAUSED', 'AGAINST WORKFLOW_PAUSED'])
    t.is(paused.verdict.outcome, 'DID_NOT_GET_IT')
  },
)

test.serial(
  'of a workflow: an email to somebody who does not take marketing is skipped with the reason',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const skipped = {
      ...HELLO,
      id: 'never',
      conditions: [{ field: 'country', operator: 'equals', value: 'DE' }],
    }
    const workflowId = await publishWorkflow(organization, [start, skipped, HELLO], {
      settings: { exitOnUnsubscribe: false },
    })
    const email = await person(organization, 'Gone')
    await organization.confirmed('unsubscribe', { email })
    await organization.data('add_subscriber_to_workflow', { workflowId, email })
    const done = await eventually('the run to end', async () => {
      const now = await explain(organization, { email, workflowId })
      return told(now).includes('NOTE END') && now
    })
    t.is(done.verdict.outcome, 'DID_NOT_GET_IT')
    t.like(reason(done, 'CONDITIONS'), {
      outcome: 'AGAINST',
      stepId: 'never',
      message: 'The step never was left out. They did not meet the conditions of the step.',
    })
    t.like(reason(done, 'UNSUBSCRIBED'), { stepId: 'hello', message: 'They have unsubscribed.' })
    const { workflow } = await organization.data('get_workflow', { workflowId })
    const [, never] = workflow.draft.steps
    const alone = await explain(organization, { email, campaignId: never.config.campaignId })
    t.deepEqual(told(alone).slice(0, 2), ['FOR ENTERED', 'AGAINST CONDITIONS'])
    t.false(told(alone).includes('FOR QUEUED'))
    t.regex(alone.verdict.message, /The step never was left out\. They did not meet the conditions/)

    const fork = {
      id: 'fork',
      type: 'BRANCH',
      config: { paths: [{ id: 'de', filters: [{ field: 'country', operator: 'equals', value: 'DE' }] }] },
    }
    const forked = await publishWorkflow(organization, [start, fork, HELLO], {
      edges: [
        { from: 'start', to: 'fork' },
        { from: 'fork', port: 'de', to: 'hello' },
      ],
    })
    const other = await person(organization, 'Elsewhere', { country: 'FR' })
    await organization.data('add_subscriber_to_workflow', { workflowId: forked, email: other })
    const passed = await eventually('the run to end', async () => {
      const now = await explain(organization, { email: other, workflowId: forked })
      return told(now).includes('NOTE END') && now
    })
    t.like(reason(passed, 'STEP_NOT_REACHED'), { outcome: 'NOTE', stepId: 'hello' })
    const { workflow: graph } = await organization.data('get_workflow', { workflowId: forked })
    const missed = await explain(organization, {
      email: other,
      campaignId: graph.draft.steps[2].config.campaignId,
    })
    t.like(missed.verdict, { outcome: 'DID_NOT_GET_IT' })
    t.regex(missed.verdict.message, /did not lead to the step hello, so its email was not written\.$/)
  },
)

test.serial(
  'of a workflow: other data, a held email, a full throttle, a share that goes without, and a rule that ends it',
  async (t) => {
    const organization = await api.organization()
    const event = (eventType: string, where: object[] = []) => ({
      id: `on-${eventType}`.toLowerCase(),
      type: 'TRIGGER',
      config: { type: 'EVENT', eventType, where },
    })
    const emit = (email: string, eventType: string, amount: number) =>
      organization.data('create_event', { email, eventType, amount })
    const where = [{ path: 'amount', operator: 'gte', value: 50 }]
    const within = { ...HELLO, config: { ...HELLO.config, sendWindow: { ...CLOSED, timezone: 'UTC' } } }
    const held = await publishWorkflow(organization, [event('SUBSCRIBER_PAYMENT', where), within], {
      settings: {
        exitRules: [{ id: 'refunded', on: 'SUBSCRIBER_REFUND' }],
      },
    })
    const email = await person(organization, 'Held')
    await emit(email, 'SUBSCRIBER_PAYMENT', 5)
    const other = await explain(organization, { email, workflowId: held })
    t.regex(reason(other, 'OTHER_DATA').message, /does not have the data that the trigger asks for\.$/)
    t.is(other.verdict.outcome, 'WOULD_GET_IT')
    await emit(email, 'SUBSCRIBER_PAYMENT', 50)
    const waiting = await eventually('the email to be held', async () => {
      const now = await explain(organization, { email, workflowId: held })
      return told(now).includes('NOTE SEND_WINDOW') && now
    })
    t.regex(
      reason(waiting, 'SEND_WINDOW').message,
      /^The step hello held them back until .* Its hours of sending/,
    )
    t.is(waiting.verdict.outcome, 'UNDER_WAY')
    await emit(email, 'SUBSCRIBER_REFUND', 50)
    const refunded = await explain(organization, { email, workflowId: held })
    t.regex(
      reason(refunded, 'EXIT_RULE').message,
      /The exit rule “refunded” of the workflow took them out\.$/,
    )
    t.is(refunded.verdict.outcome, 'DID_NOT_GET_IT')

    const throttle = {
      id: 'slow',
      type: 'THROTTLE',
      config: { limit: 1, per: { amount: 1, unit: 'DAYS' }, overflow: 'SKIP' },
    }
    const variants = [
      { id: 'without', weight: 1 },
      { id: 'with', weight: 0 },
    ]
    const share = { id: 'share', type: 'SPLIT', config: { variants, holdoutVariantId: 'without' } }
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const shared = await publishWorkflow(organization, [start, throttle, share, HELLO], {
      edges: [
        { from: 'start', to: 'slow' },
        { from: 'slow', to: 'share' },
        { from: 'share', port: 'with', to: 'hello' },
      ],
    })
    const reasonsOf = async (name: string) => {
      const added = await person(organization, name)
      await organization.data('add_subscriber_to_workflow', { workflowId: shared, email: added })
      return await eventually('the run to end', async () => {
        const now = await explain(organization, { email: added, workflowId: shared })
        return told(now).includes('NOTE END') && now
      })
    }
    t.regex(
      reason(await reasonsOf('Without'), 'HOLDOUT').message,
      /^The step share was left out\. Chance put them/,
    )
    t.regex(
      reason(await reasonsOf('Full'), 'THROTTLE').message,
      /^The step slow was left out\. As many as may/,
    )
  },
)

test.serial(
  'of a workflow: who is in it and may get nothing more is not on the way to getting it',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const receipt = { ...HELLO, id: 'receipt', config: { ...HELLO.config, transactional: true } }
    const settings = { exitOnUnsubscribe: false }
    const plain = await publishWorkflow(organization, [start, LONG, HELLO], { settings })
    const mixed = await publishWorkflow(organization, [start, LONG, HELLO, receipt], { settings })
    const email = await person(organization, 'Gone')
    for (const workflowId of [plain, mixed]) {
      await organization.data('add_subscriber_to_workflow', { workflowId, email })
      await eventually('the wait', async () => {
        const now = await explain(organization, { email, workflowId })
        return now.reasons.some(({ code, stepId }) => code === 'IN_WORKFLOW' && stepId === 'rest')
      })
    }
    const become = async (status: string, category: string | null = null) => {
      await execute(
        em(),
        sql`update subscriber set status = ${status}, bounce_category = ${category}
        where organization_id = ${organization.id} and email = ${email}`,
      )
      const [one, both] = [
        await explain(organization, { email, workflowId: plain }),
        await explain(organization, { email, workflowId: mixed }),
      ]
      return [one.verdict.outcome, both.verdict.outcome, ...told(one).slice(-1), ...told(both).slice(-1)]
    }
    t.deepEqual(await become('SUBSCRIBED'), ['UNDER_WAY', 'UNDER_WAY', 'FOR SUBSCRIBED', 'FOR SUBSCRIBED'])
    t.deepEqual(await become('UNSUBSCRIBED'), [
      'WOULD_NOT_GET_IT',
      'UNDER_WAY',
      'AGAINST UNSUBSCRIBED',
      'NOTE UNSUBSCRIBED',
    ])
    for (const [status, category] of [['COMPLAINED'], ['BOUNCED', 'NO_SUCH_USER']] as const) {
      const against = `AGAINST ${status}`
      t.deepEqual(await become(status, category), ['WOULD_NOT_GET_IT', 'WOULD_NOT_GET_IT', against, against])
    }
    t.regex(
      (await explain(organization, { email, workflowId: plain })).verdict.message,
      /would not get email of the workflow .* Their address bounced/,
    )
  },
)

test.serial(
  'of a workflow: an email to which no way leads any more is told so while the run goes on',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const paths = [{ id: 'yes', filters: [{ field: 'country', operator: 'equals', value: 'DE' }] }]
    const fork = { id: 'fork', type: 'BRANCH', config: { paths } }
    const other = { ...HELLO, id: 'other' }
    const back = { id: 'back', type: 'JUMP', config: { toStepId: 'hello', maxTimes: 1 } }
    const steps = [start, fork, LONG, HELLO, other, { ...LONG, id: 'long' }, back]
    const workflowId = await publishWorkflow(organization, steps, {
      edges: [
        { from: 'start', to: 'fork' },
        { from: 'fork', port: 'yes', to: 'rest' },
        { from: 'fork', port: 'else', to: 'other' },
        { from: 'rest', to: 'back' },
        { from: 'other', to: 'hello' },
        { from: 'hello', to: 'long' },
      ],
    })
    const email = await person(organization, 'Branch', { country: 'DE' })
    await organization.data('add_subscriber_to_workflow', { workflowId, email })
    const { workflow } = await organization.data('get_workflow', { workflowId })
    const ask = async (id: string) => {
      const found = workflow.draft.steps.find((each: { id: string }) => each.id === id)
      return await explain(organization, { email, campaignId: found.config.campaignId })
    }
    const missed = await eventually('the branch', async () => {
      const now = await ask('other')
      return reason(now, 'IN_WORKFLOW').stepId === 'rest' && now
    })
    t.is(missed.verdict.outcome, 'WOULD_NOT_GET_IT')
    t.regex(
      missed.verdict.message,
      /From where they are in the workflow no way leads to the step other any more/,
    )
    t.is((await ask('hello')).verdict.outcome, 'UNDER_WAY', 'by the jump')
    t.is((await explain(organization, { email, workflowId })).verdict.outcome, 'UNDER_WAY')
  },
)

test.serial(
  'of a workflow: no way leads by a jump that is exhausted, nor to the email of a step that was taken out',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const having = (tag: string) => [{ field: 'tags', operator: 'has_any', value: [tag] }]
    const paths = [
      { id: 'been', filters: having('been') },
      { id: 'chosen', filters: having('chosen') },
    ]
    const fork = { id: 'fork', type: 'BRANCH', config: { paths } }
    const tag = { id: 'tag', type: 'ADD_TAG', config: { tagNames: ['been'] } }
    const back = { id: 'back', type: 'JUMP', config: { toStepId: 'fork', maxTimes: 1 } }
    const steps = [start, fork, HELLO, tag, LONG, { ...LONG, id: 'later' }, back]
    const workflowId = await publishWorkflow(organization, steps, {
      edges: [
        { from: 'start', to: 'fork' },
        { from: 'fork', port: 'chosen', to: 'hello' },
        { from: 'fork', port: 'been', to: 'later' },
        { from: 'fork', port: 'else', to: 'tag' },
        { from: 'tag', to: 'rest' },
        { from: 'rest', to: 'back' },
        { from: 'later', to: 'back' },
      ],
    })
    const [email, other] = [await person(organization, 'In'), await person(organization, 'Out')]
    const { workflow } = await organization.data('get_workflow', { workflowId })
    const { campaignId } = workflow.draft.steps.find(({ id }: { id: string }) => id === 'hello').config
    const askedAt = (step: string) =>
      eventually(`the wait in ${step}`, async () => {
        const now = await explain(organization, { email, campaignId })
        return now.reasons.some(({ code, stepId }) => code === 'IN_WORKFLOW' && stepId === step) && now
      })
    await organization.data('add_subscriber_to_workflow', { workflowId, email })
    t.is((await askedAt('rest')).verdict.outcome, 'UNDER_WAY', 'by the jump')
    await fastForward(organization, { workflowId, email, expectedStepId: 'rest' })
    const exhausted = await askedAt('later')
    t.is(exhausted.verdict.outcome, 'WOULD_NOT_GET_IT')
    t.like(reason(exhausted, 'STEP_NOT_REACHED'), { outcome: 'AGAINST', stepId: 'hello' })

    t.is((await explain(organization, { email: other, campaignId })).verdict.outcome, 'WOULD_GET_IT')
    await organization.data('configure_workflow_draft', {
      workflowId,
      expectedUpdatedAt: workflow.updatedAt,
      steps: [start, LONG],
      edges: [{ from: 'start', to: 'rest' }],
    })
    await organization.confirmed('publish_workflow', { workflowId })
    const gone = await explain(organization, { email: other, campaignId })
    t.is(gone.verdict.outcome, 'WOULD_NOT_GET_IT')
    t.like(reason(gone, 'NOT_PUBLISHED'), { outcome: 'AGAINST', stepId: 'hello' })
  },
)

test.serial(
  'of a workflow in a group: what the group would do with a newcomer is told before, and is what it does',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const member = async (groupId: string, name: string, priority: number) => {
      const workflowId = await publishWorkflow(organization, [start, LONG, HELLO], {
        name,
        settings: { priority },
      })
      await organization.data('set_workflow_group', { workflowId, groupId })
      return workflowId
    }
    const ask = async (group: object, priority: number) => {
      const name = JSON.stringify([group, priority])
      const groupId = (await organization.data('create_workflow_group', { name, ...group })).group.id
      const [one, two] = [await member(groupId, 'One', 50), await member(groupId, 'Two', priority)]
      const email = await person(organization, `p${priority}`)
      const free = await explain(organization, { email, workflowId: two })
      t.false(free.reasons.some(({ code }) => code.startsWith('GROUP_')))
      await organization.data('add_subscriber_to_workflow', { workflowId: one, email })
      const before = await explain(organization, { email, workflowId: two })
      await organization.data('add_subscriber_to_workflow', { workflowId: two, email })
      const { runs } = await organization.data('get_subscriber_workflow_runs', { email, limit: 2 })
      const [newcomer, first] = runs.map(({ status }: { status: string }) => status)
      return { verdict: before.verdict.outcome, told: before.reasons.at(-1), newcomer, first }
    }
    const first = await ask({ conflictStrategy: 'FIRST_WINS' }, 10)
    t.like(first, { verdict: 'WOULD_NOT_GET_IT', newcomer: 'SKIPPED' })
    t.like(first.told, { outcome: 'AGAINST', code: 'GROUP_CONFLICT' })
    t.regex(
      first.told?.message ?? '',
      /^They are in the workflow “One” of the group .* keeps those who came first/,
    )
    const last = await ask({ conflictStrategy: 'LAST_WINS' }, 20)
    t.like(last, { verdict: 'WOULD_GET_IT', first: 'CANCELED' })
    t.like(last.told, { outcome: 'NOTE', code: 'GROUP_TAKES_PLACE' })
    const equal = await ask({ conflictStrategy: 'PRIORITY' }, 50)
    t.like(equal, { verdict: 'WOULD_NOT_GET_IT', newcomer: 'SKIPPED' })
    const higher = await ask({ name: 'Higher', conflictStrategy: 'PRIORITY' }, 51)
    t.like(higher, { verdict: 'WOULD_GET_IT', first: 'CANCELED' })
    const queued = await ask({ conflictStrategy: 'QUEUE', maxQueueAge: { amount: 2, unit: 'DAYS' } }, 30)
    t.like(queued, { verdict: 'WOULD_GET_IT', newcomer: 'QUEUED' })
    t.like(queued.told, { outcome: 'WAITING', code: 'GROUP_QUEUE' })
    t.regex(queued.told?.message ?? '', /would wait for their turn in the group .*, for at most 2 days/)
  },
)

test.serial(
  'of a workflow: an email that could not leave is told as the failure of its step, whatever follows it',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const after = { id: 'after', type: 'ADD_TAG', config: { tagNames: ['after'] } }
    const email = await person(organization, 'Lost')
    const published: string[] = []
    for (const onError of ['CONTINUE', 'EXIT']) {
      published.push(await publishWorkflow(organization, [start, { ...HELLO, onError }, after]))
    }
    await execute(em(), sql`update domain set status = 'FAILED' where organization_id = ${organization.id}`)
    const endOf = async (workflowId = '') => {
      await organization.data('add_subscriber_to_workflow', { workflowId, email })
      return await eventually('the run to end', async () => {
        const now = await explain(organization, { email, workflowId })
        return now.reasons.some(({ code }) => code === 'END' || code === 'ERROR') && now
      })
    }
    const [wentOn, left] = [await endOf(published[0]), await endOf(published[1])]
    t.deepEqual(told(wentOn).slice(0, 3), ['FOR ENTERED', 'AGAINST DOMAIN_NOT_VERIFIED', 'NOTE END'])
    t.regex(
      wentOn.verdict.message,
      /did not get .* The step hello failed: the domain of its sender is not VERIFIED any more, and none stands in\.$/,
    )
    t.deepEqual(told(left).slice(0, 3), ['FOR ENTERED', 'AGAINST DOMAIN_NOT_VERIFIED', 'AGAINST ERROR'])
    t.regex(
      reason(left, 'ERROR').message,
      /ended before its end, at the step hello\. Their way .* had failed\.$/,
    )
  },
)

test.serial(
  'of a workflow: a step that a pause held back is told after the workflow has gone on too',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const workflowId = await publishWorkflow(organization, [start, LONG])
    const email = await person(organization, 'Held')
    const { run } = await organization.data('add_subscriber_to_workflow', { workflowId, email })
    await eventually('the wait', async () => {
      const now = await explain(organization, { email, workflowId })
      return now.reasons.some(({ code, stepId }) => code === 'IN_WORKFLOW' && stepId === 'rest')
    })
    await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
    await passWait(api.services, organization, decodeId('run', run.id))
    const held = await eventually('the run to be held', async () => {
      const now = await explain(organization, { email, workflowId })
      return told(now).includes('NOTE PAUSED') ? now : null
    })
    t.regex(reason(held, 'PAUSED').message, /^The step \w+ held them back\. The workflow was paused/)
    await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })
    const after = await eventually('the end', async () => {
      const now = await explain(organization, { email, workflowId })
      return told(now).includes('NOTE END') ? now : null
    })
    t.is(told(after).filter((each) => each === 'NOTE PAUSED').length, 1)
  },
)

test.serial(
  'of a workflow: an email that a pause held in its lane is told after it went out too',
  async (t) => {
    const organization = await api.organization()
    const start = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
    const workflowId = await publishWorkflow(organization, [start, HELLO])
    const email = await person(organization, 'Queued')
    await stack.lanes.stop()
    await organization.data('add_subscriber_to_workflow', { workflowId, email })
    await eventually('the email to be queued', async () =>
      told(await explain(organization, { email, workflowId })).includes('WAITING IN_QUEUE'),
    )
    await organization.data('update_workflow_status', { workflowId, status: 'PAUSED' })
    await stack.lanes.start()
    const held = await eventually('the email to be held', async () => {
      const now = await explain(organization, { email, workflowId })
      return told(now).includes('WAITING HELD') && now
    })
    t.deepEqual(told(held), [
      'FOR ENTERED',
      'FOR QUEUED',
      'NOTE PAUSED',
      'WAITING IN_WORKFLOW',
      'WAITING HELD',
      'WAITING WORKFLOW_PAUSED',
      'FOR SUBSCRIBED',
    ])
    const note = reason(held, 'PAUSED')
    t.is(note.message, 'The email was held back. The workflow was paused when its time came.')
    t.like(note, { stepId: 'hello', emailId: reason(held, 'QUEUED').emailId })
    t.is(held.verdict.outcome, 'UNDER_WAY')
    t.regex(held.verdict.message, /The workflow is paused: nothing is sent until it is active again\.$/)
    await organization.confirmed('update_workflow_status', { workflowId, status: 'ACTIVE' })
    const after = await eventually('the end', async () => {
      const now = await explain(organization, { email, workflowId })
      return told(now).includes('NOTE END') ? now : null
    })
    t.deepEqual(told(after).slice(0, 4), ['FOR ENTERED', 'FOR QUEUED', 'NOTE PAUSED', 'FOR SENT'])
    t.is(after.verdict.outcome, 'GOT_IT')
    t.deepEqual(reason(after, 'PAUSED'), note)
  },
)

test.serial('one person and one thing are asked about, and nobody else’s', async (t) => {
  const [organization, other] = await Promise.all([api.organization(), api.organization()])
  const campaignId = await draft(organization)
  const workflowId = await publishWorkflow(organization, [
    { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
    HELLO,
  ])
  const email = await person(organization, 'Ann')
  const theirs = await person(other, 'Ann')
  const asked = async (input: object, who = organization) => {
    const { status, body } = await who.call('explain_delivery', input)
    return `${status} ${body.error}`
  }
  t.regex(await asked({ email }), /^400 campaignId or workflowId says/)
  t.regex(await asked({ email, campaignId, workflowId }), /^400 campaignId or workflowId says/)
  t.regex(await asked({ campaignId }), /^400 subscriberId and email/)
  t.regex(await asked({ email: theirs, campaignId }), /^404 /)
  t.regex(await asked({ email: theirs, campaignId }, other), /^404 There is no campaign/)
  t.regex(await asked({ email: theirs, workflowId }, other), /^404 There is no workflow/)
  t.regex(await asked({ email, campaignId: 'cmp_nonsense' }), /^404 /)
  const token = await organization.tokenWith(['campaigns', 'workflows'])
  const path = '/api/v2/tools/explain_delivery'
  t.is((await api.request('POST', path, { token, body: { email, campaignId } })).status, 403)
})
