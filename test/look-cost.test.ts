import test from 'ava'
import { sql } from 'kysely'
import pg from 'pg'

import type { Filter } from '../schema/audience.ts'
import { spendCode } from '../src/catalogue/confirmation.ts'
import { CATALOGUE } from '../src/catalogue/registry.ts'
import type { Call } from '../src/catalogue/tool.ts'
import { crossOrganization } from '../src/catalogue/unit-of-work.ts'
import { array, execute, json, row } from '../src/database.ts'
import { reviveQueue } from '../src/delivery/claims.ts'
import { listVersions } from '../src/domain/automations/definition/version-records.ts'
import { loadVersion } from '../src/domain/automations/definition/versions.ts'
import { beginIntake, continueIntake } from '../src/domain/automations/entry/intake.ts'
import { createGroup, deleteGroup, getGroup } from '../src/domain/automations/groups/groups.ts'
import { noteFreshConditions } from '../src/domain/automations/runs/conditions.ts'
import { catchMissedEvents, organizationsWithFreshWaits } from '../src/domain/automations/runs/overdue.ts'
import { nextDue, timedTrigger } from '../src/domain/automations/triggers/due-people.ts'
import { claimWebhooks } from '../src/domain/automations/webhooks/webhooks.ts'
import { countRecipients } from '../src/domain/campaigns/audience.ts'
import { freezeAudience } from '../src/domain/campaigns/freeze.ts'
import { deleteCampaign } from '../src/domain/campaigns/update.ts'
import { keepHouse } from '../src/domain/housekeeping.ts'
import { readSnippet } from '../src/domain/library/snippets.ts'
import { eraseSubscriber, NO_ADDRESS } from '../src/domain/subscribers/erasure.ts'
import { listSuppressions } from '../src/domain/subscribers/suppressions.ts'
import { deleteTag, summarizeTagDeletion } from '../src/domain/subscribers/tag-records.ts'
import { ensureTags } from '../src/domain/subscribers/tags.ts'
import { browseDeliveries } from '../src/domain/webhooks/deliveries.ts'
import { claimTurns } from '../src/domain/webhooks/turns.ts'
import { decodeId, encodeId, newId, NIL_ID } from '../src/ids.ts'
import { edges, emailStep, makeTenant, publish, step, type Tenant } from './helpers/automation.ts'
import { UNFOLLOWED } from './helpers/control.ts'
import { type TestServices, testServices } from './helpers/database.ts'
import { watchStatements } from './helpers/statements.ts'

const MANY = 100_000

type Sent = { text: string; values: unknown[] }
type Plan = {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

let services: TestServices
let sent: Sent[] = []

test.before(async () => {
  watchStatements((text, values) => {
    if (Array.isArray(values)) sent.push({ text, values })
  })
  services = await testServices()
})
test.after.always(async () => {
  await services?.close()
})

/** Returns how many rows the statement with this beginning that `work` sends reads, and rolls its effects back. */
async function rowsRead(work: () => Promise<unknown>, beginning = 'with recursive'): Promise<number> {
  sent = []
  await work()
  const statement = sent.find(({ text }) => text.startsWith(beginning))
  if (!statement) throw new Error('the statement was not sent')
  const client = new pg.Client(services.databaseUrl)
  await client.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query(`explain (analyze, format json) ${statement.text}`, statement.values)
    return readBy(rows[0]['QUERY PLAN'][0].Plan)
  } finally {
    await client.end()
  }
}

function readBy(plan: Plan): number {
  const own =
    plan['Relation Name'] === undefined ? 0 : plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)
  return own * plan['Actual Loops'] + (plan.Plans ?? []).reduce((sum, each) => sum + readBy(each), 0)
}

/** Returns how many rows and index entries of a table and its partitions `work` reads for the tenant. */
async function readFrom(
  tenant: Tenant,
  table: string,
  work: (call: Call) => Promise<unknown>,
): Promise<number> {
  return await tenant.within(async (call) => {
    const before = await readSoFar(call, table)
    await work(call)
    return (await readSoFar(call, table)) - before
  })
}

async function readSoFar({ em: own }: Call, table: string): Promise<number> {
  const found = await row<{ read: number }>(
    own,
    sql`with part as (
        select ${table}::regclass as id union select relid from pg_partition_tree(${table}::regclass)
      )
      select sum(pg_stat_get_xact_tuples_returned(id))::int as read
      from (select id from part union all select indexrelid from part join pg_index on indrelid = part.id) each`,
  )
  return found?.read ?? 0
}

