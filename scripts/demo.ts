import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Client, createClient, type Import, type Mail, UnknownOutcome, visit } from './demo/client.ts'
import { DemoError, detail, step, until } from './demo/report.ts'
import { bringUp, type RunningService } from './demo/service.ts'
import { projectDirectory } from './services/layout.mjs'

/**
 * `npm run demo`: shows the main use over the public HTTP API. It publishes an automation, lets 200 subscribers enter,
 * reads the first email as one of them, follows its link, fast-forwards the wait, and shows the branch, the second
 * email and the timeline.
 */
type Series = {
  name: string
  settings: object
  steps: { id: string; type: string; config: object }[]
  edges: object[]
}
type Workflow = {
  id: string
  updatedAt: string
  draft: { steps: { id: string; config: { campaignId?: string } }[] }
}
type Step = { id: string; type: string; name: string | null }
type Run = {
  id: string
  status: string
  currentStep: Step | null
  exitReason: string | null
  temporalUrl: string | null
}
type Visit = { step: Step; result: string; port: string | null; startedAt: string; endedAt: string | null }
type Person = { email: string; id: string }
type Statistics = { emails: { stepId: string; sent: number }[] }
type Story = { client: Client; workflow: Workflow; since: number; people: number }

/** The subscriber in examples/subscribers.csv whom the demonstration follows. */
const HERO = 'ada.lovelace@example.com'
/** The steps of examples/welcome-series.json whose emails are read. */
const WELCOME = 'welcome'
const NEXT_CHAPTER = 'next-chapter'
/** The service attributes a link that is followed sooner than this after sending to a scanner. */
const MACHINE_WINDOW_MS = 2_000

const HELP = `npm run demo

Publishes the automation of examples/welcome-series.json over the HTTP API, lets the 200 people of
examples/subscribers.csv enter it, and follows one of them to the end. Starts the service unless it
runs already, and stops it only then. Can be repeated.`

if (process.argv.includes('--help')) {
  console.log(HELP)
  process.exit()
}
let service: RunningService | undefined
try {
  service = await step('The service runs', async () => {
    const result = await bringUp()
    return { result, said: `${result.addresses.baseUrl}${result.wasRunning ? ', it ran already' : ''}` }
  })
  await demonstrate(createClient(service.addresses), service)
} catch (error) {
  console.error(error instanceof DemoError ? `\n${error.message}` : error)
  process.exitCode = 1
} finally {
  await service?.stop()
}
process.exit()

async function demonstrate(client: Client, { addresses, wasRunning }: RunningService): Promise<void> {
  const mailboxUrl = addresses.mailbox.url
  if (!mailboxUrl)
    throw new DemoError('The demonstration reads the built-in mailbox, which production does not have.')
  const since = Date.now()
  const tag = `welcome ${new Date().toISOString().slice(0, 19).replace('T', ' ')}`
  const workflow = await publishSeries(client, tag)
  const file = readFileSync(join(projectDirectory, 'examples/subscribers.csv'))
  const { imported, updated } = await importPeople(client, file, tag)
  const story: Story = { client, workflow, since, people: imported + updated }
  const { subscriber: hero } = await client.call<{ subscriber: Person }>('get_subscriber', { email: HERO })
  const welcome = await readWelcome(story, hero)
  await followLink(story, hero, welcome)
  const runId = await fastForward(story, hero)
  const run = await seeTheEnd(story, hero, runId)
  await seeEverybody(story)
  console.log(
    wasRunning
      ? '\nEverything happened. See for yourself:'
      : '\nEverything happened. The service stops now; after npm start all of this is at',
  )
  detail(`Mailbox:  ${mailboxUrl}`)
  detail(`Temporal: ${run.temporalUrl ?? 'no Web UI is configured'}`)
}

/**
 * Publishes the example with a new tag as its trigger, so that the demonstration can run again: no subscriber has the
 * tag yet and no earlier workflow is triggered by it.
 */
