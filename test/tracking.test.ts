import { createServer } from 'node:http'

import test from 'ava'
import { sql } from 'kysely'

import { createApp } from '../api/app.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { array, execute, row, rows } from '../src/database.ts'
import { signToken } from '../src/delivery/tracking-token.ts'
import { READER, settleVisits } from '../src/domain/emails/visits.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { createTracking } from '../src/public/tracking.ts'
import { isMachine } from '../src/public/visitors.ts'
import { settleAll } from '../worker/visits.ts'
import type { TestApi, TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import type { Sink } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'
import { publishWorkflow } from './helpers/workflow.ts'

const BROWSER = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
const ROBOT = { 'user-agent': 'BarracudaCentral/1.0' }

let stack: Stack
let api: TestApi
let sink: Sink

test.before(async () => {
  stack = await startStack({ queue: 'tracking' })
  ;({ api, sink } = stack)
})
test.after.always(() => stack?.close())

const em = () => stack.em()

type Mail = { id: string; subscriberId: string; pixel: string; links: string[] }
type Sent = { campaignId: string; mails: Mail[] }

/** Creates a campaign that was sent a minute ago, with two links in each email. */
async function sentTo(organization: TestOrganization, count: number): Promise<Sent> {
  const campaignId = newId()
  await execute(
    em(),
    sql`insert into campaign (id, organization_id, kind, subject, content, content_type, status)
      values (${campaignId}, ${organization.id}, 'BROADCAST', 'News', '"[a](https://shop.example/0) [b](https://shop.example/1)"',
        'MARKDOWN', 'SENT')`,
  )
  const found = await rows<{ id: string; subscriberId: string }>(
    em(),
    sql`with reader as (
        insert into subscriber (id, organization_id, email, status)
        select new_id(), ${organization.id}, ${newId().slice(-12)} || n || '@reader.example', 'SUBSCRIBED'
        from generate_series(1, ${count}::int) n returning id, organization_id, email
      ), written as (
        insert into message (id, organization_id, class, marketing, subscriber_id, recipient, from_email, campaign_id)
        select new_id(), organization_id, 'CAMPAIGN', true, id, email, 'news@shop.example', ${campaignId}
        from reader returning id, organization_id, subscriber_id
      ), linked as (
        insert into link (organization_id, message_id, targets)
        select organization_id, id, array['https://shop.example/0', 'https://shop.example/1'] from written
      )
      select id, subscriber_id as "subscriberId" from written order by id`,
  )
  await execute(
    em(),
    sql`update message set status = 'SENT', sent_at = now() - interval '1 minute' where campaign_id = ${campaignId}`,
  )
  const { secret } = api.services.config
  const mails = found.map(({ id, subscriberId }) => {
    const ids = { organizationId: organization.id, messageId: id }
    return {
      id,
      subscriberId,
      pixel: `/o/${signToken(secret, { kind: 'open', ...ids })}.gif`,
      links: [0, 1].map((position) => `/c/${signToken(secret, { kind: 'click', ...ids, position })}`),
    }
  })
  return { campaignId: encodeId('cmp', campaignId), mails }
}

async function visit(path: string | undefined, headers: Record<string, string> = BROWSER, method = 'GET') {
  const answer = await api.request(method, path ?? '', { headers })
  if (answer.status !== 200 && answer.status !== 302) throw new Error(`${path} answered ${answer.status}`)
  return answer
}

/** Moves the previous clicks further into the past than a burst lasts. */
async function age(seconds: number, ids: readonly string[]): Promise<void> {
  await execute(
    em(),
    sql`update tracking_event set created_at = created_at - make_interval(secs => ${seconds})
      where message_id = any(${array(ids, 'uuid')})`,
  )
}

async function analytics(organization: TestOrganization, campaignId: string) {
  return (await organization.data('get_campaign_analytics', { campaignId })).analytics
}

async function eventsOf(mail: Mail | undefined): Promise<string[]> {
  const found = await rows<{ text: string }>(
    em(),
    sql`select type || coalesce(' ' || (data ->> 'position'), '') as text from subscriber_event
      where subscriber_id = ${mail?.subscriberId} and type in ('EMAIL_OPENED', 'EMAIL_CLICKED') order by id`,
  )
  return found.map(({ text }) => text)
}

const only = (unique: number, total = unique, machine = { unique: 0, total: 0 }) => ({
  unique,
  total,
  machine,
})

test('the analytics of a campaign tell everything that came of it, and stay when a snippet is edited', async (t) => {
  const organization = await api.organization()
  const { snippet } = await organization.data('create_email_snippet', {
    name: 'Footer',
    contentType: 'MARKDOWN',
    content: '[Shop](https://shop.example/from-snippet)',
  })
  const text = (value: string, href: string) => ({
    type: 'paragraph',
    content: [{ type: 'text', text: value, marks: [{ type: 'link', attrs: { href } }] }],
  })
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    content: {
      type: 'doc',
      content: [
        text('first', 'https://shop.example/first'),
        { type: 'snippet', attrs: { snippetId: snippet.id } },
        text('leave', '{{unsubscribeUrl}}'),
      ],
    },
  })
  const names = ['ada', 'bea', 'cyd', 'dot', 'eve', 'full', 'gone']
  for (const name of names) await organization.data('add_subscriber', { email: `${name}@reader.example` })
  sink.behaviour = {
    onRecipient: (address) =>
      address.startsWith('gone@') ? { code: 550, text: '5.1.1 nobody of that name' } : 'accept',
  }
  await organization.confirmed('schedule_campaign', { campaignId: campaign.id })
  await eventually('the campaign to be sent', async () => {
    const { progress } = await organization.data('get_campaign_progress', { campaignId: campaign.id })
    return progress.status === 'SENT'
  })
  sink.behaviour = {}
  await execute(
    em(),
    sql`update message set sent_at = sent_at - interval '1 minute' where campaign_id = ${decodeId('cmp', campaign.id)}`,
  )
  await organization.data('update_email_snippet', {
    snippetId: snippet.id,
    content: '[Before](https://shop.example/before) [Shop](https://shop.example/from-snippet)',
  })
  const paths = (name: string) => {
    const mail = sink.accepted().find(({ recipient }) => recipient.startsWith(`${name}@`))
    const raw = mail?.raw.toString().replaceAll('=\r\n', '') ?? ''
    const of = (door: string) => [
      ...new Set([...raw.matchAll(new RegExp(`/${door}/[\\w-]{60,}(?:\\.gif)?`, 'g'))].map(([path]) => path)),
    ]
    return { pixel: of('o')[0], links: of('c'), leave: of('u')[0] }
  }
  for (const name of ['ada', 'ada', 'bea', 'cyd']) await visit(paths(name).pixel)
  await visit(paths('dot').pixel, ROBOT)
  for (const name of ['ada', 'ada', 'bea']) await visit(paths(name).links[1])
  await visit(paths('cyd').links[0])
  await visit(paths('dot').links[0], ROBOT)
  await visit(paths('dot').links[1], BROWSER, 'HEAD')
  await api.settleVisits()
  // The same reader clicks another link later.
  await age(
    5,
    (
      await rows<{ id: string }>(
        em(),
        sql`select id from message where campaign_id = ${decodeId('cmp', campaign.id)}`,
      )
    ).map(({ id }) => id),
  )
  await visit(paths('ada').links[0])
  await api.settleVisits()
  for (const times of [1, 2])
    t.is((await api.request('POST', paths('cyd').leave ?? '')).status, 200, `${times}`)
  await execute(
    em(),
    sql`update message set status = 'COMPLAINED' where recipient = 'eve@reader.example'
      and campaign_id = ${decodeId('cmp', campaign.id)}`,
  )
  await execute(
    em(),
    sql`update message set status = 'BOUNCED', bounce_category = 'MAILBOX_FULL' where recipient = 'full@reader.example'
      and campaign_id = ${decodeId('cmp', campaign.id)}`,
  )
  const pay = (name: string, amount: number, more: object = {}) =>
    organization.data('create_event', {
      email: `${name}@reader.example`,
      eventType: 'SUBSCRIBER_PAYMENT',
      amount,
      ...more,
    })
  await pay('ada', 10.5)
  await pay('ada', 2)
  await pay('ada', 7, { currency: 'EUR' })
  await pay('cyd', 3, { currency: 'EUR' })
  await pay('bea', 100)
  await pay('dot', 1_000)
  await execute(
    em(),
    sql`update subscriber_event set created_at = created_at + interval '6 days'
      where type = 'SUBSCRIBER_PAYMENT' and (data ->> 'amount')::numeric = 100`,
  )
  const told = await analytics(organization, campaign.id)
  const { timeline, ...rest } = told
  t.deepEqual(rest, {
    recipients: 7,
    sent: 6,
    delivered: 0,
    opens: only(3, 4, { unique: 1, total: 1 }),
    clicks: only(3, 5, { unique: 1, total: 2 }),
    links: [
      { position: 0, url: 'https://shop.example/first', unique: 2, total: 2 },
      { position: 1, url: 'https://shop.example/from-snippet', unique: 2, total: 3 },
    ],
    unsubscribes: 1,
    bounces: { NO_SUCH_USER: 1, MAILBOX_FULL: 1 },
    complaints: 1,
    revenue: [
      { currency: 'EUR', total: 10 },
      { currency: 'USD', total: 12.5 },
    ],
  })
  const sum = (key: 'sent' | 'opens' | 'clicks') =>
    timeline.reduce((total: number, hour: Record<string, number>) => total + (hour[key] ?? 0), 0)
  t.deepEqual([sum('sent'), sum('opens'), sum('clicks')], [6, 4, 5])
  t.true(timeline.every(({ hour }: { hour: string }) => hour.endsWith(':00:00.000Z')))
  const other = await api.organization()
  t.is((await other.call('get_campaign_analytics', { campaignId: campaign.id })).status, 404)
})

