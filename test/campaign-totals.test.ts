import test from 'ava'
import { sql } from 'kysely'

import { execute, row, rows } from '../src/database.ts'
import { decodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

const EMAILS = 300
/** Changes that can happen to an email, in any order: outcomes, details, and late reports. */
const CHANGES = [
  sql`status = 'SENT', sent_at = now()`,
  sql`status = 'SENT', sent_at = now() - interval '3 hours', resent = true`,
  sql`status = 'DELIVERED', delivered_at = now()`,
  sql`status = 'DELAYED', sent_at = null, resent = true`,
  sql`status = 'BOUNCED', bounce_category = 'MAILBOX_FULL', reason = 'MAILBOX_FULL'`,
  sql`status = 'BOUNCED', bounce_category = null`,
  sql`status = 'COMPLAINED'`,
  sql`status = 'FAILED', reason = 'SENDER_REFUSED'`,
  sql`status = 'SKIPPED', reason = 'UNSUBSCRIBED'`,
  sql`status = 'SKIPPED', reason = null`,
  sql`opened_at = now()`,
]

let api: TestApi
test.before(async () => {
  api = await startApi()
})
test.after.always(() => api?.close())

const em = () => api.services.orm.em.fork()

/** Creates a campaign that is being sent. Five of its recipients are skipped, and a test email of it was sent. */
async function underWay(organization: TestOrganization): Promise<string> {
  const { campaign } = await organization.data('create_campaign', { subject: 'News' })
  const id = decodeId('cmp', campaign.id)
  await execute(
    em(),
    sql`with begun as (update campaign set status = 'SENDING' where id = ${id} returning *)
      insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
        sender_email, recipient_filters, total, started_at)
      select ${newId()}, organization_id, id, 1, subject, content, content_type, 'Shop', 'news@shop.example', '[]',
        ${EMAILS + 5}::int, now() - interval '1 hour' from begun`,
  )
  await execute(
    em(),
    sql`insert into campaign_recipient (organization_id, campaign_id, subscriber_id, message_id, reason)
      select ${organization.id}, ${id}, new_id(), new_id(), 'UNSUBSCRIBED' from generate_series(1, 5)`,
  )
  await execute(
    em(),
    sql`insert into message (id, organization_id, class, marketing, recipient, from_email, campaign_id)
      select new_id(), ${organization.id}, case when n = 0 then 'TEST' else 'CAMPAIGN' end, true,
        'reader-' || n || '@reader.example', 'news@shop.example', ${id} from generate_series(0, ${EMAILS}::int) n`,
  )
  return campaign.id
}

/** Returns the totals of a campaign, counted from the rows of its emails. */
async function counted(campaignId: string) {
  const of = sql`from message where campaign_id = ${decodeId('cmp', campaignId)} and class <> 'TEST'`
  const totals = await row<Record<string, number>>(
    em(),
    sql`select count(sent_at)::int as sent, count(delivered_at)::int as delivered,
      count(*) filter (where status = 'BOUNCED')::int as bounced,
      count(*) filter (where status = 'COMPLAINED')::int as complained,
      count(*) filter (where status = 'FAILED')::int as failed,
      count(*) filter (where status in ('QUEUED', 'SUBMITTING', 'DELAYED'))::int as queued,
      count(*) filter (where resent and status not in ('QUEUED', 'SUBMITTING', 'DELAYED'))::int as "ambiguousResent" ${of}`,
  )
  const byKey = async (key: ReturnType<typeof sql>, condition: ReturnType<typeof sql>) => {
    const found = await rows<{ key: string; count: number }>(
      em(),
      sql`select ${key} as key, count(*)::int as count ${of} and ${condition} group by 1 order by 1`,
    )
    return Object.fromEntries(found.map(({ key: name, count }) => [name, count]))
  }
  const skipped = await byKey(sql`coalesce(reason, 'UNKNOWN')`, sql`status = 'SKIPPED'`)
  return {
    ...totals,
    skipped: { ...skipped, UNSUBSCRIBED: (skipped['UNSUBSCRIBED'] ?? 0) + 5 },
    bounces: await byKey(sql`coalesce(bounce_category, 'UNKNOWN')`, sql`status = 'BOUNCED'`),
    hours: await byKey(
      sql`to_char(sent_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00.000"Z"')`,
      sql`sent_at is not null`,
    ),
  }
}

async function told(organization: TestOrganization, campaignId: string) {
  const { progress } = await organization.data('get_campaign_progress', { campaignId })
  const { analytics } = await organization.data('get_campaign_analytics', { campaignId })
  const { sent, delivered, bounced, complained, failed, queued, ambiguousResent, skipped } = progress
  const timeline: { hour: string; sent: number }[] = analytics.timeline
  return {
    sent,
    delivered,
    bounced,
    complained,
    failed,
    queued,
    ambiguousResent,
    skipped,
    bounces: analytics.bounces,
    hours: Object.fromEntries(timeline.map((each) => [each.hour, each.sent])),
  }
}

test('the totals of a campaign are those of its emails, whatever becomes of them, in whatever order and at once', async (t) => {
  const organization = await api.organization()
  const campaignId = await underWay(organization)
  const emails = await rows<{ id: string }>(
    em(),
    sql`select id from message where campaign_id = ${decodeId('cmp', campaignId)} order by id`,
  )
  t.like(await told(organization, campaignId), { sent: 0, queued: EMAILS, skipped: { UNSUBSCRIBED: 5 } })
  const { analytics } = await organization.data('get_campaign_analytics', { campaignId })
  t.is(analytics.recipients, EMAILS + 5, 'also those without an outcome')
  const change = async (part: number, turn: number) => {
    const some = emails.flatMap(({ id }, n) => (n % 6 === part && (n * 7 + turn) % 3 === 0 ? [id] : []))
    await em().transactional(async (own) => {
      for (const shift of [0, 5]) {
        const changed = CHANGES[(part + turn * 4 + shift) % CHANGES.length]
        await execute(own, sql`update message set ${changed} where id = any(${`{${some.join()}}`}::uuid[])`)
      }
      if (turn % 4 === 3) await Promise.reject(new Error('crash'))
    })
  }
  for (let turn = 0; turn < 12; turn++) {
    const parts = [0, 1, 2, 3, 4, 5].map((part) => change(part, turn))
    await Promise.allSettled(parts)
    t.deepEqual(await told(organization, campaignId), await counted(campaignId), `turn ${turn}`)
  }
})

test('who gets no email counts once, whenever it is decided and whatever becomes of the audience', async (t) => {
  const organization = await api.organization()
  const campaignId = await underWay(organization)
  const own = sql`campaign_id = ${decodeId('cmp', campaignId)}`
  await execute(
    em(),
    sql`insert into campaign_recipient (organization_id, campaign_id, subscriber_id, message_id)
      select organization_id, campaign_id, new_id(), new_id() from campaign_recipient where ${own}`,
  )
  await execute(
    em(),
    sql`update campaign_recipient set reason = 'CAMPAIGN_ENDED' where ${own} and reason is null`,
  )
  await execute(
    em(),
    sql`update campaign_recipient set message_id = new_id(), subscriber_id = new_id() where ${own}`,
  )
  const skipped = { UNSUBSCRIBED: 5, CAMPAIGN_ENDED: 5 }
  t.like(await told(organization, campaignId), { skipped })
  await execute(em(), sql`delete from campaign_recipient where ${own}`)
  t.like(await told(organization, campaignId), { skipped })
})

test('what came of a campaign is told without its emails, and stays when they are gone', async (t) => {
  const organization = await api.organization()
  const campaignId = await underWay(organization)
  await execute(
    em(),
    sql`update message set status = 'SENT', sent_at = now() where campaign_id = ${decodeId('cmp', campaignId)}`,
  )
  const before = await told(organization, campaignId)
  t.like(before, { sent: EMAILS, queued: 0 })
  const { progress } = await organization.data('get_campaign_progress', { campaignId })
  t.true(progress.ratePerSecond >= 0 && progress.ratePerSecond <= EMAILS / 10, `${progress.ratePerSecond}`)
  await execute(em(), sql`delete from message where campaign_id = ${decodeId('cmp', campaignId)}`)
  t.deepEqual(await told(organization, campaignId), before)
})
