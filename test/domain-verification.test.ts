import test from 'ava'
import { sql } from 'kysely'

import type { Domain, DomainRecord } from '../schema/domain.ts'
import { execute, row } from '../src/database.ts'
import { findUnwatchedDomains } from '../src/domain/domains/watch.ts'
import { decodeId, newId } from '../src/ids.ts'
import { domainWorkflowId } from '../temporal/contract.ts'
import { domainWaitMinutes } from '../temporal/timer.ts'
import { reconcile } from '../worker/reconciler.ts'
import { type Engine, startEngine } from '../worker/workers.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { type NameServer, startNameServer, txt } from './helpers/name-server.ts'

let api: TestApi
let engine: Engine
let names: NameServer
let others: NameServer

test.before(async () => {
  names = await startNameServer()
  others = await startNameServer()
  api = await startApi({
    TEMPORAL_TASK_QUEUE: `verification-${process.pid}`,
    DNS_SERVERS: `${names.address}, ${others.address}`,
    BOUNCE_HOST: 'in.postloom.example',
    SPF_MECHANISMS: 'include:relay.example',
  })
  engine = await startEngine(api.services)
})
test.after.always(async () => {
  await engine?.stop()
  await api?.close()
  await names?.close()
  await others?.close()
})
test.afterEach.always(() => {
  names.mood = 'records'
  others.mood = 'records'
})

const em = () => api.services.orm.em.fork()

async function register(
  organization: TestOrganization,
  host = `d${newId().slice(-12)}.example`,
): Promise<Domain> {
  return (await organization.data('create_domain', { domain: host })).domain
}

async function verify(organization: TestOrganization, domain: Domain): Promise<Domain> {
  return (await organization.data('verify_domain', { domain: domain.id })).domain
}

/** Publishes the correct records, next to records of other organizations at the same names. */
function publish(records: readonly DomainRecord[], servers: readonly NameServer[] = [names, others]): void {
  for (const server of servers) {
    for (const { name } of records) {
      const here = records.filter((record) => record.name === name)
      server.set(
        name,
        ...here.map(({ type, value, priority = 0 }) =>
          type === 'MX' ? { type, exchange: value, priority } : txt(value),
        ),
      )
    }
  }
}

function only(domain: Domain, ...purposes: DomainRecord['purpose'][]): DomainRecord[] {
  return domain.providerRecords.filter(({ purpose }) => purposes.includes(purpose))
}

function statuses(domain: Domain): Record<string, string> {
  return Object.fromEntries(domain.providerRecords.map(({ purpose, status }) => [purpose, status]))
}

async function age(domain: Domain, change: string): Promise<void> {
  await execute(em(), sql`update domain set ${sql.raw(change)} where id = ${decodeId('dom', domain.id)}`)
}

test('records are set one by one, and each is seen; with the last that is needed the domain is VERIFIED', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  const nothing = await verify(organization, domain)
  t.is(nothing.status, 'VERIFYING')
  t.true(
    nothing.providerRecords.every(
      ({ status, repair, checkedAt }) => status === 'MISSING' && repair && checkedAt,
    ),
  )
  const { sender } = await organization.data('create_email_sender', {
    localPart: 'hi',
    domain: domain.id,
    name: 'Hi',
  })
  t.false(sender.verified)

  publish(only(domain, 'OWNERSHIP'))
  publish(only(domain, 'MAIL_FROM_MX', 'MAIL_FROM_SPF'))
  const some = await verify(organization, domain)
  t.is(some.status, 'VERIFYING')
  t.deepEqual(statuses(some), {
    OWNERSHIP: 'VERIFIED',
    DKIM: 'MISSING',
    MAIL_FROM_MX: 'VERIFIED',
    MAIL_FROM_SPF: 'VERIFIED',
    DMARC: 'MISSING',
  })
  publish(only(domain, 'DKIM'))
  const whole = await verify(organization, domain)
  t.is(whole.status, 'VERIFIED')
  t.like(statuses(whole), { DKIM: 'VERIFIED', DMARC: 'MISSING' })
  t.regex(only(whole, 'DMARC')[0]?.repair ?? '', /^Recommended/)
  t.is(only(whole, 'DKIM')[0]?.repair, undefined)
  t.deepEqual(
    (await organization.data('get_domain_dns_records', { domain: domain.domain })).records,
    whole.providerRecords,
  )
  t.true((await organization.data('get_email_senders')).senders.at(-1).verified)
  const sent = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: 'ada@reader.example', from: `hi@${domain.domain}`, subject: 'Hi', content: 'Hi' },
  })
  t.is(sent.status, 200)
})