test('several processes, and several workers, count a first visit once and every visit in the total', async (t) => {
  const [organization, neighbour] = [await api.organization(), await api.organization()]
  const { campaignId, mails } = await sentTo(organization, 4)
  const elsewhere = await sentTo(neighbour, 1)
  const tracking = createTracking(api.services)
  const server = createServer(createApp(api.services, tracking).callback())
  const port = await listenOnLoopback(server)
  const second = `http://127.0.0.1:${port}`
  const paths = mails.flatMap(({ pixel, links }) => [pixel, links[0] ?? ''])
  const statuses = await Promise.all(
    Array.from({ length: 5 }, () => paths)
      .flat()
      .flatMap((path) => [
        visit(path).then(({ status }) => status),
        fetch(second + path, { headers: BROWSER, redirect: 'manual' }).then(({ status }) => status),
      ]),
  )
  t.is(statuses.filter((status) => status === 200).length, 40)
  t.is(statuses.filter((status) => status === 302).length, 40)
  await tracking.stop()
  server.closeAllConnections()
  server.close()
  await visit(elsewhere.mails[0]?.pixel)
  await eventually('all to be settled by workers at once', async () => {
    await Promise.all([settleAll(api.services), settleAll(api.services), settleAll(api.services)])
    const waiting = await row(em(), sql`select from pending_visit where organization_id = ${organization.id}`)
    return waiting === null
  })
  const told = await analytics(organization, campaignId)
  t.deepEqual([told.opens, told.clicks], [only(4, 40), only(4, 40)])
  for (const mail of mails)
    t.deepEqual((await eventsOf(mail)).toSorted(), ['EMAIL_CLICKED 0', 'EMAIL_OPENED'])
  const stats = await rows(
    em(),
    sql`select open_count as opens, click_count as clicks from subscriber_stat where organization_id = ${organization.id}`,
  )
  t.deepEqual(
    stats,
    mails.map(() => ({ opens: 1, clicks: 1 })),
  )
  await api.settleVisits()
  t.deepEqual((await analytics(neighbour, elsewhere.campaignId)).opens, only(1))
})