/** Adds so many subscribers. */
async function addPeople(tenant: Tenant, count: number): Promise<void> {
  await execute(
    crossOrganization(services),
    sql`insert into subscriber (id, organization_id, email, status)
      select new_id(), ${tenant.id}, 'p' || n || '@example.com', 'SUBSCRIBED' from generate_series(1, ${count}::int) n`,
  )
}

test.serial(
  'a look over the queue reads what is ready, however much is held or waits for its next try',
  async (t) => {
    const em = crossOrganization(services)
    const [organization, campaign] = [newId(), newId()]
    await execute(em, sql`insert into organization (id, name, slug) values (${organization}, 'Shop', 'shop')`)
    await execute(
      em,
      sql`insert into campaign (id, organization_id, kind, status, paused)
      values (${campaign}, ${organization}, 'BROADCAST', 'SENDING', true)`,
    )
    await execute(
      em,
      sql`insert into delivery_queue (id, organization_id, lane, campaign_id, state, held_by, next_attempt_at)
      select new_id(), ${organization}, 'bulk', ${campaign}, (array['held', 'deferred', 'queued'])[n % 3 + 1],
        case n % 3 when 0 then ${campaign}::uuid end, now() + interval '1 hour'
      from generate_series(1, ${MANY}::int) n`,
    )
    await execute(
      em,
      sql`insert into delivery_queue (id, organization_id, lane, state, held_by, next_attempt_at, lease_until)
      select new_id(), ${organization}, 'bulk', (array['held', 'deferred', 'claimed'])[n % 3 + 1],
        case n % 3 when 0 then ${newId()}::uuid end, now() - interval '1 hour', now() - interval '1 minute'
      from generate_series(1, 30) n`,
    )
    await execute(em, sql`analyze delivery_queue`)
    let revived = 0
    const read = await rowsRead(async () => {
      revived = await reviveQueue(em)
    })
    t.is(revived, 30)
    t.log(`${read} rows`)
    t.true(read < 500, `${read} rows`)
  },
)

test.serial('a look for webhooks reads what has something due or new, page by page', async (t) => {
  const em = crossOrganization(services)
  const organization = newId()
  await execute(em, sql`insert into organization (id, name, slug) values (${organization}, 'Club', 'club')`)
  await execute(
    em,
    sql`insert into webhook (id, organization_id, url, secret)
      select new_id(), ${organization}, 'https://club.example/hooks', '' from generate_series(1, ${MANY})`,
  )
  // A tenth of the webhooks wait for a retry. Two of them have a great many, of which ten are due.
  await execute(
    em,
    sql`insert into webhook_delivery (organization_id, webhook_id, event_id, type, attempts, next_attempt_at)
      select organization_id, id, new_id(), 'SUBSCRIBED', 1, now() + interval '1 hour'
      from (select * from webhook order by id limit ${MANY / 10}) webhook`,
  )
  await execute(
    em,
    sql`insert into webhook_delivery (organization_id, webhook_id, event_id, type, attempts, next_attempt_at)
      select organization_id, id, new_id(), 'SUBSCRIBED', 1,
        now() + case when n > 10 then interval '1 hour' else '-1 hour' end
      from (select * from webhook order by id offset ${MANY / 10 - 2} limit 2) webhook
        cross join generate_series(1, ${MANY / 2}::int) n`,
  )
  await execute(
    em,
    sql`update webhook set due_at = first from (select webhook_id, min(next_attempt_at) as first from webhook_delivery
        group by webhook_id) pending where id = webhook_id`,
  )
  await execute(em, sql`vacuum analyze webhook, webhook_delivery`)
  let found = await claimTurns(em, 1, null)
  t.is(found.turns.length, 1)
  t.is(found.place, null)
  const due = await rowsRead(async () => {
    found = await claimTurns(em, 1, null)
  })
  t.log(`${due} rows`)
  t.is(found.turns.length, 1)
  t.true(due < 50, `${due} rows`)
  t.deepEqual((await claimTurns(em, 64, null)).turns, [], 'nothing else is due, and it is somebody’s turn')

  // Three hundred webhooks have new events, but only the last one may have a turn.
  await execute(
    em,
    sql`with fresh as (update webhook set next_turn_at = case when number < 300 then 'infinity'::timestamptz else now() end
        from (select id, row_number() over (order by id) as number from webhook order by id limit 300) numbered
        where webhook.id = numbered.id returning organization_id, webhook.id)
      insert into webhook_delivery (organization_id, webhook_id, event_id, type)
      select organization_id, id, new_id(), 'SUBSCRIBED' from fresh`,
  )
  found = await claimTurns(em, 64, null)
  t.is(found.turns.length, 0)
  t.not(found.place, null, 'there are more')
  const fresh = await rowsRead(() => claimTurns(em, 64, null))
  t.log(`${fresh} rows`)
  t.true(fresh < 2_000, `${fresh} rows`)
  const { place } = found
  found = await claimTurns(em, 64, place)
  t.is(found.turns.length, 1)
  t.is(found.place, null)
  t.deepEqual((await claimTurns(em, 64, place)).turns, [], 'it is somebody’s turn')
})

