import { spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { sql } from 'kysely'

import { compileContent } from '../src/content/compile.ts'
import { fillContent } from '../src/content/fill.ts'
import { execute, row } from '../src/database.ts'
import { composeMail } from '../src/delivery/mime.ts'
import { quote, quoteEmail } from '../src/delivery/quoted-printable.ts'
import { decodeId } from '../src/ids.ts'
import { startListmonk } from './shared/listmonk.ts'
import { newsletter } from './shared/newsletter.ts'
import { median, report } from './shared/report.ts'
import { startSystem, type System } from './shared/system.ts'

/**
 * campaign-fanout: emails per second from schedule_campaign until SENT, through Temporal, to a sink that accepts
 * everything. Each email has 5 KB of MAILY, ten tracked links, a pixel and one-click unsubscribe, and each recipient
 * has a row and an event. A bare pipeline sends the same bytes for comparison. The benchmark proves that everybody got
 * the email once and has a row for it. With `--dkim`, all emails are signed, and the RSA signatures that all cores can
 * make are measured too. With `--listmonk DIR`, the listmonk checkout in DIR sends the same after each of our runs.
 */
const { values } = parseArgs({
  options: {
    dkim: { type: 'boolean', default: false },
    json: { type: 'string' },
    listmonk: { type: 'string' },
    recipients: { type: 'string', default: '20000' },
    runs: { type: 'string', default: '3' },
  },
})
const RECIPIENTS = Number(values.recipients)
const RUNS = Number(values.runs)

const CONTENT = newsletter()

const TEMPLATE = join(tmpdir(), `postloom-fanout-${process.pid}.json`)

/** Processor times are those of the sender (the worker or the bare pipeline) and of PostgreSQL. */
type Run = { seconds: number; processorMs: number; databaseMs: number }
type Summary = ReturnType<typeof summary>

await measure()

async function measure(): Promise<void> {
  const system = await startSystem()
  try {
    await seed(system)
    writeFileSync(TEMPLATE, JSON.stringify(bareTemplate()))
    const listmonk =
      values.listmonk === undefined
        ? undefined
        : await startListmonk(system, {
            directory: values.listmonk,
            recipients: RECIPIENTS,
            html: listmonkBody(),
          })
    const bare = [await runBare(system)]
    const ours: Run[] = []
    const rival: Run[] = []
    for (let run = 0; run < RUNS; run++) {
      ours.push(await runOurs(system))
      if (listmonk) rival.push(await runRival(system, listmonk))
      bare.push(await runBare(system))
    }
    await listmonk?.stop()
    const [mine, theirs] = [summary(ours), summary(bare)]
    if (values.dkim) return reportSigned(mine, theirs, system.memory('worker').peak)
    report({
      benchmark: 'campaign-fanout',
      settings: { recipients: RECIPIENTS, runs: RUNS, contentBytes: JSON.stringify(CONTENT).length },
      figures: {
        'campaign-fanout': { ...mine, 'peak MB': system.memory('worker').peak },
        'bare pipeline': theirs,
        ...(rival.length > 0 && { listmonk: summary(rival) }),
      },
      ratio: mine['emails/s'] / theirs['emails/s'],
      must: '≥ 0.5×',
      aim: '≥ 0.8×',
    })
  } finally {
    await system.stop()
  }
}

/** Signing cannot be avoided, so the rate of signatures on all cores is the upper limit. */
function reportSigned(mine: Summary, bare: Summary, peak: number): void {
  const signatures = Math.round(signatureRate() * availableParallelism())
  report({
    benchmark: 'campaign-fanout-dkim',
    settings: { recipients: RECIPIENTS, runs: RUNS, contentBytes: CONTENT.length },
    figures: {
      'campaign-fanout-dkim': { ...mine, 'peak MB': peak },
      'signatures alone': { 'emails/s': signatures },
      'bare pipeline that signs': bare,
    },
    ratio: mine['emails/s'] / signatures,
    must: '≥ 0.6×',
    aim: '≥ 0.9×',
  })
}

/** Returns the RSA-2048 signatures per second on one core. */
function signatureRate(): number {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const data = randomBytes(800)
  const began = performance.now()
  let made = 0
  for (; performance.now() - began < 3_000; made += 1) sign('sha256', data, privateKey)
  return made / ((performance.now() - began) / 1_000)
}

async function seed({ services, organizationId }: System): Promise<void> {
  const em = services.orm.em.fork()
  if (!values.dkim) await execute(em, sql`delete from dkim_key where organization_id = ${organizationId}`)
  await execute(em, sql`delete from subscriber where organization_id = ${organizationId}`)
  await execute(
    em,
    sql`insert into subscriber (id, organization_id, email, name, status)
      select new_id(), ${organizationId}, 'reader-' || n || '@reader.example', 'Reader ' || n, 'SUBSCRIBED'
      from generate_series(1, ${RECIPIENTS}::int) n`,
  )
  await execute(
    em,
    sql`create table bare_recipient (id uuid primary key, email text, name text, status text,
    sent_at timestamptz)`,
  )
  await execute(em, sql`insert into bare_recipient select id, email, name from subscriber order by id`)
  await execute(em, sql`analyze`)
}

// oxlint-disable-next-line typescript/no-explicit-any -- the tools' own tests say what they answer
async function tool({ url, token }: System, name: string, input: object): Promise<any> {
  const answer = await fetch(`${url}/api/v2/tools/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(input),
  })
  const body: unknown = await answer.json()
  if (answer.ok || answer.status === 428) return body
  throw new Error(`${name} answered ${answer.status}: ${JSON.stringify(body)}`)
}

async function runOurs(system: System): Promise<Run> {
  const { data } = await tool(system, 'create_campaign', {
    subject: 'News for {{name}}',
    contentType: 'MAILY',
    content: CONTENT,
  })
  const campaignId: string = data.campaign.id
  system.sink.clear()
  const { confirmationCode } = await tool(system, 'schedule_campaign', { campaignId })
  const [processor, database] = [system.processorMs('worker'), system.processorMs('postgres')]
  const began = performance.now()
  await tool(system, 'schedule_campaign', { campaignId, confirmationCode })
  while ((await statusOf(system, campaignId)) !== 'SENT') await sleep(10)
  const run = {
    seconds: (performance.now() - began) / 1_000,
    processorMs: system.processorMs('worker') - processor,
    databaseMs: system.processorMs('postgres') - database,
  }
  await prove(system, campaignId)
  tell('ours', run)
  return run
}

async function statusOf({ services, organizationId }: System, campaignId: string): Promise<string> {
  const found = await row<{ status: string }>(
    services.orm.em.fork(),
    sql`select status from campaign where organization_id = ${organizationId} and id = ${decodeId('cmp', campaignId)}`,
  )
  if (found?.status === 'FAILED') throw new Error('the campaign failed')
  return found?.status ?? ''
}

/** Throws unless everybody got the email once and has one row and one event. */
async function prove({ services, sink, organizationId }: System, campaignId: string): Promise<void> {
  const found = await row<Record<string, number>>(
    services.orm.em.fork(),
    sql`select count(*)::int as messages, count(distinct subscriber_id)::int as people,
        count(*) filter (where status = 'SENT')::int as sent,
        (select count(*)::int from subscriber_event where organization_id = ${organizationId}
          and type = 'EMAIL_SENT' and data ->> 'campaignId' = ${campaignId}) as events
      from message where organization_id = ${organizationId} and campaign_id = ${decodeId('cmp', campaignId)}`,
  )
  const counts = { ...found, accepted: sink.journal.length, addresses: addresses(sink) }
  if (Object.values(counts).every((count) => count === RECIPIENTS)) return
  throw new Error(`${RECIPIENTS} recipients, but ${JSON.stringify(counts)}`)
}

function addresses(sink: System['sink']): number {
  return new Set(sink.journal.map(({ recipient }) => recipient)).size
}

async function runBare(system: System): Promise<Run> {
  const { services, sink } = system
  sink.clear()
  await execute(services.orm.em.fork(), sql`update bare_recipient set status = null, sent_at = null`)
  const database = system.processorMs('postgres')
  const child = spawn(process.execPath, [join(import.meta.dirname, 'shared', 'bare-fanout.ts')], {
    env: {
      ...process.env,
      DATABASE_URL: services.config.databaseUrl,
      RELAY_PORT: String(sink.port),
      TEMPLATE,
      DKIM: String(values.dkim),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  await new Promise((resolve) => child.once('exit', resolve))
  if (addresses(sink) !== RECIPIENTS) throw new Error(`the bare pipeline sent ${sink.journal.length}`)
  // bare-fanout.ts prints this object.
  const sender = JSON.parse(output) as Omit<Run, 'databaseMs'>
  const run = { ...sender, databaseMs: system.processorMs('postgres') - database }
  tell('bare', run)
  return run
}

async function runRival(system: System, listmonk: Awaited<ReturnType<typeof startListmonk>>): Promise<Run> {
  const run = await listmonk.run()
  if (addresses(system.sink) !== RECIPIENTS) throw new Error(`listmonk sent ${system.sink.journal.length}`)
  tell('listmonk', run)
  return run
}

/**
 * Returns our HTML as a listmonk template: its variable for the name, ten tracked links, its pixel and its unsubscribe
 * link.
 */
function listmonkBody(): string {
  const compiled = compileContent({
    contentType: 'MAILY',
    source: CONTENT,
    subject: 'News',
    kind: 'marketing',
  })
  const { html } = fillContent(compiled, {
    variables: { name: '{{ .Subscriber.Name }}' },
    urls: { unsubscribe: '{{ UnsubscribeURL }}', online: '{{ MessageURL }}' },
  })
  const tracked = html.replaceAll(
    /href="(https:\/\/example\.com\/[^"]*)"/g,
    (_, url: string) => `href="{{ TrackLink "${url}" . }}"`,
  )
  return `${tracked}{{ TrackView }}`
}

/** Returns our email as prepared parts, and the slots between them that differ per recipient. */
function bareTemplate(): { parts: string[]; slots: string[] } {
  const compiled = compileContent({
    contentType: 'MAILY',
    source: CONTENT,
    subject: 'News for {{name}}',
    kind: 'marketing',
  })
  const url = (door: string) => `http://127.0.0.1:3000/${door}/QQTOKENQQ${'x'.repeat(60)}`
  const person = {
    variables: { name: 'QQNAMEQQ' },
    urls: { unsubscribe: url('u'), online: url('v') },
    tracking: { openUrl: url('o'), clickUrl: () => url('c') },
  }
  const filled = fillContent(quoteEmail(compiled), person, quote)
  const { headers, body } = composeMail({
    messageId: 'QQTOKENQQ@bare.example',
    date: new Date(),
    from: { name: 'Shop', email: 'hello@bare.example' },
    to: { name: 'QQNAMEQQ', email: 'QQEMAILQQ' },
    replyTo: null,
    subject: filled.subject,
    html: filled.html,
    text: filled.text,
    unsubscribeUrl: url('u'),
  })
  const pieces = `${headers}\r\n${body}`.split(/QQ(NAME|TOKEN|EMAIL)QQ/)
  return {
    parts: pieces.filter((_, index) => index % 2 === 0),
    slots: pieces.filter((_, index) => index % 2 === 1),
  }
}

function tell(name: string, { seconds, processorMs, databaseMs }: Run): void {
  const each = (ms: number) => (ms / RECIPIENTS).toFixed(3)
  console.error(
    `${name}: ${Math.round(RECIPIENTS / seconds)} emails/s, CPU ms/email ${each(processorMs)} and PostgreSQL ${each(databaseMs)}`,
  )
}

function summary(runs: readonly Run[]) {
  const each = (value: (run: Run) => number) =>
    Math.round((median(runs.map(value)) / RECIPIENTS) * 1_000) / 1_000
  return {
    'emails/s': Math.round(median(runs.map(({ seconds }) => RECIPIENTS / seconds))),
    'CPU ms/email': each(({ processorMs }) => processorMs),
    'PostgreSQL CPU ms/email': each(({ databaseMs }) => databaseMs),
  }
}