test('what was written twice, because nobody heard that it was written, counts once', async (t) => {
  const organization = await api.organization()
  const { campaignId, mails } = await sentTo(organization, 1)
  const [id, messageId] = [newId(), mails[0]?.id]
  for (let time = 0; time < 2; time++) {
    await execute(
      em(),
      sql`insert into pending_visit (organization_id, id, message_id, machine, user_agent, created_at)
        values (${organization.id}, ${id}, ${messageId}, false, 'Firefox', now())`,
    )
    await api.settleVisits()
  }
  t.deepEqual((await analytics(organization, campaignId)).opens, only(1))
})

// Serial, because the other tests settle all visits.
test.serial(
  'a worker that dies in the middle settles nothing, and the next one all of it, once',
  async (t) => {
    const organization = await api.organization()
    const { campaignId, mails } = await sentTo(organization, 1)
    await visit(mails[0]?.pixel)
    const pending = () =>
      rows(em(), sql`select message_id as id from pending_visit where organization_id = ${organization.id}`)
    await eventually('the visit to be written', async () => (await pending()).length === 1)
    const scope = { organizationId: organization.id, actor: READER }
    const dying = unitOfWork(api.services, scope, async (call) => {
      if ((await settleVisits(call, 2_000)) === 1) throw new Error('killed')
    })
    await t.throwsAsync(dying, { message: 'killed' })
    t.is((await pending()).length, 1)
    t.deepEqual(await eventsOf(mails[0]), [])
    t.deepEqual((await analytics(organization, campaignId)).opens, only(0))
    await api.settleVisits()
    t.deepEqual(await eventsOf(mails[0]), ['EMAIL_OPENED'])
    t.deepEqual((await analytics(organization, campaignId)).opens, only(1))
  },
)