test('what was found is shown beside what to change, whatever a server sends', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  for (const server of [names, others]) {
    server.set(`send.${domain.domain}`, txt('v=spf1 include:other.example -all'), {
      type: 'MX',
      exchange: 'mx.other.example',
      priority: 5,
    })
    server.set(`_postloom.${domain.domain}`, {
      type: 'TXT',
      strings: ['\u0000\u0007', 'long '.repeat(40), '\ufffd'],
    })
    server.set(`_dmarc.${domain.domain}`, txt('v=DMARC1; pct=50'))
  }
  const checked = await verify(organization, domain)
  t.like(only(checked, 'MAIL_FROM_SPF')[0], {
    status: 'MISMATCH',
    found: ['v=spf1 include:other.example -all'],
    repair: `Let it allow include:relay.example by changing send.${domain.domain} to: v=spf1 include:relay.example include:other.example -all`,
  })
  t.like(only(checked, 'MAIL_FROM_MX')[0], { status: 'MISMATCH', found: ['5 mx.other.example'] })
  t.like(only(checked, 'OWNERSHIP')[0], { status: 'MISMATCH' })
  t.like(only(checked, 'DMARC')[0], { status: 'MISMATCH' })
})

test('a name that was doubled by a panel is told, and a subdomain has the policy of the domain above', async (t) => {
  const organization = await api.organization()
  const parent = `p${newId().slice(-12)}.example`
  const domain = await register(organization, `news.${parent}`)
  const [key] = only(domain, 'DKIM')
  if (!key) throw new Error('there is no key')
  publish([{ ...key, name: `${key.name}.${domain.domain}` }])
  publish([{ ...key, name: `_dmarc.${parent}`, value: 'v=DMARC1; p=reject' }])
  const checked = await verify(organization, domain)
  t.like(statuses(checked), { DKIM: 'MISSING', DMARC: 'VERIFIED' })
  publish([{ ...key, name: `_dmarc.${domain.domain}`, value: 'v=spf1 -all' }])
  t.like(statuses(await verify(organization, domain)), { DMARC: 'VERIFIED' }, 'beside the text of a wildcard')
  const label = key.name.slice(0, -domain.domain.length - 1)
  t.is(
    only(checked, 'DKIM')[0]?.repair,
    `The record is at ${key.name}.${domain.domain}, because the domain was added to the name; enter only ${label} as the name.`,
  )
})

test.serial(
  'name servers that disagree are waited for, and one that does not answer does not decide',
  async (t) => {
    const organization = await api.organization()
    const domain = await register(organization)
    publish(domain.providerRecords, [names])
    const split = await verify(organization, domain)
    t.is(split.status, 'VERIFYING')
    t.true(split.providerRecords.every(({ status }) => status === 'PENDING'))
    t.regex(split.providerRecords[0]?.repair ?? '', /^1 of 2 name servers/)
    others.mood = 'broken'
    t.is((await verify(organization, domain)).status, 'VERIFIED')
    names.mood = 'broken'
    const unheard = await verify(organization, domain)
    t.is(unheard.status, 'VERIFIED')
    t.true(unheard.providerRecords.every(({ status }) => status === 'VERIFIED'))
  },
)

test('a domain fails after 72 hours, and another request gives it another chance', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  await verify(organization, domain)
  await age(domain, "verification_requested_at = now() - interval '73 hours'")
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(domainWorkflowId(domain.id))
  await handle.signal('nudge')
  await eventually('the workflow to end', async () => (await handle.describe()).status.name === 'FAILED')
  const failed = (await organization.data('list_domains')).domains.at(-1)
  t.is(failed.status, 'FAILED')
  const again = await verify(organization, domain)
  t.is(again.status, 'VERIFYING')
  t.true(Date.parse(again.verificationRequestedAt ?? '') > Date.now() - 60_000)
  publish(domain.providerRecords)
  t.is((await verify(organization, domain)).status, 'VERIFIED')
})