async function publishSeries(client: Client, tag: string): Promise<Workflow> {
  const file = readFileSync(join(projectDirectory, 'examples/welcome-series.json'), 'utf8')
  const { name, ...graph } = JSON.parse(file) as Series // a file of this repository, which a test publishes too
  const steps = graph.steps.map((each) =>
    each.type === 'TRIGGER' ? { ...each, config: { ...each.config, tagNames: [tag] } } : each,
  )
  const created = await step('The workflow is created', async () => {
    const { workflow } = await client.call<{ workflow: Workflow }>('create_workflow', { name })
    return { result: workflow, said: workflow.id }
  })
  const workflow = await step('Its draft is configured', async () => {
    const input = { workflowId: created.id, expectedUpdatedAt: created.updatedAt, ...graph, steps }
    const { workflow: configured } = await client.call<{ workflow: Workflow }>(
      'configure_workflow_draft',
      input,
    )
    return { result: configured, said: `${configured.draft.steps.length} steps, ${graph.edges.length} edges` }
  })
  await step('It is published, with a confirmation code', async () => {
    const { confirmationCode, summary } = await client.challenge('publish_workflow', {
      workflowId: workflow.id,
    })
    const { version } = await client.call<{ version: { number: number } }>('publish_workflow', {
      workflowId: workflow.id,
      confirmationCode,
    })
    summary.effects.forEach(detail)
    summary.warnings.forEach((warning) => detail(`Warning: ${warning}`))
    return { result: undefined, said: `version ${version.number}` }
  })
  return workflow
}

async function importPeople(client: Client, file: Buffer, tag: string): Promise<Import> {
  return await step('A file of subscribers is imported, and they enter by its tag', async () => {
    const query = { tags: tag, status: 'SUBSCRIBED', triggerWorkflows: 'true' }
    const { id } = await client.upload(file, query)
    let shown = 0
    const done = await until('The end of the import', async () => {
      const now = await client.readImport(id)
      if (now.rows !== shown) detail(`${now.rows} of about ${Math.max(now.rows, now.expectedRows)} rows`)
      shown = now.rows
      return now.finishedAt === null ? undefined : now
    })
    if (done.status !== 'COMPLETED' || done.failed > 0) {
      throw new DemoError(
        `The import is ${done.status}, ${done.failed} rows were refused: ${done.error ?? ''}`,
      )
    }
    const people = `${done.imported} new people, ${done.updated} known`
    return { result: done, said: `${people}; we follow ${HERO}` }
  })
}

async function readWelcome(story: Story, hero: Person): Promise<Mail> {
  return await step('The first email is in the mailbox', async () => {
    const mail = await until('The arrival of the first email', () => mailOf(story, hero, WELCOME), 60_000)
    return { result: mail, said: `“${mail.Subject}”` }
  })
}

/**
 * Returns the email that a step sent to the subscriber, once it is in the mailbox. Those of an earlier demonstration,
 * which was stopped before it ended, may still arrive.
 */
async function mailOf({ client, workflow, since }: Story, hero: Person, stepId: string) {
  const campaignId = workflow.draft.steps.find(({ id }) => id === stepId)?.config.campaignId
  const { emails } = await client.call<{ emails: { id: string; campaignId: string | null }[] }>(
    'get_subscriber_emails',
    { email: hero.email },
  )
  const email = emails.find((each) => each.campaignId === campaignId)
  const mails = await client.mails(since, hero.email)
  return email && mails.find(({ MessageID }) => MessageID.startsWith(`${email.id}@`))
}

async function followLink({ client }: Story, hero: Person, mail: Mail): Promise<void> {
  await step('The reader opens it and follows the link', async () => {
    const html = await client.html(mail)
    const pixel = /<img src="([^"]+\/o\/[^"]+)"/.exec(html)?.[1]
    const link = /href="([^"]+\/c\/[^"]+)"/.exec(html)?.[1]
    if (!pixel || !link) throw new DemoError('The email has no counted link or no pixel.')
    const early = Date.parse(mail.Created) + MACHINE_WINDOW_MS * 1.25 - Date.now()
    if (early > 0) await sleep(early)
    await visit(plain(pixel))
    const { status, location } = await visit(plain(link))
    if (status < 300 || status > 399 || !location)
      throw new DemoError(`The link answered ${status} and led nowhere.`)
    await until('The click as an event of the subscriber', async () => {
      const input = { subscriberId: hero.id, eventType: 'EMAIL_CLICKED', limit: 1 }
      const { events } = await client.call<{ events: { createdAt: string }[] }>(
        'list_subscriber_events',
        input,
      )
      return events.find(({ createdAt }) => Date.parse(createdAt) >= Date.parse(mail.Created))
    })
    return { result: undefined, said: location }
  })
}