test.serial(
  'a look for requests of WEBHOOK steps gives each organization its turn, however many are due',
  async (t) => {
    const em = crossOrganization(services)
    /** Creates a workflow with `count` due requests, the first of which has been due for `dueHours`. */
    async function requests(count: number, dueHours: number, status: 'ACTIVE' | 'PAUSED' = 'ACTIVE') {
      const tenant = await makeTenant(services)
      const steps = [step('start', 'TRIGGER', { type: 'MANUAL' })]
      const { id, versionId } = await publish(services, tenant, { steps, edges: edges([]) }, { status })
      const [subscriberId, runId] = [await tenant.subscribe(), newId()]
      await execute(
        em,
        sql`insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number)
        values (${runId}, ${tenant.id}, ${id}, ${versionId}, ${subscriberId}, 1)`,
      )
      await execute(
        em,
        sql`insert into run_webhook (organization_id, automation_id, run_id, visit, request, next_attempt_at)
        select ${tenant.id}, ${id}, ${runId}, n, '{"timeoutSeconds": 10}',
          now() - make_interval(hours => ${dueHours}, secs => -n / 1000.0)
        from generate_series(1, ${count}::int) n`,
      )
      return runId
    }
    const crowd = await requests(MANY, 3)
    await requests(MANY, 2, 'PAUSED')
    const [single, few] = [await requests(1, 1), await requests(3, 1)]
    await execute(em, sql`analyze run_webhook`)
    const read = await rowsRead(() => claimWebhooks(em, 4))
    t.log(`${read} rows`)
    t.true(read < 100, `${read} rows`)
    const taken = (await claimWebhooks(em, 6)).map(({ runId }) => runId)
    const counts = [crowd, single, few].map((runId) => taken.filter((each) => each === runId).length)
    t.deepEqual(counts, [4, 0, 2], 'the look before took one of each, and one more of whoever waited longest')
  },
)