test('a domain degrades after three missed daily checks, sends nothing then, and comes back', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  publish(domain.providerRecords)
  t.is((await verify(organization, domain)).status, 'VERIFIED')
  const yesterday = "missed_at = missed_at - interval '24 hours'"
  const [key] = only(domain, 'DKIM')
  for (const server of [names, others]) server.set(key?.name ?? '')
  for (const day of [1, 2]) {
    t.is((await verify(organization, domain)).status, 'VERIFIED', `day ${day}`)
    // Several checks on the same day count as one missed check.
    t.is((await verify(organization, domain)).status, 'VERIFIED', `day ${day}, again`)
    await age(domain, yesterday)
  }
  const degraded = await verify(organization, domain)
  t.is(degraded.status, 'DEGRADED')
  t.is(statuses(degraded)['DKIM'], 'MISSING')
  await organization.data('create_email_sender', { localPart: 'hi', domain: domain.id, name: 'Hi' })
  const refused = await api.request('POST', '/api/v1/emails', {
    token: organization.token,
    body: { to: 'ada@reader.example', from: `hi@${domain.domain}`, subject: 'Hi', content: 'Hi' },
  })
  t.is(refused.status, 403)
  publish(domain.providerRecords)
  t.is((await verify(organization, domain)).status, 'VERIFIED')
  // A successful check resets the count.
  for (const server of [names, others]) server.set(key?.name ?? '')
  t.is((await verify(organization, domain)).status, 'VERIFIED')
})

test.serial('a day without an answer is no missed check, also after a real one', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  publish(domain.providerRecords)
  t.is((await verify(organization, domain)).status, 'VERIFIED')
  const missed = async () => {
    const id = decodeId('dom', domain.id)
    return (
      await row<{ missed: number }>(em(), sql`select missed_checks as missed from domain where id = ${id}`)
    )?.missed
  }
  const key = only(domain, 'DKIM')[0]?.name ?? ''
  for (const server of [names, others]) server.set(key)
  t.like(statuses(await verify(organization, domain)), { DKIM: 'MISSING' })
  for (const server of [names, others]) server.mood = 'broken'
  for (const day of [2, 3]) {
    await age(domain, "missed_at = missed_at - interval '24 hours'")
    const unheard = await verify(organization, domain)
    t.is(unheard.status, 'VERIFIED', `day ${day}`)
    t.like(statuses(unheard), { DKIM: 'MISSING' })
    t.is(await missed(), 1, `day ${day}`)
  }
  for (const server of [names, others]) server.mood = 'records'
  await verify(organization, domain)
  t.is(await missed(), 2)
})

test('one organization verifies a domain at a time, and the next when the first has lost it', async (t) => {
  const [first, second] = [await api.organization(), await api.organization()]
  const mine = await register(first)
  const theirs = await register(second, mine.domain)
  const shared = only(mine, 'MAIL_FROM_MX', 'MAIL_FROM_SPF')
  const both = () => {
    publish([...only(mine, 'OWNERSHIP'), ...only(theirs, 'OWNERSHIP')])
    for (const records of [shared, only(mine, 'DKIM'), only(theirs, 'DKIM')]) publish(records)
  }
  both()
  const outcomes = await Promise.all([verify(first, mine), verify(second, theirs)])
  t.deepEqual(outcomes.map(({ status }) => status).toSorted(), ['VERIFIED', 'VERIFYING'])
  const [winner, loser] =
    outcomes[0].status === 'VERIFIED'
      ? ([
          [first, mine],
          [second, theirs],
        ] as const)
      : ([
          [second, theirs],
          [first, mine],
        ] as const)
  const held = await verify(...loser)
  t.is(held.status, 'VERIFYING')
  t.regex(only(held, 'OWNERSHIP')[0]?.repair ?? '', /^Another organization has verified/)

  publish(only(loser[1], 'OWNERSHIP'))
  await age(winner[1], "missed_checks = 2, missed_at = now() - interval '24 hours'")
  t.is((await verify(...winner)).status, 'DEGRADED')
  t.is((await verify(...loser)).status, 'VERIFIED')
  both()
  t.is((await verify(...winner)).status, 'DEGRADED')
})

