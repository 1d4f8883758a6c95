import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import { execute, row, rows } from '../src/database.ts'
import { newId } from '../src/ids.ts'
import { confirmAll, countAll } from '../worker/deliverability.ts'
import type { TestOrganization } from './helpers/api.ts'
import { endProcess, startProcess } from './helpers/child.ts'
import { testServices, type TestServices } from './helpers/database.ts'
import { eventually } from './helpers/eventually.ts'
import { startNameServer } from './helpers/name-server.ts'
import { openPostOffice, type PostOffice, type SentEmail } from './helpers/reports.ts'

const test = anyTest as TestFn<{ office: PostOffice }>

test.before(async (t) => {
  t.context.office = await openPostOffice()
})
test.after.always(async (t) => {
  await t.context.office?.close()
})

/**
 * Counts all emails and confirms due deliveries, repeating until nothing is left, because other tests run at the same
 * time.
 */
async function keepUp(services: TestServices): Promise<void> {
  await eventually('everything to be counted and confirmed', async () => {
    await countAll(services)
    await confirmAll(services)
    const left = await row<{ count: number }>(
      services.orm.em.fork(),
      sql`select ((select count(*) from outcome_batch)
        + (select count(*) from delivery_due where due_at <= now()))::int as count`,
    )
    return left?.count === 0
  })
}

/** Moves everything about these emails into the past. */
async function age({ services }: PostOffice['api'], by: string, ids: readonly string[]): Promise<void> {
  await keepUp(services)
  const em = services.orm.em.fork()
  const list = `{${ids.join()}}`
  await execute(
    em,
    sql`update message set sent_at = sent_at - ${by}::interval where id = any(${list}::uuid[])`,
  )
  await execute(
    em,
    sql`update delivery_due set due_at = due_at - ${by}::interval where messages && ${list}::uuid[]`,
  )
  await keepUp(services)
}

async function lastOf(organization: TestOrganization, { recipient }: SentEmail) {
  const { emails } = await organization.data('get_subscriber_emails', { email: recipient })
  return emails[0]
}

test('an email that nothing comes back about within the hour is delivered, and bounces still when a report comes late', async (t) => {
  const { office } = t.context
  const organization = await office.api.organization()
  const [silent, bounced, late, complained] = await Promise.all(
    Array.from({ length: 4 }, () => office.send(organization)),
  )
  if (!silent || !bounced || !late || !complained) throw new Error('four were sent')
  const all = [silent, bounced, late, complained].map(({ id }) => id)
  await office.bring('postfix-no-such-user', bounced)
  await age(office.api, '59 minutes', all)
  t.like(await lastOf(organization, silent), { status: 'SENT', lastEvent: 'sent', deliveredAt: null })
  await age(office.api, '1 minute', all)
  const arrived = await lastOf(organization, silent)
  t.like(arrived, { status: 'DELIVERED', lastEvent: 'delivered' })
  t.is(Date.parse(arrived.deliveredAt) - Date.parse(arrived.sentAt), 3_600_000)
  const returned = await lastOf(organization, bounced)
  t.like(returned, { status: 'BOUNCED', deliveredAt: null })
  const { token } = organization
  const { body } = await office.api.request('GET', `/api/v2/emails/${returned.id}`, { token })
  const detailOf = (name: string) =>
    body.events.find(({ event }: { event: string }) => event === name)?.detail
  t.is(detailOf('sent'), null, 'what came back is not what was said first')
  t.regex(detailOf('bounced'), /^550 5\.1\.1/)

  t.is((await lastOf(organization, late)).status, 'DELIVERED')
  await office.bring('postfix-no-such-user', late)
  t.like(await lastOf(organization, late), { status: 'BOUNCED', lastEvent: 'bounced', deliveredAt: null })
  await office.bring('arf-yahoo', complained)
  t.like(await lastOf(organization, complained), { status: 'COMPLAINED', lastEvent: 'complained' })
  await keepUp(office.api.services)
  t.is((await lastOf(organization, late)).status, 'BOUNCED', 'and stays so')
})

test('an email that somebody complains about within the hour counts as delivered', async (t) => {
  const { office } = t.context
  const organization = await office.api.organization()
  const email = await office.send(organization)
  await office.bring('arf-yahoo', email)
  const { status, sentAt, deliveredAt } = await lastOf(organization, email)
  t.is(status, 'COMPLAINED')
  t.true(Date.parse(deliveredAt) >= Date.parse(sentAt))
  const { stats } = await organization.data('get_org_stats')
  t.like(stats.emailsLast30Days, { total: 1, delivered: 1, complained: 1 })
  await age(office.api, '2 hours', [email.id])
  t.like(await lastOf(organization, email), { status: 'COMPLAINED', deliveredAt })
})

