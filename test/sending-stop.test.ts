import test from 'ava'
import { sql } from 'kysely'

import { execute, row, rows } from '../src/database.ts'
import { claimCampaignMails } from '../src/delivery/claims.ts'
import { decodeId, newId } from '../src/ids.ts'
import { countAll, startDeliverability } from '../worker/deliverability.ts'
import type { Answer, TestApi, TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import type { Sink, SinkBehaviour } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'

const CONTENT = 'Hi {{name}}, [leave]({{unsubscribeUrl}}).'

const GONE: SinkBehaviour = {
  onRecipient: (address) =>
    address.startsWith('gone') ? { code: 550, text: '5.1.1 no such user' } : 'accept',
}

let stack: Stack
let api: TestApi
let sink: Sink
let counting: { stop(): Promise<void> }

test.before(async () => {
  stack = await startStack({ queue: 'stops', env: { LANE_RATE_BULK: '60', LOG_LEVEL: 'fatal' } })
  ;({ api, sink } = stack)
  sink.behaviour = GONE
  counting = startDeliverability(api.services)
})
test.after.always(async () => {
  await counting?.stop()
  await stack?.close()
})

const em = () => stack.em()

/** Creates subscribers; every sixth has an address that does not exist. */
async function people(organization: TestOrganization, count: number): Promise<void> {
  const mark = newId().slice(-12)
  await execute(
    em(),
    sql`insert into subscriber (id, organization_id, email, name, status)
      select new_id(), ${organization.id}, case n % 6 when 0 then 'gone' else 'reader' end || n || '@' || ${mark} || '.example',
        'Reader ' || n, 'SUBSCRIBED'
      from generate_series(1, ${count}::int) n`,
  )
}

async function schedule(organization: TestOrganization): Promise<string> {
  const input = { subject: 'News', contentType: 'MARKDOWN', content: CONTENT }
  const { campaign } = await organization.data('create_campaign', input)
  const answer = await organization.confirmed('schedule_campaign', { campaignId: campaign.id })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  return campaign.id
}

async function progress(organization: TestOrganization, campaignId: string) {
  return (await organization.data('get_campaign_progress', { campaignId })).progress
}

async function stopsOf(organization: TestOrganization) {
  const { domains } = await organization.data('list_domains')
  return domains[0].stops
}

function send(organization: TestOrganization, to: string): Promise<Answer> {
  return api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to, subject: 'Receipt', content: 'Thank you.' },
  })
}

/**
 * Sends `count` receipts, every sixth to an address that does not exist. Waits until each has an outcome or is held
 * because earlier ones stopped the domain. None is refused for the stop, because all are accepted before the first is
 * sent.
 */
async function sendReceipts(organization: TestOrganization, count: number): Promise<void> {
  const mark = newId().slice(-12)
  await stack.lanes.stop()
  await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const { status } = await send(organization, `${n % 6 === 0 ? 'gone' : 'reader'}${n}@${mark}.example`)
      if (status !== 200) throw new Error(`${status}`)
    }),
  )
  await stack.lanes.start()
  await eventually('every receipt to have an outcome', async () => {
    const left = await rows(
      em(),
      sql`select from delivery_queue where organization_id = ${organization.id} and state <> 'held'`,
    )
    const uncounted = await rows(
      em(),
      sql`select from outcome_batch where organization_id = ${organization.id}`,
    )
    return left.length + uncounted.length === 0
  })
}

