import anyTest, { type TestFn } from 'ava'
import { sql } from 'kysely'

import type { DomainHealth, ProviderHealth } from '../schema/deliverability.ts'
import { execute, rows } from '../src/database.ts'
import { keepHouse } from '../src/domain/housekeeping.ts'
import { countAll, learnAll } from '../worker/deliverability.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { type NameServer, startNameServer } from './helpers/name-server.ts'

const test = anyTest as TestFn<{ api: TestApi; names: NameServer }>

const MX: Record<string, string[]> = {
  'gmail.com': ['gmail-smtp-in.l.google.com', 'alt1.gmail-smtp-in.l.google.com'],
  'a-company.com': ['aspmx.l.google.com'],
  'outlook.com': ['outlook-com.olc.protection.outlook.com'],
  'yahoo.com': ['mta5.am0.yahoodns.net'],
  'icloud.com': ['mx01.mail.icloud.com'],
  'proton.me': ['mail.protonmail.ch', 'mailsec.protonmail.ch'],
  'shop.fr': ['mx1.ovh.net'],
  'old.co.uk': ['mx.mail.host.co.uk'],
  'nothing.com': [],
}

test.before(async (t) => {
  const names = await startNameServer()
  for (const [name, hosts] of Object.entries(MX)) {
    names.set(
      name,
      ...hosts.map((exchange, index) => ({ type: 'MX' as const, exchange, priority: (index + 1) * 10 })),
    )
  }
  t.context = { names, api: await startApi({ DNS_SERVERS: names.address }) }
})
test.after.always(async (t) => {
  await t.context.api?.close()
  await t.context.names?.close()
})

type Mail = { to: string; emails: number; marketing?: boolean; daysAgo?: number; bounced?: number }
type More = {
  opened?: number
  complained?: number
  refused?: number
  failed?: number
  lost?: number
  kind?: string
}
/** Failures in which no relay took the email. They say nothing about the domain's reputation. */
const LOST = ['RELAY_UNREACHABLE', 'CONNECTION_LOST', 'RENDER_FAULT']

/** Creates emails with outcomes, as delivery and reports record them. */
async function send({ services }: TestApi, organization: TestOrganization, mail: Mail & More): Promise<void> {
  const em = services.orm.em.fork()
  const { to, emails, marketing = true, daysAgo = 0, kind = 'CAMPAIGN' } = mail
  const { bounced = 0, opened = 0, complained = 0, refused = 0, failed = 0, lost = 0 } = mail
  const made = await rows<{ id: string }>(
    em,
    sql`insert into message (id, organization_id, class, marketing, recipient, from_email)
      select new_id(), ${organization.id}, ${kind}, ${marketing}, 'reader' || n || '@' || ${to}, ${`news@${organization.domain}`}
      from generate_series(1, ${emails}::int) n returning id`,
  )
  const ids = made.map(({ id }) => id)
  const change = async (some: readonly string[], set: ReturnType<typeof sql>) => {
    await execute(em, sql`update message set ${set} where id = any(${`{${some.join()}}`}::uuid[])`)
  }
  const take = (count: number) => ids.splice(0, count)
  const at = sql`now() - make_interval(days => ${daysAgo})`
  await change(
    take(refused),
    sql`status = 'BOUNCED', bounce_category = 'NO_SUCH_USER', failed_at = ${at}, response = '550'`,
  )
  const failing = (reason: string) =>
    sql`status = 'FAILED', failed_at = ${at}, response = '554 5.7.1 no', reason = ${reason}`
  await change(take(failed), failing('SENDER_REFUSED'))
  for (const reason of LOST) await change(take(lost), failing(reason))
  await change(ids, sql`status = 'SENT', sent_at = ${at}`)
  await change(take(bounced), sql`status = 'BOUNCED', failed_at = now()`)
  await change(take(complained), sql`status = 'COMPLAINED'`)
  await change(take(opened), sql`opened_at = now()`)
}

async function healthOf({ services }: TestApi, organization: TestOrganization): Promise<DomainHealth> {
  while ((await countAll(services)) > 0);
  while ((await learnAll(services)) > 0);
  return await healthNow(organization)
}

async function healthNow(organization: TestOrganization): Promise<DomainHealth> {
  const { health } = await organization.data('get_deliverability_health', { domain: organization.domain })
  return health.domains[0]
}

function at(health: DomainHealth, name: string): ProviderHealth | undefined {
  return health.providers.find(({ provider }) => provider === name)
}

