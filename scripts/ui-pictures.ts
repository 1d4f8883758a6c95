import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { sql } from 'kysely'

import { execute } from '../src/database.ts'
import { startLanes } from '../src/delivery/lanes.ts'
import { campaignWorkflowId, runWorkflowId } from '../temporal/contract.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { QUICK } from '../test/helpers/mailroom.ts'
import { startSmtpSink } from '../test/helpers/smtp-sink.ts'
import { startWebServer } from '../test/helpers/web-server.ts'
import { publishWorkflow } from '../test/helpers/workflow.ts'
import { startEngine } from '../worker/workers.ts'
import { openBrowser, type Page } from './browser.ts'
import { freePort } from './services/ports.ts'
import { startRunServices } from './services/run-services.ts'

/**
 * `npm run ui-pictures`: takes the pictures of docs/operations.md in the Web UI of a real Temporal server that runs a
 * few automations and a campaign. Needs Chromium (`CHROMIUM`, or `chromium` on the PATH).
 */
const IMAGES = join(import.meta.dirname, '..', 'docs', 'images')
const RECIPIENTS = 3_000
/** Long timeouts, because the machine may be busy. */
const PATIENCE = { withinMs: 180_000, everyMs: 100 }
/** Wide enough for the columns of lists, then scaled down by a quarter to fit into a document. */
const WIDTH = 1_500
const HEIGHT = 1_000
const SCALE = 0.75
/** The columns to show, as chosen under "Configure columns". */
const COLUMNS = ['Status', 'Workflow ID', 'Step', 'RunState', 'NextAt']
const START = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }

await main()
process.exit()

async function main(): Promise<void> {
  const uiPort = await freePort('127.0.0.1')
  const services = await startRunServices('scripts/ui-pictures.ts', { durable: false, uiPort })
  Object.assign(process.env, services.environment)
  delete process.env['DATABASE_URL']
  const browser = openBrowser()
  try {
    const ui = `http://127.0.0.1:${uiPort}`
    const shop = await startWebServer({ '/hooks': { status: 503, body: 'closed' } })
    const api = await startApi({
      TEMPORAL_TASK_QUEUE: 'postloom',
      TEMPORAL_UI_URL: ui,
      ...shop.allow,
      ...(await relay()),
    })
    const engine = await startEngine(api.services)
    const lanes = await startLanes(api.services, { workerName: 'worker', lane: { ...QUICK, connections: 4 } })
    mkdirSync(IMAGES, { recursive: true })
    const page = await browser.newPage()
    await page.resize(WIDTH, HEIGHT)
    await takeAll(api, page, ui, await play(api, shop.url))
    await lanes.stop()
    await engine.stop()
    await api.close()
  } finally {
    await browser.close()
    await services.stop()
  }
}

/** Starts a slow relay, so that a campaign is still being sent when the picture is taken. */
async function relay(): Promise<{ RELAY_URL: string }> {
  const sink = await startSmtpSink(
    { onMessage: () => ({ afterMs: 100, reply: 'accept' }) },
    { keepRaw: false },
  )
  return { RELAY_URL: sink.url }
}

type Scene = { welcome: string; sync: string; ann: string; failing: string; campaign: string }

/** Creates an organization with runs in various states, and a campaign that is being sent. */
async function play(api: TestApi, shop: string): Promise<Scene> {
  const organization = await api.organization()
  const welcome = await publishWelcome(organization)
  const sync = await publishSync(organization, shop)
  const people = await addPeople(organization)
  await enterAndWait(organization, welcome, people)
  const [ann = '', ben = ''] = people
  await enterAndFail(organization, sync, [ann, ben])
  return { welcome, sync, ann, failing: ben, campaign: await startCampaign(api, organization) }
}

async function publishWelcome(organization: TestOrganization): Promise<string> {
  const email = (id: string) => ({
    id,
    type: 'EMAIL',
    config: { subject: 'Welcome', content: 'Hello {{name}}', contentType: 'MARKDOWN' },
  })
  const wait = (id: string, amount: number) => ({ id, type: 'WAIT', config: { amount, unit: 'DAYS' } })
  const welcomed = { id: 'welcomed', type: 'ADD_TAG', config: { tagNames: ['Welcomed'] } }
  const steps = [START, email('hello'), wait('three-days', 3), email('tips'), wait('a-week', 7), welcomed]
  return await publishWorkflow(organization, steps, { name: 'Welcome series' })
}

/** Publishes a workflow whose last step asks the shop. */
async function publishSync(organization: TestOrganization, shop: string): Promise<string> {
  const seen = { id: 'seen', type: 'ADD_TAG', config: { tagNames: ['Seen'] } }
  const config = { url: `${shop}/hooks`, method: 'POST', retries: 1 }
  const steps = [START, seen, { id: 'tell-shop', type: 'WEBHOOK', config }]
  return await publishWorkflow(organization, steps, { name: 'Tell the shop' })
}

async function addPeople(organization: TestOrganization): Promise<string[]> {
  return await Promise.all(
    Array.from({ length: 9 }, async (_, number) => {
      const person = { email: `reader-${number}@reader.example`, name: `Reader ${number}` }
      return (await organization.data('add_subscriber', person)).subscriber.id as string
    }),
  )
}

async function enter(organization: TestOrganization, workflowId: string, people: readonly string[]) {
  for (const subscriberId of people) {
    await organization.data('add_subscriber_to_workflow', { workflowId, subscriberId })
  }
}