test.serial(
  'a campaign whose addresses bounce stops by itself, says so wherever one looks, and goes on to exactly the rest',
  async (t) => {
    const organization = await api.organization()
    const bystander = await api.organization()
    await people(organization, 900)
    const campaignId = await schedule(organization)
    const stopped = await eventually(
      'sending to stop',
      async () => {
        const now = await progress(organization, campaignId)
        return now.stop !== null && now
      },
      { withinMs: 60_000 },
    )
    t.like(stopped, { status: 'SENDING', paused: false, etaSeconds: null })
    t.like(stopped.stop, { stream: 'MARKETING', reason: 'BOUNCES' })
    t.regex(
      stopped.stop.message,
      /^Marketing email from .* was stopped automatically: \d+ bounces of \d+ emails/,
    )
    t.true(stopped.queued > 50, `${stopped.queued} wait`)
    t.deepEqual(await stopsOf(organization), [stopped.stop])
    t.deepEqual(await stopsOf(bystander), [])

    const { health } = await organization.data('get_deliverability_health')
    t.is(health.domains[0].level, 'STOP')
    t.deepEqual(
      health.domains[0].findings.map(({ code }: { code: string }) => code),
      ['SENDING_STOPPED', 'BOUNCE_RATE'],
    )
    await eventually('nothing to be under way', async () => {
      const under = await rows(
        em(),
        sql`select from delivery_queue where organization_id = ${organization.id} and state <> 'held'
          union all select from campaign_batch where organization_id = ${organization.id}`,
      )
      return under.length === 0
    })
    const waiting = await rows<{ id: string }>(
      em(),
      sql`select r.subscriber_id as id from campaign_recipient r left join message m
          on m.organization_id = r.organization_id and m.id = r.message_id
        where r.organization_id = ${organization.id} and coalesce(m.status, 'QUEUED') = 'QUEUED'`,
    )
    t.deepEqual(await claimCampaignMails(em(), 100, 60_000), [], 'nothing more is written')
    const last = await row<{ email: string }>(
      em(),
      sql`select email from subscriber where id = ${waiting.at(-1)?.id}`,
    )
    const { reasons, verdict } = await organization.data('explain_delivery', {
      email: last?.email,
      campaignId,
    })
    t.is(verdict.outcome, 'UNDER_WAY')
    t.true(reasons.some(({ code }: { code: string }) => code === 'SENDING_STOPPED'))

    const before = sink.accepted().length
    t.is((await send(organization, 'reader@reader.example')).status, 200, 'what one person waits for goes on')
    await eventually('the receipt', () => sink.accepted().length === before + 1)
    const next = await organization.data('create_campaign', {
      subject: 'More',
      contentType: 'MARKDOWN',
      content: CONTENT,
    })
    const asked = await organization.call('schedule_campaign', { campaignId: next.campaign.id })
    t.is(asked.body.summary.warnings[0], stopped.stop.message)

    const challenge = await organization.call('resume_sending', { domain: organization.domain })
    t.is(challenge.status, 428)
    t.is(challenge.body.summary.recipients, waiting.length)
    const foreign = await bystander.call('resume_sending', { domain: organization.domain })
    t.is(foreign.status, 404)
    t.is((await bystander.call('resume_sending', { domain: bystander.domain })).body.code, 'WRONG_STATE')
    sink.behaviour = {}
    const resumed = await organization.call('resume_sending', {
      domain: organization.domain,
      confirmationCode: challenge.body.confirmationCode,
    })
    t.deepEqual(resumed.body.data?.domain.stops, [])
    const done = await eventually(
      'the campaign to end',
      async () => {
        const now = await progress(organization, campaignId)
        return now.status === 'SENT' && now
      },
      { withinMs: 60_000 },
    )
    t.is(done.sent + done.bounced, 900)
    t.is(done.stop, null)
    const domain = organization.domain
    const got = sink.accepted().filter(({ from }) => from.endsWith(`@send.${domain}`))
    t.is(new Set(got.map(({ recipient }) => recipient)).size, done.sent + 1, 'each once, and the receipt')
    t.is(got.length, done.sent + 1)
    const trail = await rows<{ action: string }>(
      em(),
      sql`select action from audit_entry where organization_id = ${organization.id} and action like 'sending.%' order by id`,
    )
    t.deepEqual(
      trail.map(({ action }) => action),
      ['sending.stopped', 'sending.resumed'],
    )
    sink.behaviour = GONE
  },
)