test.serial('active runs are read once, however many versions there are', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  const steps = [
    step('start', 'TRIGGER', { type: 'MANUAL' }),
    step('tag', 'ADD_TAG', { tagNames: ['welcomed'] }),
  ]
  const { id, versionId } = await publish(services, tenant, { steps, edges: edges(['start', 'tag']) })
  await execute(
    em,
    sql`insert into automation_version (id, organization_id, automation_id, number, definition)
      select new_id(), organization_id, automation_id, number + n, definition
      from automation_version, generate_series(1, 30) n where id = ${versionId}`,
  )
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, status)
      select new_id(), ${tenant.id}, n || '@reader.example', 'SUBSCRIBED' from generate_series(1, 5000) n`,
  )
  await execute(
    em,
    sql`insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number, status)
      select new_id(), organization_id, ${id}, ${versionId}, id, 1, 'WAITING' from subscriber
      where organization_id = ${tenant.id}`,
  )
  await execute(em, sql`analyze automation_run, automation_version`)
  const list = (limit: number) =>
    tenant.within((call) => listVersions(call, { workflowId: encodeId('wf', id), limit }))
  const listed = await rowsRead(() => list(30), 'select version.id')
  t.true(listed < 10_000, `a list of versions reads ${listed} rows`)
  const { versions } = await list(31)
  t.like(versions.at(-1), { number: 1, activeRuns: 5_000 })
  t.is(versions[0]?.activeRuns, 0)

  await execute(em, sql`update automation set status = 'ARCHIVED' where id = ${id}`)
  await tenant.within((call) => ensureTags(call, ['welcomed']))
  const summarize = () => tenant.within((call) => summarizeTagDeletion(call, { name: 'welcomed' }))
  const searched = await rowsRead(summarize, 'select distinct kind')
  t.true(searched < 10_000, `a search for uses reads ${searched} rows`)
  t.deepEqual((await summarize()).warnings, [
    'The workflow "Welcome series" names this tag and can no longer use it.',
  ])
})

test.serial('deleting a tag reads its links only a few times, however many there are', async (t) => {
  const em = crossOrganization(services)
  const [tenant, tagId, count] = [await makeTenant(services), newId(), 12_000]
  await addPeople(tenant, count)
  await execute(em, sql`insert into tag (id, organization_id, name) values (${tagId}, ${tenant.id}, 'crowd')`)
  await execute(
    em,
    sql`insert into subscriber_tag (organization_id, subscriber_id, tag_id)
      select organization_id, id, ${tagId} from subscriber where organization_id = ${tenant.id}`,
  )
  await execute(em, sql`analyze subscriber_tag`)
  let removed = 0
  const read = await readFrom(tenant, 'subscriber_tag', async (call) => {
    removed = (await deleteTag(call, { tagId: encodeId('tag', tagId) })).removed
  })
  t.is(removed, count)
  t.log(`${read} rows and index entries`)
  t.true(read < 3 * count, `${read} rows and index entries`)
})

test.serial('erasing a person reads no emails of others', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  const [id, other] = [await tenant.subscribe('ann@example.com'), await tenant.subscribe()]
  await execute(
    em,
    sql`insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email)
      select new_id(), ${tenant.id}::uuid, 'CAMPAIGN', true, ${other}::uuid, 'p' || n || '@example.com', 'a@example.com'
      from generate_series(1, ${MANY}::int) n
      union all select new_id(), ${tenant.id}::uuid, 'CAMPAIGN', true, ${id}::uuid, 'ann@example.com', 'a@example.com'
      union all select new_id(), ${tenant.id}::uuid, 'TEST', false, null, 'Ann@example.com', 'a@example.com'`,
  )
  await execute(em, sql`analyze message`)
  const read = await readFrom(tenant, 'message', (call) => eraseSubscriber(call, encodeId('sub', id)))
  t.log(`${read} rows and index entries`)
  t.true(read < 100, `${read} rows and index entries`)
  const erased = await row(
    em,
    sql`select count(*)::int as emails from message where organization_id = ${tenant.id} and recipient = ${NO_ADDRESS}`,
  )
  t.deepEqual(erased, { emails: 2 })
})

test.serial('deleting a campaign reads its own history only', async (t) => {
  const em = crossOrganization(services)
  const [tenant, campaign] = [await makeTenant(services), newId()]
  await execute(
    em,
    sql`insert into campaign (id, organization_id, kind)
      select new_id(), ${tenant.id}::uuid, 'BROADCAST' from generate_series(1, 1000)
      union all select ${campaign}::uuid, ${tenant.id}::uuid, 'BROADCAST'`,
  )
  await execute(
    em,
    sql`insert into campaign_history (id, organization_id, campaign_id, source, subject, content_type)
      select new_id(), organization_id, id, 'manual', 'Hello', 'MARKDOWN' from campaign, generate_series(1, 20)
      where organization_id = ${tenant.id}`,
  )
  await execute(em, sql`analyze campaign_history`)
  const read = await readFrom(tenant, 'campaign_history', (call) =>
    deleteCampaign(call, encodeId('cmp', campaign)),
  )
  t.log(`${read} rows and index entries`)
  t.true(read < 200, `${read} rows and index entries`)
})

test.serial('a code is looked for among the challenges of its own request', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  const tool = CATALOGUE.get('send_email')
  if (!tool) throw new Error('there is no such tool')
  await execute(
    em,
    sql`insert into confirmation_challenge (id, organization_id, tool, input_hash, code_hash, expires_at, spent_at)
      select new_id(), ${tenant.id}, 'send_email', sha256(n::text::bytea), '', now(), now()
      from generate_series(1, ${MANY}::int) n`,
  )
  await execute(em, sql`analyze confirmation_challenge`)
  const read = await readFrom(tenant, 'confirmation_challenge', async (call) => {
    t.regex((await spendCode(call, { tool, input: {} }, '12345')) ?? '', /does not belong/)
  })
  t.log(`${read} rows and index entries`)
  t.true(read < 100, `${read} rows and index entries`)
})

test.serial('how many runs are on a version is read from the index of active runs', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  const steps = [step('start', 'TRIGGER', { type: 'MANUAL' })]
  const { id } = await publish(services, tenant, { steps, edges: edges([]) })
  for (let number = 2; number < 20; number++) {
    await publish(services, tenant, { steps, edges: edges([]) }, { automationId: id, number })
  }
  const { versionId } = await publish(
    services,
    tenant,
    { steps, edges: edges([]) },
    { automationId: id, number: 20 },
  )
  const [tagId, count] = [newId(), 20_000]
  await addPeople(tenant, count)
  await execute(
    em,
    sql`insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number)
      select new_id(), organization_id, ${id}, ${versionId}, id, 1 from subscriber
      where organization_id = ${tenant.id}`,
  )
  await execute(em, sql`vacuum analyze automation_run`)
  const listing = await readFrom(tenant, 'automation_run', async (call) => {
    const { versions } = await listVersions(call, { workflowId: encodeId('wf', id), limit: 20 })
    t.deepEqual(
      versions.map(({ activeRuns }) => activeRuns).filter((runs) => runs > 0),
      [count],
    )
  })
  t.log(`${listing} rows and index entries for the list`)
  t.true(listing < 2 * count, `${listing} rows and index entries`)

  await execute(em, sql`insert into tag (id, organization_id, name) values (${tagId}, ${tenant.id}, 'used')`)
  const asking = await readFrom(tenant, 'automation_run', (call) =>
    summarizeTagDeletion(call, { tagId: encodeId('tag', tagId) }),
  )
  t.log(`${asking} for the uses of a tag`)
  t.true(asking < 100, `${asking} rows and index entries`)
})

test.serial('deleting a group leaves the runs alone that were in it', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  const { id, versionId } = await publish(services, tenant, {
    steps: [step('start', 'TRIGGER', { type: 'MANUAL' })],
    edges: edges([]),
  })
  const group = await tenant.within((call) =>
    createGroup(call, { name: 'Onboarding', conflictStrategy: 'FIRST_WINS' }),
  )
  await addPeople(tenant, 10_000)
  await execute(
    em,
    sql`insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number, group_id,
        status, ended_at)
      select new_id(), organization_id, ${id}, ${versionId}, id, 1, ${decodeId('grp', group.id)}, 'COMPLETED', now()
      from subscriber where organization_id = ${tenant.id}`,
  )
  const read = await readFrom(tenant, 'automation_run', (call) =>
    deleteGroup(call, group.id, group.updatedAt),
  )
  t.is(read, 0)
  await t.throwsAsync(
    tenant.within((call) => getGroup(call, group.id)),
    { message: /no workflow group/ },
  )
})

test.serial('forgetting the recipients of old sends reads none of newer ones', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  await execute(
    em,
    sql`with made as (
        insert into campaign (id, organization_id, kind)
        select new_id(), ${tenant.id}, 'BROADCAST' from generate_series(1, 300) returning organization_id, id
      )
      insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
        sender_email, recipient_filters, finished_at)
      select new_id(), organization_id, id, 1, 'Hello', '""', 'MARKDOWN', 'Shop', 'hello@example.com', '[]',
        now() - case when row_number() over () > 10 then interval '100 days' else interval '1 day' end
      from made`,
  )
  await execute(
    em,
    sql`insert into campaign_recipient (organization_id, campaign_id, subscriber_id, message_id)
      select organization_id, campaign_id, new_id(), new_id() from campaign_send, generate_series(1, ${MANY / 10}::int)
      where organization_id = ${tenant.id} and finished_at > now() - interval '50 days'
      union all select organization_id, campaign_id, new_id(), new_id() from campaign_send
      where organization_id = ${tenant.id} and finished_at < now() - interval '50 days'`,
  )
  await execute(em, sql`analyze campaign_send, campaign_recipient`)
  const read = await readFrom(tenant, 'campaign_recipient', (call) => keepHouse(call.em))
  t.log(`${read} rows and index entries`)
  t.true(read < 2_000, `${read} rows and index entries`)
  const left = await row(
    em,
    sql`select count(*)::int as recipients from campaign_recipient where organization_id = ${tenant.id}`,
  )
  t.deepEqual(left, { recipients: MANY })
})

test.serial('counting recipients reads each suppression once, also where people were erased', async (t) => {
  const tenant = await makeTenant(services)
  const count = 20_000
  await addPeople(tenant, count)
  const em = crossOrganization(services)
  await execute(
    em,
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      select new_id(), ${tenant.id}, case when n <= 10 then 'p' else 'other' end || n || '@example.com', 'COMPLAINT',
        'feedback' from generate_series(1, 100) n`,
  )
  await execute(em, sql`vacuum analyze subscriber, suppression`)
  const counted = () => tenant.within((call) => countRecipients(call, sql<boolean>`true`))
  const read = await rowsRead(async () => {
    t.deepEqual(await counted(), { reached: count - 10, suppressed: 10 })
  }, 'select count(*)::int as total')
  t.log(`${read} rows`)
  t.true(read < count + 500, `${read} rows`)

  const erased = await tenant.subscribe('Ann@Example.com')
  await tenant.within((call) => eraseSubscriber(call, encodeId('sub', erased)))
  await tenant.subscribe('ann@example.com')
  t.deepEqual(await counted(), { reached: count - 10, suppressed: 11 })
})