test.serial('a visit that cannot be settled is set apart and holds up no other', async (t) => {
  const organization = await api.organization()
  const { campaignId, mails } = await sentTo(organization, 5)
  await execute(
    em(),
    sql`create function refuse_visit() returns trigger language plpgsql as $$ begin
        raise exception 'refused'; end $$`,
  )
  await execute(
    em(),
    sql`create trigger refuse_visit before insert on tracking_event for each row
      when (new.user_agent = 'Poisoned') execute function refuse_visit()`,
  )
  for (const [index, mail] of mails.entries()) {
    await visit(mail.pixel, { 'user-agent': index === 2 ? 'Poisoned' : BROWSER['user-agent'] })
  }
  await api.settleVisits()
  t.deepEqual((await analytics(organization, campaignId)).opens, only(4))
  const apart = await rows<{ id: string }>(
    em(),
    sql`select message_id as id from pending_visit where organization_id = ${organization.id} and apart`,
  )
  t.deepEqual(apart, [{ id: mails[2]?.id ?? '' }])
  await execute(em(), sql`drop function refuse_visit cascade`)
})

test('a machine is told by what it calls itself, or does not, and by asking for headers alone', (t) => {
  const asks = (userAgent: string, method = 'GET', purpose = ''): boolean =>
    isMachine({ method, userAgent, purpose })
  for (const agent of [
    '',
    ' ',
    'Mozilla/5.0',
    'curl/8.5.0',
    'python-requests/2.31',
    'Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)',
    'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
    'Mozilla/4.0 (compatible; ms-office; MSOffice 16) Microsoft Office Existence Discovery',
    'BarracudaCentral/1.0',
    'Mozilla/5.0 (X11; Linux x86_64) HeadlessChrome/120.0',
  ])
    t.true(asks(agent), agent)
  for (const agent of [
    BROWSER['user-agent'],
    // The image proxies of Gmail and Yahoo load images when the reader opens the email.
    'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)',
    'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html',
    'Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36',
  ])
    t.false(asks(agent), agent)
  t.true(asks(BROWSER['user-agent'], 'HEAD'))
  for (const purpose of ['prefetch', 'prefetch;prerender', 'Prefetch;anonymous-client-ip', 'preview'])
    t.true(asks(BROWSER['user-agent'], 'GET', purpose), purpose)
  t.false(asks(BROWSER['user-agent'], 'GET', 'navigate'))
})