test.serial(
  'transactional email stops by its own bounces, is refused then, and is judged anew after it was resumed',
  async (t) => {
    const organization = await api.organization()
    await sendReceipts(organization, 90)
    t.deepEqual(await stopsOf(organization), [], '15 of 90 are too few to judge')
    await sendReceipts(organization, 30)
    const [stop] = await eventually('the stop', async () => {
      const stops = await stopsOf(organization)
      return stops.length > 0 && stops
    })
    t.like(stop, { stream: 'TRANSACTIONAL', reason: 'BOUNCES' })
    const refused = await send(organization, 'reader@reader.example')
    t.is(refused.status, 409)
    t.regex(refused.body.message, /^Transactional email from .* is stopped because of too many bounces; /)
    const gated = await organization.call('send_email', {
      email: 'reader@reader.example',
      subject: 'Hi',
      content: 'Hi',
    })
    t.is(gated.body.code, 'WRONG_STATE', 'before the challenge')

    const waits = await hold(organization)
    await execute(
      em(),
      sql`update delivery_queue set first_tried_at = now() - interval '25 hours' where id = ${waits}`,
    )
    const statusOf = async () =>
      (await row<{ status: string }>(em(), sql`select status from message where id = ${waits}`))?.status
    const behaviour = sink.behaviour
    sink.behaviour = { onRecipient: () => ({ code: 451, text: '4.7.1 greylisted' }) }
    t.is((await organization.confirmed('resume_sending', { domain: organization.domain })).status, 200)
    await eventually('what waited to have another day of tries', async () => (await statusOf()) === 'DELAYED')
    sink.behaviour = behaviour
    await eventually('what waited to be sent', async () => (await statusOf()) === 'SENT')
    const late = await rows<{ id: string }>(
      em(),
      sql`select id from message where organization_id = ${organization.id} and status = 'SENT' and id <> ${waits}`,
    )
    await execute(
      em(),
      sql`update message set status = 'BOUNCED', bounce_category = 'NO_SUCH_USER'
        where id = any(${`{${late.map(({ id }) => id).join()}}`}::uuid[])`,
    )
    await sendReceipts(organization, 90)
    await countAll(api.services)
    t.deepEqual(await stopsOf(organization), [], 'what was sent before is no reason any more')
    await sendReceipts(organization, 30)
    await eventually('the next stop', async () => (await stopsOf(organization)).length === 1)
  },
)

/** Creates an email that was queued before its domain stopped. Returns its uuid. */
async function hold(organization: TestOrganization): Promise<string> {
  const id = newId()
  await execute(
    em(),
    sql`with person as (
        insert into subscriber (id, organization_id, email, status)
        values (${newId()}, ${organization.id}, 'waits@reader.example', 'TRANSACTIONAL') returning id
      ), written as (
        insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email)
        select ${id}, ${organization.id}, 'TRANSACTIONAL', false, id, 'waits@reader.example',
          ${`Hello@${organization.domain.toUpperCase()}`} from person
      ), said as (
        insert into message_content (organization_id, message_id, source)
        values (${organization.id}, ${id}, '{"subject": "Hi", "content": "Hi", "contentType": "MARKDOWN", "preview": null}')
      )
      insert into delivery_queue (id, organization_id, lane, weight) values (${id}, ${organization.id}, 'transactional', 1)`,
  )
  await eventually('it to be held', async () => {
    const found = await row<{ state: string; heldBy: string }>(
      em(),
      sql`select state, held_by as "heldBy" from delivery_queue where id = ${id}`,
    )
    const { domains } = await organization.data('list_domains')
    return found?.state === 'held' && found.heldBy === decodeId('dom', domains[0].id)
  })
  const deferral = await row<{ reason: string }>(
    em(),
    sql`select reason from decision where organization_id = ${organization.id} and message_id = ${id}`,
  )
  if (deferral?.reason !== 'SENDING_STOPPED') throw new Error('that it is held is not in the ledger')
  return id
}