test.serial(
  'the rates of a domain are told over 1, 7 and 30 days, and stay when its emails are gone',
  async (t) => {
    const { api } = t.context
    const organization = await api.organization()
    await send(api, organization, { to: 'gmail.com', emails: 200, bounced: 4, refused: 2, opened: 60 })
    await send(api, organization, { to: 'gmail.com', emails: 100, daysAgo: 3, failed: 10 })
    await send(api, organization, { to: 'gmail.com', emails: 90, lost: 30 })
    await send(api, organization, {
      to: 'gmail.com',
      emails: 100,
      daysAgo: 20,
      complained: 1,
      marketing: false,
    })
    await send(api, organization, { to: 'gmail.com', emails: 100, daysAgo: 40, bounced: 90 })
    await send(api, organization, { to: 'gmail.com', emails: 100, kind: 'TEST', bounced: 90 })
    const health = await healthOf(api, organization)
    t.deepEqual(health.windows, [
      {
        days: 1,
        emails: 200,
        delivered: 194,
        bounced: 6,
        complained: 0,
        opened: 60,
        deliveryRate: 0.97,
        bounceRate: 0.03,
        complaintRate: 0,
        openRate: 0.303,
      },
      {
        days: 7,
        emails: 300,
        delivered: 284,
        bounced: 6,
        complained: 0,
        opened: 60,
        deliveryRate: 0.9467,
        bounceRate: 0.02,
        complaintRate: 0,
        openRate: 0.2083,
      },
      {
        days: 30,
        emails: 400,
        delivered: 384,
        bounced: 6,
        complained: 1,
        opened: 60,
        deliveryRate: 0.96,
        bounceRate: 0.015,
        complaintRate: 0.0026,
        openRate: 0.1546,
      },
    ])
    t.deepEqual(
      health.findings.map(({ level, code }) => `${level} ${code}`),
      ['WARN COMPLAINT_RATE'],
    )
    t.is(
      health.findings[0]?.message,
      `1 % of 100 transactional emails from ${organization.domain} within 30 days were reported as spam; the line is 0.1 %.`,
    )
    t.is(health.level, 'WARN')
    const em = api.services.orm.em.fork()
    await execute(em, sql`delete from message where organization_id = ${organization.id}`)
    t.deepEqual(await healthOf(api, organization), health)
    await keepHouse(em)
    t.deepEqual(await healthOf(api, organization), health)
    await execute(
      em,
      sql`update domain_total set at = at - interval '25 days' where organization_id = ${organization.id}`,
    )
    await keepHouse(em)
    const kept = await rows<{ emails: number }>(
      em,
      sql`select sum(emails)::int as emails from domain_total where organization_id = ${organization.id}`,
    )
    t.is(kept[0]?.emails, 300, 'those of the last month')
  },
)

test.serial('receivers are grouped by whose mail servers they use, the largest first', async (t) => {
  const { api, names } = t.context
  const organization = await api.organization()
  await send(api, organization, { to: 'gmail.com', emails: 40 })
  await send(api, organization, { to: 'A-Company.com', emails: 30 })
  await send(api, organization, { to: 'outlook.com', emails: 60 })
  await send(api, organization, { to: 'yahoo.com', emails: 50 })
  await send(api, organization, { to: 'icloud.com', emails: 45 })
  await send(api, organization, { to: 'proton.me', emails: 35 })
  await send(api, organization, { to: 'shop.fr', emails: 30 })
  await send(api, organization, { to: 'old.co.uk', emails: 20 })
  await send(api, organization, { to: 'nothing.com', emails: 10 })
  const { providers } = await healthOf(api, organization)
  t.deepEqual(
    providers.map(({ provider, windows }) => `${provider} ${windows[0]?.emails}`),
    [
      'Google 70',
      'Microsoft 60',
      'Yahoo 50',
      'Apple 45',
      'Proton 35',
      'ovh.net 30',
      'host.co.uk 20',
      'no MX 10',
    ],
  )
  const asked = names.questions.filter((question) => question === 'MX gmail.com').length
  await send(api, organization, { to: 'gmail.com', emails: 5 })
  await healthOf(api, organization)
  t.is(names.questions.filter((question) => question === 'MX gmail.com').length, asked, 'once a week')
})

test.serial('what no name server tells of is counted all the same, and asked for again later', async (t) => {
  const { api, names } = t.context
  const organization = await api.organization()
  names.set('late.com', { type: 'MX', exchange: 'mx.late.com', priority: 10 })
  names.mood = 'broken'
  await send(api, organization, { to: 'late.com', emails: 10 })
  const before = await healthOf(api, organization)
  names.mood = 'records'
  t.is(at(before, 'unknown')?.windows[0]?.emails, 10)
  const em = api.services.orm.em.fork()
  await execute(
    em,
    sql`update receiver set checked_at = now() - interval '11 minutes' where domain = 'late.com'`,
  )
  await send(api, organization, { to: 'late.com', emails: 10 })
  t.is(at(await healthOf(api, organization), 'late.com')?.windows[0]?.emails, 10)
})