test.serial('the uses of a snippet are found without reading the emails that do not use it', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  const [id, other] = [newId(), newId()]
  await execute(
    em,
    sql`insert into snippet (id, organization_id, name, content)
      select id, ${tenant.id}, 'Signature', '{}' from unnest(${array([id, other], 'uuid')}) as id`,
  )
  const document = (snippetId: string) =>
    json({ type: 'doc', content: [{ type: 'snippet', attrs: { snippetId: encodeId('snp', snippetId) } }] })
  await execute(
    em,
    sql`insert into campaign (id, organization_id, kind, name, content)
      select new_id(), ${tenant.id}, 'BROADCAST', 'News ' || n,
        case when n <= 3 then ${document(id)} when n <= 500 then ${document(other)} else '{"type": "doc"}' end
      from generate_series(1, 5000) n`,
  )
  await execute(em, sql`analyze campaign`)
  const read = await readFrom(tenant, 'campaign', async (call) => {
    const { usedIn } = await readSnippet(call, encodeId('snp', id))
    t.deepEqual(
      usedIn.map(({ name }) => name),
      ['News 1', 'News 2', 'News 3'],
    )
  })
  t.log(`${read} rows and index entries`)
  t.true(read < 100, `${read} rows and index entries`)
})

test.serial('pending deliveries of a webhook are listed without reading the others', async (t) => {
  const em = crossOrganization(services)
  const [tenant, id] = [await makeTenant(services), newId()]
  await execute(
    em,
    sql`insert into webhook (id, organization_id, url, secret) values (${id}, ${tenant.id}, 'https://club.example', '')`,
  )
  await execute(
    em,
    sql`insert into webhook_delivery (organization_id, webhook_id, event_id, type, status, attempts, next_attempt_at)
      select ${tenant.id}, ${id}, new_id(), 'SUBSCRIBED', case when n <= 3 then 'PENDING' else 'DELIVERED' end, 1,
        case when n <= 3 then now() end
      from generate_series(1, ${MANY}::int) n`,
  )
  await execute(em, sql`analyze webhook_delivery`)
  const webhookId = encodeId('whk', id)
  const read = await readFrom(tenant, 'webhook_delivery', async (call) => {
    const { deliveries } = await browseDeliveries(call, { webhookId, status: 'PENDING', limit: 20 })
    t.is(deliveries.length, 3)
  })
  t.log(`${read} rows and index entries`)
  t.true(read < 100, `${read} rows and index entries`)
})

