import test from 'ava'
import { sql } from 'kysely'
import { simpleParser } from 'mailparser'

import { execute } from '../src/database.ts'
import { newId } from '../src/ids.ts'
import type { TestApi, TestOrganization } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import type { Sink } from './helpers/smtp-sink.ts'
import { type Stack, startStack } from './helpers/stack.ts'

let stack: Stack
let api: TestApi
let sink: Sink

test.before(async () => {
  stack = await startStack({ queue: 'stand-in' })
  ;({ api, sink } = stack)
})
test.after.always(() => stack?.close())

/** Creates an organization whose own domain is no longer verified, and two other domains that are VERIFIED. */
async function office(t: { is: (one: unknown, other: unknown) => void }) {
  const organization = await api.organization()
  const hosts = { second: `second-${organization.domain}`, first: `first-${organization.domain}` }
  for (const host of Object.values(hosts)) {
    await execute(
      stack.em(),
      sql`insert into domain (id, organization_id, domain, status)
        values (${newId()}, ${organization.id}, ${host}, 'VERIFIED')`,
    )
  }
  await lose(organization, organization.domain)
  const place = async (host: string, fallbackPriority: number | null) => {
    const answer = await api.request('PATCH', `/api/v2/domains/${host}`, {
      token: organization.token,
      body: { fallbackPriority },
    })
    t.is(answer.status, 200)
    t.is(answer.body.fallbackPriority, fallbackPriority)
  }
  return { organization, hosts, place, own: `hello@${organization.domain}` }
}

async function lose({ id }: TestOrganization, host: string): Promise<void> {
  await execute(
    stack.em(),
    sql`update domain set status = 'DEGRADED' where organization_id = ${id} and domain = ${host}`,
  )
}

async function mailTo(address: string) {
  const entry = await eventually('the email', async () =>
    sink.accepted().find(({ recipient }) => recipient === address),
  )
  const { from, replyTo } = await simpleParser(entry.raw)
  return { from: from?.text, replyTo: replyTo?.text, returnsTo: entry.from.split('@')[1] }
}

const send = ({ token }: TestOrganization, body: object) =>
  api.request('POST', '/api/v1/emails', { token, body: { subject: 'Hi', content: 'Hello', ...body } })

test('the domain that stands in first takes the place of one that is lost, and answers go where they should', async (t) => {
  const { organization, hosts, place, own } = await office(t)
  const to = (name: string) => `${name}-${newId().slice(-8)}@reader.example`
  t.is((await send(organization, { to: to('none') })).status, 403)
  await place(hosts.second, 2)
  await place(hosts.first, 1)

  const [plain, replied, named] = [to('plain'), to('replied'), to('named')]
  t.is((await send(organization, { to: plain })).status, 200)
  t.is((await send(organization, { to: replied, replyTo: 'desk@shop.example' })).status, 200)
  t.is((await send(organization, { to: named, from: `Bills <bills@${organization.domain}>` })).status, 200)
  const from = `Sender <hello@${hosts.first}>`
  const returnsTo = `send.${hosts.first}`
  const quoted = (text: string | undefined) => text?.replaceAll('"', '')
  const plainMail = await mailTo(plain)
  t.deepEqual({ ...plainMail, from: quoted(plainMail.from) }, { from, replyTo: own, returnsTo })
  t.is((await mailTo(replied)).replyTo, 'desk@shop.example')
  t.is(quoted((await mailTo(named)).from), `Bills <bills@${hosts.first}>`)

  const { emails } = await organization.data('get_subscriber_emails', { email: plain })
  t.like(emails[0], { from: `hello@${hosts.first}`, stoodInFor: own })

  const stop = async (host: string) => {
    await execute(
      stack.em(),
      sql`insert into sending_stop (organization_id, domain_id, stream, names, reason, days, emails, counted)
        select organization_id, id, 'TRANSACTIONAL', array[domain], 'BOUNCES', 1, 100, 20 from domain
        where organization_id = ${organization.id} and domain = ${host}`,
    )
    return async () => {
      await execute(stack.em(), sql`delete from sending_stop where organization_id = ${organization.id}`)
    }
  }
  const resumeFirst = await stop(hosts.first)
  const around = to('around')
  t.is((await send(organization, { to: around })).status, 200)
  t.is((await mailTo(around)).returnsTo, `send.${hosts.second}`)
  await resumeFirst()
  const resumeOwn = await stop(organization.domain)
  t.not((await send(organization, { to: to('stopped') })).status, 200)
  await resumeOwn()

  await lose(organization, hosts.first)
  const later = to('later')
  t.is((await send(organization, { to: later })).status, 200)
  t.is((await mailTo(later)).returnsTo, `send.${hosts.second}`)
  await place(hosts.second, null)
  t.like(await send(organization, { to: to('last') }), { status: 403, body: { success: false } })
})