test('the workflow looks after 1, 2, 5 and 15 minutes and then hourly, begins anew when asked, then looks daily, and shows the last answers', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(domainWorkflowId(domain.id))
  const timers = async () => {
    const { events } = await handle.fetchHistory()
    return (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) =>
      timer ? [Number(timer.startToFireTimeout?.seconds ?? 0)] : [],
    )
  }
  await eventually('the first wait', async () => (await timers()).length === 1)
  t.deepEqual(await timers(), [60])
  await verify(organization, domain)
  publish(domain.providerRecords)
  await verify(organization, domain)
  await eventually('the daily wait', async () => (await timers()).length === 3)
  t.deepEqual(await timers(), [60, 60, 86_400])
  const waits = [0, 1, 2, 3, 4, 70].map((polls) => domainWaitMinutes('POLL', polls))
  t.deepEqual(waits, [1, 2, 5, 15, 60, 60])
  const description = await handle.describe()
  t.is(description.type, 'DomainVerification')
  t.regex((await description.staticSummary()) ?? '', new RegExp(`^Domain ${domain.domain} · ${domain.id}$`))
  const details = await handle.query<{ currentDetails?: string }>('__temporal_workflow_metadata')
  t.regex(details.currentDetails ?? '', /\*\*VERIFIED\*\*\n- VERIFIED OWNERSHIP _postloom/)
})

test('a workflow that is gone is started again', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  await verify(organization, domain)
  const client = await api.services.temporal.client()
  const handle = client.workflow.getHandle(domainWorkflowId(domain.id))
  await handle.terminate('by an operator')
  await age(domain, "checked_at = now() - interval '27 hours'")
  t.true((await findUnwatchedDomains(em(), 100)).some(({ id }) => id === decodeId('dom', domain.id)))
  await reconcile(api.services)
  await eventually('the workflow to run', async () => (await handle.describe()).status.name === 'RUNNING')
  t.is((await verify(organization, domain)).status, 'VERIFYING')
})

test('the development domain is never looked up, and nobody verifies the domain of another organization', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  await age(domain, "development = true, status = 'VERIFIED'")
  const before = names.questions.length + others.questions.length
  t.is((await verify(organization, domain)).status, 'VERIFIED')
  t.is(names.questions.filter((question) => question.includes(domain.domain)).length, 0)
  t.true(names.questions.length + others.questions.length >= before)
  const stranger = await api.organization()
  for (const name of [domain.id, domain.domain, 'dom_nonsense', '']) {
    t.is((await stranger.call('verify_domain', { domain: name })).status, 404)
  }
})

test('while Temporal is down the request is stored and told as unanswered', async (t) => {
  const lonely = await startApi({ TEMPORAL_ADDRESS: '127.0.0.1:1' })
  try {
    const organization = await lonely.organization()
    const domain = await register(organization)
    const answer = await organization.call('verify_domain', { domain: domain.id })
    t.is(answer.status, 503)
    t.is(answer.body.code, 'UNAVAILABLE')
    const found = await row<{ status: string; waiting: number }>(
      lonely.services.orm.em.fork(),
      sql`select status, (select count(*)::int from outbox) as waiting from domain where id = ${decodeId('dom', domain.id)}`,
    )
    t.like(found, { status: 'VERIFYING' })
    t.true((found?.waiting ?? 0) > 0)
  } finally {
    await lonely.close()
  }
})

test('REST v2 verifies as the tool does', async (t) => {
  const organization = await api.organization()
  const domain = await register(organization)
  publish(domain.providerRecords)
  const answer = await api.request('POST', `/api/v2/domains/${domain.domain}/verify`, {
    token: organization.token,
  })
  t.is(answer.status, 200)
  t.like(answer.body, { id: domain.id, status: 'VERIFIED' })
})