test.serial('a look for waits that just began reads none that began before', async (t) => {
  const em = crossOrganization(services)
  const tenant = await makeTenant(services)
  const steps = [step('start', 'TRIGGER', { type: 'MANUAL' })]
  const { id, versionId } = await publish(services, tenant, { steps, edges: edges([]) })
  await addPeople(tenant, 20_000)
  await execute(
    em,
    sql`with run as (
        insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number, status)
        select new_id(), organization_id, ${id}, ${versionId}, id, row_number() over (), 'WAITING' from subscriber
        where organization_id = ${tenant.id} returning id, organization_id, subscriber_id, number as place
      ), wait as (
        insert into run_wait (organization_id, subscriber_id, event_type, run_id, visit, began_at)
        select organization_id, subscriber_id, case when place % 2 = 0 then 'EMAIL_OPENED' else '' end, id, 1,
          now() - case when place <= 10 then interval '1 minute' else '1 day' end from run
      )
      insert into goal_watch (organization_id, run_id, goal_id, subscriber_id, event_type, window_days, began_at)
      select organization_id, id, 'goal', subscriber_id, case when place % 2 = 0 then 'EMAIL_OPENED' else '' end, 1,
        now() - case when place <= 10 then interval '1 minute' else '1 day' end from run`,
  )
  await execute(
    em,
    sql`insert into subscriber_event (id, organization_id, subscriber_id, type)
      select new_id(), organization_id, id, 'EMAIL_OPENED' from subscriber where organization_id = ${tenant.id}`,
  )
  await execute(em, sql`analyze automation_run, run_wait, goal_watch, subscriber_event`)
  const looks: [string, (call: Call) => Promise<unknown>][] = [
    ['select distinct organization_id', () => organizationsWithFreshWaits(em, 180)],
    ['select wait.run_id', (call) => catchMissedEvents(call, 180)],
    ['insert into segment_change', () => noteFreshConditions(em, 180)],
  ]
  for (const [beginning, look] of looks) {
    const read = await rowsRead(() => tenant.within(look), beginning)
    t.log(`${read} rows: ${beginning}`)
    t.true(read < 200, `${read} rows: ${beginning}`)
  }
  t.true((await organizationsWithFreshWaits(em, 180)).includes(tenant.id))
})