test('nothing stands in for a domain that is VERIFIED, that is not there, or from another organization', async (t) => {
  const helper = await office(t)
  await helper.place(helper.hosts.first, 1)
  const { organization, own } = await office(t)
  const person = `ada-${newId().slice(-8)}@reader.example`
  t.is((await send(organization, { to: person })).status, 403)
  t.is((await send(helper.organization, { to: person, from: own })).status, 403)
  const sound = await api.organization()
  t.is((await send(sound, { to: person })).status, 200)
  t.is((await mailTo(person)).returnsTo, `send.${sound.domain}`)
  const foreign = await api.request('PATCH', `/api/v2/domains/${helper.hosts.first}`, {
    token: sound.token,
    body: { fallbackPriority: 1 },
  })
  t.is(foreign.status, 404)
  for (const fallbackPriority of [-1, 1.5, 'first']) {
    const answer = await api.request('PATCH', `/api/v2/domains/${sound.domain}`, {
      token: sound.token,
      body: { fallbackPriority },
    })
    t.is(answer.status, 422)
  }
  const token = await sound.tokenWith(['emails'])
  const body = { fallbackPriority: 1 }
  t.is((await api.request('PATCH', `/api/v2/domains/${sound.domain}`, { token, body })).status, 403)
})

test('tests and campaigns come from the domain that stands in, who confirms is told, and explain_delivery says why', async (t) => {
  const { organization, hosts, place, own } = await office(t)
  const reader = `reader-${newId().slice(-8)}@reader.example`
  await organization.data('add_subscriber', { email: reader })
  const { campaign } = await organization.data('create_campaign', {
    subject: 'News',
    contentType: 'MARKDOWN',
    content: '[Leave]({{unsubscribeUrl}})',
  })
  const campaignId = campaign.id
  t.is((await organization.call('schedule_campaign', { campaignId })).body.code, 'WRONG_STATE')
  await place(hosts.first, 0)
  const asked = await organization.call('schedule_campaign', { campaignId })
  t.is(asked.status, 428)
  const words = `It comes from hello@${hosts.first} in place of ${own}, whose domain is not VERIFIED`
  t.true(asked.body.summary.warnings[0].startsWith(words))
  const check = `check-${newId().slice(-8)}@reader.example`
  await organization.data('send_test_email', { campaignId, emails: [check] })
  t.is((await mailTo(check)).replyTo, own)
  t.is((await organization.confirmed('schedule_campaign', { campaignId })).status, 200)
  t.like(await mailTo(reader), { replyTo: own, returnsTo: `send.${hosts.first}` })
  const explanation = await organization.data('explain_delivery', { email: reader, campaignId })
  const reason = explanation.reasons.find(({ code }: { code: string }) => code === 'DOMAIN_STOOD_IN')
  t.true(reason.message.startsWith(words))
  t.true(reason.message.endsWith(`its DKIM signature is of ${hosts.first}.`))
  for (const sender of [{ senderId: organization.senderId }, {}]) {
    const email = { email: reader, subject: 'Hi', content: 'Hello', ...sender }
    const { summary } = (await organization.call('send_email', email)).body
    t.true(summary.warnings[0]?.startsWith(words))
    t.true(summary.effects[0].endsWith(`from hello@${hosts.first} at once.`))
  }
})

test('an email of a workflow comes from where it may at that moment, and fails where nothing stands in', async (t) => {
  const { organization, hosts, place, own } = await office(t)
  await place(hosts.first, 1)
  const { workflow } = await organization.data('create_workflow', { name: 'Welcome' })
  const definition = {
    steps: [
      { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } },
      {
        id: 'hello',
        type: 'EMAIL',
        config: { subject: 'Hi', content: 'Hello', contentType: 'MARKDOWN', transactional: true },
      },
    ],
    edges: [{ from: 'start', to: 'hello' }],
  }
  const { updatedAt } = (await organization.data('get_workflow', { workflowId: workflow.id })).workflow
  await organization.data('configure_workflow_draft', {
    workflowId: workflow.id,
    ...definition,
    expectedUpdatedAt: updatedAt,
  })
  t.is((await organization.confirmed('publish_workflow', { workflowId: workflow.id })).status, 200)
  const people = ['one', 'two'].map((name) => `${name}-${newId().slice(-8)}@reader.example`)
  for (const email of people) await organization.data('add_subscriber', { email })
  const [one = '', two = ''] = people
  await organization.data('add_subscriber_to_workflow', { workflowId: workflow.id, email: one })
  t.like(await mailTo(one), { replyTo: own, returnsTo: `send.${hosts.first}` })
  await place(hosts.first, null)
  await organization.data('add_subscriber_to_workflow', { workflowId: workflow.id, email: two })
  const run = await eventually('the run to fail', async () => {
    const { runs } = await organization.data('get_subscriber_workflow_runs', { email: two })
    return runs[0]?.status === 'FAILED' && runs[0]
  })
  t.truthy(run)
})