test('what a browser fetches before its reader asks for it is a machine’s', async (t) => {
  const organization = await api.organization()
  const { campaignId, mails } = await sentTo(organization, 2)
  const [eager, calm] = mails
  await visit(eager?.pixel, { ...BROWSER, 'sec-purpose': 'prefetch;prerender' })
  await visit(eager?.links[0], { ...BROWSER, purpose: 'prefetch' })
  await visit(calm?.pixel)
  await visit(calm?.links[0])
  await api.settleVisits()
  t.deepEqual(await eventsOf(eager), [])
  const told = await analytics(organization, campaignId)
  for (const kind of ['opens', 'clicks']) t.deepEqual(told[kind], only(1, 1, { unique: 1, total: 1 }))
})

test('two links within a second are a machine, whichever process saw them; two seconds apart they are a person', async (t) => {
  const organization = await api.organization()
  const { campaignId, mails } = await sentTo(organization, 2)
  const [hasty, calm] = mails
  await Promise.all(hasty?.links.map((link) => visit(link)) ?? [])
  await visit(calm?.links[0])
  await api.settleVisits()
  await age(2, [calm?.id ?? ''])
  await visit(calm?.links[1])
  await api.settleVisits()
  t.deepEqual(await eventsOf(hasty), [])
  t.deepEqual(await eventsOf(calm), ['EMAIL_CLICKED 0', 'EMAIL_CLICKED 1'])
  t.deepEqual((await analytics(organization, campaignId)).clicks, only(1, 2, { unique: 1, total: 2 }))
})

test('a click that turns out to be a machine’s is taken back from every number, and its event with it', async (t) => {
  const organization = await api.organization()
  const { campaignId, mails } = await sentTo(organization, 1)
  const [mail] = mails
  await visit(mail?.links[0])
  await api.settleVisits()
  t.deepEqual(await eventsOf(mail), ['EMAIL_CLICKED 0'])
  // Written late, as by a process that could not reach the database.
  await execute(
    em(),
    sql`insert into pending_visit (organization_id, id, message_id, position, url, machine, user_agent, created_at)
      select organization_id, new_id(), message_id, 1, 'https://shop.example/1', false, 'Firefox',
        created_at + interval '500 milliseconds'
      from tracking_event where message_id = ${mail?.id}`,
  )
  await api.settleVisits()
  const told = await analytics(organization, campaignId)
  t.deepEqual(told.clicks, only(0, 0, { unique: 1, total: 2 }))
  t.deepEqual(
    told.links.map(({ unique, total }: Record<string, number>) => [unique, total]),
    [
      [0, 0],
      [0, 0],
    ],
  )
  t.deepEqual(told.timeline.at(-1).clicks, 0)
  t.deepEqual(await eventsOf(mail), [])
  const left = await row(
    em(),
    sql`select click_count as clicks, m.clicked_at as "clickedAt", stat.last_clicked_at as "lastClickedAt" from message m
      join subscriber_stat stat on stat.organization_id = m.organization_id and stat.subscriber_id = m.subscriber_id
      where m.id = ${mail?.id}`,
  )
  t.deepEqual(left, { clicks: 0, clickedAt: null, lastClickedAt: null })
})

test('who clicked before a click that is taken back clicked then for the last time', async (t) => {
  const organization = await api.organization()
  const { mails } = await sentTo(organization, 1)
  const [mail] = mails
  await visit(mail?.links[0])
  await api.settleVisits()
  await age(30, [mail?.id ?? ''])
  await visit(mail?.links[0])
  await api.settleVisits()
  await execute(
    em(),
    sql`insert into pending_visit (organization_id, id, message_id, position, url, machine, user_agent, created_at)
      select organization_id, new_id(), message_id, 1, 'https://shop.example/1', false, 'Firefox',
        created_at + interval '500 milliseconds'
      from tracking_event where message_id = ${mail?.id} order by created_at desc limit 1`,
  )
  await api.settleVisits()
  const told = await row<{ last: string; first: string; clicks: number }>(
    em(),
    sql`select stat.last_clicked_at as last, stat.click_count as clicks, (select created_at from tracking_event
        where message_id = ${mail?.id} and human) as first
      from subscriber_stat stat where subscriber_id = ${mail?.subscriberId}`,
  )
  t.is(told?.clicks, 1)
  t.deepEqual(told?.last, told?.first)
})