test.serial('a page of an audience counts the events of its own people, not of all', async (t) => {
  const em = crossOrganization(services)
  const [tenant, campaignId] = [await makeTenant(services), newId()]
  const filters: Filter[] = [
    { field: 'event', operator: 'performed', event: 'ORDERED', count: { operator: 'lt', value: 3 } },
  ]
  const trigger = { type: 'SCHEDULE' as const, cron: '0 9 * * 1', filters }
  const steps = [step('start', 'TRIGGER', { type: 'MANUAL' }), step('weekly', 'TRIGGER', trigger)]
  const { id, versionId } = await publish(services, tenant, { steps, edges: edges([]) }, { status: 'ACTIVE' })
  await addPeople(tenant, 21_000)
  await execute(
    em,
    sql`insert into subscriber_event (id, organization_id, subscriber_id, type)
      select new_id(), ${tenant.id}, person.id, 'ORDERED'
      from (select id, row_number() over (order by id) as place from subscriber
        where organization_id = ${tenant.id}) person
      cross join lateral generate_series(1, case when place between 5001 and 5100 then ${MANY / 100}::int else 1 end)`,
  )
  await execute(
    em,
    sql`with begun as (
        insert into campaign (id, organization_id, kind, status, schedule_version)
        values (${campaignId}, ${tenant.id}, 'BROADCAST', 'SENDING', 1) returning *)
      insert into campaign_send (id, organization_id, campaign_id, number, subject, content, content_type, sender_name,
        sender_email, recipient_filters)
      select new_id(), organization_id, id, 1, 'Hello', '""', 'MARKDOWN', 'Shop', 'hello@example.com', ${json(filters)}
      from begun`,
  )
  await execute(em, sql`vacuum analyze subscriber, subscriber_event`)
  const onePage = { ...UNFOLLOWED, isStopping: () => true }

  // The second page is explained, because the first one is written by then.
  const freezing = await rowsRead(
    () => freezeAudience(services, { organizationId: tenant.id, campaignId, number: 1 }, onePage),
    'with page as materialized',
  )
  const automation = { id, name: 'Welcome' }
  const cause = { type: 'MANUAL', by: 'test' }
  await tenant.within((call) =>
    beginIntake(call, { automation, filters, cause, most: null, expected: 21_000 }),
  )
  const intake = await row<{ id: string }>(
    em,
    sql`select id from automation_intake where organization_id = ${tenant.id}`,
  )
  const entering = await rowsRead(
    () => continueIntake(services, tenant.id, intake?.id ?? '', onePage),
    'select s.id from subscriber s',
  )
  const version = await loadVersion(em, tenant.id, versionId)
  const timed = timedTrigger(version, 'weekly')
  if (!timed) throw new Error('the trigger is not there')
  const page = { reached: NIL_ID, createdAt: new Date(Date.now() + 60_000).toISOString(), size: 500 }
  const due = await rowsRead(
    () => tenant.within((call) => nextDue(call, timed, { from: 0, to: Date.now() }, page)),
    'select s.id, found.occasion',
  )
  t.log(`${freezing} rows for recipients, ${entering} for an intake, ${due} for a schedule`)
  t.true(freezing < 60_000, `${freezing} rows`)
  t.true(entering < 5_000, `${entering} rows`)
  t.true(due < 5_000, `${due} rows`)
})