/** Lets people into the welcome series, and four of them on to its second wait. */
async function enterAndWait(
  organization: TestOrganization,
  workflowId: string,
  people: readonly string[],
): Promise<void> {
  await enter(organization, workflowId, people)
  await allWait(organization, workflowId, people, 'three-days')
  const ahead = people.slice(0, 4)
  for (const subscriberId of ahead) {
    const waiting = { workflowId, subscriberId, expectedStepId: 'three-days' }
    await organization.data('fast_forward_workflow_subscriber', waiting)
  }
  await allWait(organization, workflowId, ahead, 'a-week')
}

/** Lets people into a workflow one after the other, and waits until the run of the last one has failed. */
async function enterAndFail(
  organization: TestOrganization,
  workflowId: string,
  people: readonly string[],
): Promise<void> {
  await enter(organization, workflowId, people)
  const asked = { subscriberId: people.at(-1), workflowId }
  await eventually(
    'the failure',
    async () => {
      const { runs } = await organization.data('get_subscriber_workflow_runs', asked)
      return runs[0]?.status === 'FAILED'
    },
    PATIENCE,
  )
}

/** Starts a campaign to many people, and waits until some of its email is sent. Returns its id. */
async function startCampaign(api: TestApi, organization: TestOrganization): Promise<string> {
  await execute(
    api.services.orm.em.fork(),
    sql`insert into subscriber (id, organization_id, email, status)
      select new_id(), ${organization.id}, 'many-' || n || '@reader.example', 'SUBSCRIBED'
      from generate_series(1, ${RECIPIENTS}::int) n`,
  )
  const { campaign } = await organization.data('create_campaign', {
    subject: 'The news of this month',
    contentType: 'MARKDOWN',
    content: 'Hi {{name}}, [leave]({{unsubscribeUrl}}).',
  })
  const answer = await organization.confirmed('schedule_campaign', { campaignId: campaign.id })
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
  await eventually(
    'some email',
    async () => {
      const { progress } = await organization.data('get_campaign_progress', { campaignId: campaign.id })
      return progress.sent > RECIPIENTS / 20
    },
    PATIENCE,
  )
  return campaign.id
}

async function allWait(
  organization: TestOrganization,
  workflowId: string,
  people: readonly string[],
  stepId: string,
): Promise<void> {
  for (const subscriberId of people) {
    await eventually(
      `somebody in ${stepId}`,
      async () => {
        const { runs } = await organization.data('get_subscriber_workflow_runs', { subscriberId, workflowId })
        return runs[0]?.currentStep?.id === stepId && runs[0].status === 'WAITING'
      },
      PATIENCE,
    )
  }
}

async function takeAll(api: TestApi, page: Page, ui: string, scene: Scene): Promise<void> {
  const base = `${ui}/namespaces/default/workflows`
  await show(page, base, has(scene.welcome))
  const columns = Object.fromEntries([['default', COLUMNS.map((label) => ({ label }))]])
  await page.evaluate(
    `localStorage.setItem('namespace-workflow-table-columns', ${JSON.stringify(JSON.stringify(columns))})`,
  )
  const list = (query: string) => `${base}?query=${encodeURIComponent(query)}`
  const soon = new Date(Date.now() + 4 * 86_400_000).toISOString()
  const client = await api.services.temporal.client()
  const pageOf = async (workflowId: string) => {
    const { runId } = await client.workflow.getHandle(workflowId).describe()
    return `${base}/${encodeURIComponent(workflowId)}/${runId}`
  }
  const waiting = await pageOf(runWorkflowId(scene.welcome, scene.ann, 1))
  const failed = await pageOf(runWorkflowId(scene.sync, scene.failing, 1))
  const send = await pageOf(campaignWorkflowId(scene.campaign, 1))
  const ofAutomation = `AutomationId="${scene.welcome}" AND RunState="WAITING" AND Step="three-days"`
  const pictures: [string, string, string, number][] = [
    ['campaign-details', `${send}/user-metadata`, has('DELIVERING'), 620],
    ['campaign-send', `${send}/history`, has('deliverCampaign'), 900],
    ['runs-of-automation', list(ofAutomation), `${has('three-days')} && ${has('NextAt')}`, 620],
    ['runs-of-subscriber', list(`SubscriberId="${scene.ann}"`), has('tell-shop'), 460],
    ['runs-next', list(`NextAt < "${soon}" AND ExecutionStatus="Running"`), has('three-days'), 620],
    ['run-details', `${waiting}/user-metadata`, has('last steps'), 700],
    ['run-history', `${waiting}/history`, has('a-week: waits until'), 900],
    ['run-failed', `${failed}/history`, has('retry_workflow_run'), 800],
  ]
  for (const [name, url, condition, height] of pictures) {
    await show(page, url, condition)
    writeFileSync(join(IMAGES, `${name}.png`), await page.picture({ width: WIDTH, height, scale: SCALE }))
    console.log(`docs/images/${name}.png`)
  }
}

/** Opens a URL and waits until `condition`, a JavaScript expression, is true in the page. */
async function show(page: Page, url: string, condition: string): Promise<void> {
  await page.open(url)
  await eventually(`${url} to show ${condition}`, () => page.evaluate(`Boolean(${condition})`), PATIENCE)
}

function has(text: string): string {
  // The Web UI shows details in iframes.
  const frames =
    "[...document.querySelectorAll('iframe')].map((each) => each.srcdoc + decodeURIComponent(each.src))"
  return `(document.body.innerText + ${frames}.join()).includes(${JSON.stringify(text)})`
}