test('people start workflows and pass filters, machines do neither', async (t) => {
  const organization = await api.organization()
  const starting = async (eventType: string) => {
    await publishWorkflow(organization, [
      { id: 'start', type: 'TRIGGER', config: { type: 'EVENT', eventType } },
      { id: 'tag', type: 'ADD_TAG', config: { tagNames: [eventType] } },
    ])
  }
  await starting('EMAIL_OPENED')
  await starting('EMAIL_CLICKED')
  const { campaignId, mails } = await sentTo(organization, 3)
  const [reader, robot] = mails
  await visit(reader?.pixel)
  await visit(reader?.links[1])
  await visit(robot?.pixel, ROBOT)
  await visit(robot?.links[1], ROBOT)
  await api.settleVisits()
  const count = async (...filters: unknown[]) =>
    (await organization.data('count_subscribers', { filters })).total
  for (const name of ['EMAIL_OPENED', 'EMAIL_CLICKED']) {
    await eventually(`the tag of ${name}`, async () => {
      const all = (await organization.data('list_tags')).tags.map((tag: { name: string }) => tag.name)
      return all.includes(name) && (await count({ field: 'tags', operator: 'has_any', value: [name] })) === 1
    })
    t.is(await count({ field: 'event', operator: 'performed', event: name }), 1)
  }
  const runs = await row(
    em(),
    sql`select count(*)::int as count from automation_run where organization_id = ${organization.id}`,
  )
  t.deepEqual(runs, { count: 2 })
  t.is(await count({ field: 'campaign', operator: 'opened', value: [campaignId] }), 1)
  t.is(await count({ field: 'campaign', operator: 'not_opened', value: [campaignId] }), 2)
  t.is(await count({ field: 'campaign', operator: 'clicked', value: [campaignId] }), 1)
  t.is(
    await count({ field: 'lastOpenedAt', operator: 'within_last', value: { amount: 1, unit: 'HOURS' } }),
    1,
  )
  t.is(
    await count({ field: 'lastClickedAt', operator: 'within_last', value: { amount: 1, unit: 'HOURS' } }),
    1,
  )
  t.is(await count({ field: 'openCount', operator: 'gte', value: 1 }), 1)
  t.is(await count({ field: 'clickCount', operator: 'equals', value: 1 }), 1)
})

test('a link to a host in another script leads there, by the name that DNS knows', async (t) => {
  const organization = await api.organization()
  const { mails } = await sentTo(organization, 1)
  const targets = ['https://bücher.example/neu?seite=1#oben', 'https://пример.рф/%D1%8F']
  await execute(
    em(),
    sql`update link set targets = ${array(targets, 'text')} where message_id = ${mails[0]?.id}`,
  )
  const answers = await Promise.all((mails[0]?.links ?? []).map((link) => visit(link)))
  t.deepEqual(
    answers.map(({ headers }) => headers.get('location')),
    ['https://xn--bcher-kva.example/neu?seite=1#oben', 'https://xn--e1afmkfd.xn--p1ai/%D1%8F'],
  )
})

test('a token of another organization, of no email and of no such link count nothing', async (t) => {
  const [organization, other] = [await api.organization(), await api.organization()]
  const { campaignId, mails } = await sentTo(organization, 1)
  const { secret } = api.services.config
  const [messageId = '', nothing] = [mails[0]?.id, newId()]
  for (const ids of [
    { organizationId: other.id, messageId },
    { organizationId: organization.id, messageId: nothing },
  ]) {
    const open = await api.request('GET', `/o/${signToken(secret, { kind: 'open', ...ids })}.gif`, {
      headers: BROWSER,
    })
    t.is(open.status, 200)
    const click = `/c/${signToken(secret, { kind: 'click', ...ids, position: 0 })}`
    t.is((await api.request('GET', click, { headers: BROWSER })).status, 404)
  }
  const beyond = signToken(secret, { kind: 'click', organizationId: organization.id, messageId, position: 2 })
  t.is((await api.request('GET', `/c/${beyond}`, { headers: BROWSER })).status, 404)
  await api.settleVisits()
  t.deepEqual((await analytics(organization, campaignId)).opens, only(0))
  t.is(
    await row(
      em(),
      sql`select from tracking_event where message_id = any(${array([messageId, nothing], 'uuid')})`,
    ),
    null,
  )
})