test.serial(
  'accepting an email hashes its recipient once, however many addresses are suppressed',
  async (t) => {
    const tenant = await makeTenant(services)
    await execute(
      crossOrganization(services),
      sql`insert into suppression (id, organization_id, email_key, reason, source)
      select new_id(), ${tenant.id}, 'q' || n || '@example.com', 'COMPLAINT', 'feedback' from generate_series(1, 30) n`,
    )
    const client = new pg.Client(services.databaseUrl)
    await client.connect()
    t.teardown(() => client.end())
    await client.query('begin')
    await client.query('analyze suppression')
    // Calls of a function in SQL are not counted, because it is inlined. Plans are those of a session that has accepted
    // some emails.
    await client.query(`
    create or replace function erased_email_key(organization uuid, address text) returns text
    language plpgsql immutable cost 1 as $fn$ begin return 'sha256:' || address; end $fn$`)
    await client.query(`set local track_functions = 'all'; set local plan_cache_mode = force_generic_plan`)
    const accepted = await client.query(
      `select accept_transactional($1, null, new_id(), new_id(), null, null, null, 'ann@example.com', null, true, '{}',
      false, false, null, null, null, null) as verdict`,
      [tenant.id],
    )
    t.is(accepted.rows[0].verdict, null)
    const hashed = await client.query(
      `select pg_stat_get_xact_function_calls('erased_email_key'::regproc)::int as calls`,
    )
    t.is(hashed.rows[0].calls, 1)
  },
)

test.serial('the uses of a tag are not looked for in the content of emails', async (t) => {
  const tenant = await makeTenant(services)
  const steps = [step('start', 'TRIGGER', { type: 'MANUAL' }), emailStep('email')]
  const { versionId } = await publish(services, tenant, { steps, edges: edges(['start', 'email']) })
  // A search would find this attribute, which says nothing about tags.
  const content = { type: 'doc', content: [{ type: 'other', attrs: { tagNames: ['vip'] } }] }
  await execute(
    crossOrganization(services),
    sql`with published as (
        update automation set published_version_id = ${versionId} where organization_id = ${tenant.id})
      update automation_version set definition = jsonb_set(definition, '{emails,email,content}', ${json(content)})
      where organization_id = ${tenant.id}`,
  )
  await tenant.within((call) => ensureTags(call, ['vip']))
  const { warnings } = await tenant.within((call) => summarizeTagDeletion(call, { name: 'vip' }))
  t.deepEqual(warnings, [])
})

test.serial('suppressions of one reason are listed without reading the others', async (t) => {
  const tenant = await makeTenant(services)
  await execute(
    crossOrganization(services),
    sql`insert into suppression (id, organization_id, email_key, reason, source)
      select new_id(), ${tenant.id}, 'q' || n || '@example.com', case when n <= 3 then 'MANUAL' else 'HARD_BOUNCE' end,
        'report' from generate_series(1, ${MANY}::int) n`,
  )
  await execute(crossOrganization(services), sql`analyze suppression`)
  const read = await readFrom(tenant, 'suppression', async (call) => {
    const { suppressions } = await listSuppressions(call, { reason: 'MANUAL', limit: 50 })
    t.is(suppressions.length, 3)
  })
  t.log(`${read} rows and index entries`)
  t.true(read < 100, `${read} rows and index entries`)
})