test('an email whose delay was reported is delivered when no server can be trying any more', async (t) => {
  const { office } = t.context
  const organization = await office.api.organization()
  const email = await office.send(organization)
  await office.bring('gmail-delay', email)
  await age(office.api, '61 minutes', [email.id])
  t.is((await lastOf(organization, email)).status, 'SENT')
  await age(office.api, '118 hours', [email.id])
  t.is((await lastOf(organization, email)).status, 'SENT')
  await age(office.api, '1 hour', [email.id])
  t.is((await lastOf(organization, email)).status, 'DELIVERED')
})

test('whoever is killed while counting or learning, every email is counted once and delivered once', async (t) => {
  const names = await startNameServer()
  t.teardown(() => names.close())
  for (let n = 0; n < 7; n++) {
    names.set(`r${n}.com`, { type: 'MX', exchange: `mx.${n < 4 ? 'one' : 'other'}.net`, priority: 10 })
  }
  const env = { DNS_SERVERS: names.address }
  const services = await testServices(env)
  const em = () => services.orm.em.fork()
  const [organizationId, domainId] = [newId(), newId()]
  await execute(
    em(),
    sql`insert into organization (id, name, slug, plan) values (${organizationId}, 'Shop', 'shop', 'ENTERPRISE')`,
  )
  await execute(
    em(),
    sql`insert into domain (id, organization_id, domain, status)
      values (${domainId}, ${organizationId}, 'shop.example', 'VERIFIED')`,
  )
  const EMAILS = 3_000
  await execute(
    em(),
    sql`insert into message (id, organization_id, class, marketing, recipient, from_email)
      select new_id(), ${organizationId}, 'CAMPAIGN', true, 'r' || n || '@r' || n % 7 || '.com', 'a@Shop.example'
      from generate_series(1, ${EMAILS}::int) n`,
  )
  const ids = await rows<{ id: string }>(em(), sql`select id from message order by id`)
  const of = (column: string) =>
    row<{ count: number }>(
      em(),
      sql`select coalesce(sum(${sql.ref(column)}), 0)::int as count from domain_total`,
    )
  // Makes all deliveries due, instead of waiting for an hour.
  const hurry = () => execute(em(), sql`update delivery_due set due_at = now()`)
  let counter = startProcess(services, 'test/helpers/deliverability-process.ts', { env })
  try {
    for (let from = 0; from < EMAILS; from += 20) {
      const page = `{${ids
        .slice(from, from + 20)
        .map(({ id }) => id)
        .join()}}`
      await execute(
        em(),
        sql`update message set status = 'SENT', sent_at = now() where id = any(${page}::uuid[])`,
      )
      if (from % 1_000 === 0) {
        await eventually(
          'some to be counted, while others wait or not',
          async () => {
            await hurry()
            return ((await of('emails'))?.count ?? 0) > from - 500
          },
          { withinMs: 60_000 },
        )
        await endProcess(counter)
        counter = startProcess(services, 'test/helpers/deliverability-process.ts', { env })
      }
    }
    await execute(
      em(),
      sql`update message set status = 'BOUNCED', bounce_category = 'NO_SUCH_USER', delivered_at = null
        where id = any(${`{${ids
          .slice(0, 400)
          .map(({ id }) => id)
          .join()}}`}::uuid[])`,
    )
    const left = () =>
      row<{ count: number }>(
        em(),
        sql`select ((select count(*) from outcome_batch) + (select count(*) from delivery_due)
          + (select count(*) from domain_total where family like '@%'))::int as count`,
      )
    await eventually(
      'everything to be counted',
      async () => {
        await hurry()
        return (await left())?.count === 0
      },
      { withinMs: 60_000 },
    )
  } finally {
    await endProcess(counter)
  }
  t.is((await of('emails'))?.count, EMAILS)
  t.is((await of('bounced'))?.count, 400)
  const families = await rows<{ family: string }>(
    em(),
    sql`select distinct family from domain_total order by 1`,
  )
  t.deepEqual(families, [{ family: 'one.net' }, { family: 'other.net' }])
  const stops = await rows<object>(em(), sql`select stream, reason from sending_stop`)
  t.deepEqual(stops, [{ stream: 'MARKETING', reason: 'BOUNCES' }], 'and the line is crossed once')
  const statuses = await rows<{ status: string; count: number }>(
    em(),
    sql`select status, count(*)::int as count from message group by 1 order by 1`,
  )
  t.deepEqual(statuses, [
    { status: 'BOUNCED', count: 400 },
    { status: 'DELIVERED', count: EMAILS - 400 },
  ])
  await services.close()
})