test.serial(
  'sending stops while the name servers say nothing; who received is learned when they do',
  async (t) => {
    const { api, names } = t.context
    const [organization, other] = [await api.organization(), await api.organization()]
    names.mood = 'silent'
    for (const name of ['deaf.com', 'mute.com']) {
      names.set(name, { type: 'MX', exchange: 'mx.far.net', priority: 10 })
      await send(api, organization, { to: name, emails: 100, bounced: 20 })
    }
    await send(api, other, { to: 'mute.com', emails: 10 })
    const asked = names.questions.length
    while ((await countAll(api.services)) > 0);
    const stopped = await healthNow(organization)
    t.is(stopped.stops.length, 1)
    t.is(at(stopped, 'unknown')?.windows[0]?.emails, 200)
    t.is(names.questions.length, asked, 'nobody was asked')
    names.mood = 'records'
    t.is(await learnAll(api.services), 3)
    for (const { windows, providers } of [await healthNow(organization), await healthNow(other)]) {
      t.deepEqual(
        providers.map(({ provider, windows: [day] }) => [provider, day]),
        [['far.net', windows[0]]],
      )
    }
    t.is(names.questions.length, asked + 2, 'once for all organizations')
  },
)

test.serial(
  'every provider has a finding and what to do about it; many small ones share a line',
  async (t) => {
    const { api, names } = t.context
    const organization = await api.organization()
    await send(api, organization, { to: 'gmail.com', emails: 600, opened: 240 })
    await send(api, organization, { to: 'outlook.com', emails: 300, opened: 6 })
    await send(api, organization, { to: 'shop.fr', emails: 200, bounced: 13, opened: 80 })
    await send(api, organization, { to: 'yahoo.com', emails: 100, complained: 4, opened: 40 })
    for (let n = 0; n < 80; n++) {
      names.set(`own${n}.com`, { type: 'MX', exchange: `mail.own${n}.com`, priority: 10 })
      await send(api, organization, { to: `own${n}.com`, emails: 1 })
    }
    const health = await healthOf(api, organization)
    t.is(health.providers.length, 21)
    t.is(at(health, 'other')?.windows[0]?.emails, 64)
    const found = (name: string) => at(health, name)?.findings.map(({ level, code }) => `${level} ${code}`)
    t.deepEqual(found('Google'), ['OK NOTHING'])
    t.deepEqual(found('Microsoft'), ['WARN LOW_OPENS'])
    t.deepEqual(found('ovh.net'), ['WARN BOUNCE_RATE'])
    t.deepEqual(found('Yahoo'), ['STOP COMPLAINT_RATE'])
    t.true(
      health.providers.every(({ findings }) => findings.every(({ message, repair }) => message && repair)),
    )
    t.deepEqual(
      health.findings.map(({ level, code }) => `${level} ${code}`),
      ['WARN COMPLAINT_RATE'],
      '4 of 1,300 are over the first line and under the second',
    )
  },
)

test.serial(
  'one email in three that bounces stops nothing, and says that it is too little to judge',
  async (t) => {
    const { api } = t.context
    const organization = await api.organization()
    await send(api, organization, { to: 'gmail.com', emails: 3, bounced: 1 })
    await send(api, organization, { to: 'gmail.com', emails: 96, complained: 2, bounced: 20 })
    const health = await healthOf(api, organization)
    t.deepEqual(health.stops, [])
    t.like(health.findings[0], { level: 'OK', code: 'NOTHING', repair: 'Nothing has to be done.' })
    t.regex(health.findings[0]?.message ?? '', /^99 emails within 30 days are too few/)
  },
)

test.serial('an organization sees its own domains only', async (t) => {
  const { api } = t.context
  const [organization, other] = [await api.organization(), await api.organization()]
  await send(api, organization, { to: 'gmail.com', emails: 200, bounced: 100 })
  t.is((await healthOf(api, organization)).stops.length, 1)
  t.is((await other.call('get_deliverability_health', { domain: organization.domain })).status, 404)
  const { health } = await other.data('get_deliverability_health')
  t.deepEqual(
    health.domains.map(({ domain, windows }: DomainHealth) => [domain, windows[2]?.emails]),
    [[other.domain, 0]],
  )
  t.deepEqual(health.thresholds, {
    bounceRate: { warn: 0.05, stop: 0.1 },
    complaintRate: { warn: 0.001, stop: 0.005 },
  })
})