async function fastForward({ client, workflow }: Story, hero: Person): Promise<string> {
  const who = { workflowId: workflow.id, subscriberId: hero.id }
  const run = await step('The run waits', async () => {
    const waiting = await until('The wait of the run', async () => {
      const { runs } = await client.call<{ runs: (Run & { nextStepAt: string })[] }>(
        'get_subscriber_workflow_runs',
        who,
      )
      return runs.find(({ status, currentStep }) => status === 'WAITING' && currentStep?.id === 'pause')
    })
    return { result: waiting, said: `in “${waiting.currentStep?.name}” until ${waiting.nextStepAt}` }
  })
  await step('The three days are fast-forwarded', async () => {
    const input = { ...who, runId: run.id, expectedStepId: 'pause' }
    const moved = await until('The end of the wait', () => endWait(client, input))
    return { result: undefined, said: `from ${moved.fromStep.id} to ${moved.toStep?.id ?? 'the end'}` }
  })
  return run.id
}

type Moved = { fromStep: Step; toStep: Step | null }

/**
 * Ends the wait. On a busy machine the call may answer that the outcome is unknown; then the run's timeline shows it.
 * Returns undefined while the run has not moved.
 */
async function endWait(client: Client, input: { runId: string }): Promise<Moved | undefined> {
  try {
    return await client.call<Moved>('fast_forward_workflow_subscriber', input)
  } catch (error) {
    if (!(error instanceof UnknownOutcome)) throw error
    const { run, timeline } = await client.call<{ run: Run; timeline: Visit[] }>('get_workflow_run', {
      runId: input.runId,
    })
    const left = timeline.find(({ step: each, endedAt }) => each.id === 'pause' && endedAt !== null)
    return left && { fromStep: left.step, toStep: run.currentStep }
  }
}

async function seeTheEnd(story: Story, hero: Person, runId: string): Promise<Run> {
  const { client } = story
  const read = () => client.call<{ run: Run; timeline: Visit[] }>('get_workflow_run', { runId })
  const { run, timeline } = await step('The branch took the path of those who clicked', async () => {
    const ended = await until('The end of the run', async () => {
      const now = await read()
      return now.run.status === 'COMPLETED' || now.run.status === 'FAILED' ? now : undefined
    })
    const branch = ended.timeline.find((each) => each.step.type === 'BRANCH')
    if (branch?.port !== 'clicked')
      throw new DemoError(`The branch was left by ${branch?.port ?? 'no port'}.`)
    if (ended.run.status !== 'COMPLETED') throw new DemoError(`The run is ${ended.run.status}.`)
    return { result: ended, said: `port ${branch.port}` }
  })
  await step('The second email is in the mailbox', async () => {
    const mail = await until('The arrival of the second email', () => mailOf(story, hero, NEXT_CHAPTER))
    return { result: undefined, said: `“${mail.Subject}”` }
  })
  await step('The run is complete and its timeline tells it', async () => {
    for (const { step: each, result, port, startedAt } of timeline) {
      const left = port === null || port === 'next' ? '' : ` → ${port}`
      detail(`${startedAt.slice(11, 23)}  ${each.type.padEnd(10)} ${each.id.padEnd(14)} ${result}${left}`)
    }
    detail(`Temporal Web UI: ${run.temporalUrl ?? 'none is configured'}`)
    return { result: undefined, said: `${run.status} (${run.exitReason})` }
  })
  return run
}

async function seeEverybody({ client, workflow, since, people }: Story): Promise<void> {
  await step('Everybody got the welcome email', async () => {
    const recipients = await until(
      `The arrival of ${people} welcome emails`,
      async () => {
        const { statistics } = await client.call<{ statistics: Statistics }>('get_workflow', {
          workflowId: workflow.id,
        })
        const sent = statistics.emails.find(({ stepId }) => stepId === WELCOME)?.sent ?? 0
        if (sent < people) return undefined
        const mails = await client.mails(since)
        const unique = new Set(mails.flatMap(({ To }) => To.map(({ Address }) => Address)))
        return unique.size >= people ? unique : undefined
      },
      60_000,
    )
    return { result: undefined, said: `${recipients.size} of ${people}` }
  })
}

/** Decodes `&amp;` in a URL taken from an HTML attribute. */
function plain(address: string): string {
  return address.replaceAll('&amp;', '&')
}
