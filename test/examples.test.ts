import { readdirSync, readFileSync } from 'node:fs'

import test from 'ava'

import type { Simulation } from '../schema/simulation.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

type Example = { name: string; settings: Record<string, unknown>; steps: unknown[]; edges: unknown[] }

const FOLDER = new URL('../examples/', import.meta.url)

let api: TestApi
let organization: TestOrganization

test.before(async () => {
  api = await startApi()
  organization = await api.organization()
  // The date fields that two of the examples use.
  const fields = { birthday: '1990-03-28', webinar_at: '2027-03-28T18:00:00+02:00' }
  await organization.data('add_subscriber', { email: 'dates@reader.example', fields })
})
test.after.always(() => api?.close())

function read(file: string): Example {
  return JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'))
}

/** Simulates an example in a time zone for a person from a point in time. */
async function walked(
  file: string,
  timezone: string,
  from: string,
  sample: object = {},
): Promise<Simulation> {
  const { settings, steps, edges } = read(file)
  const definition = { steps, edges, settings: { ...settings, timezone } }
  return await organization.data('simulate_workflow', { definition, sample: { ...sample, timezone }, from })
}

/** Returns when each email is sent and each wait ends on a way, in the person's time zone, by step id. */
function dates({ ways }: Simulation, number = 1): Record<string, string> {
  const way = ways.find((each) => each.number === number)
  return Object.fromEntries(
    (way?.timeline ?? []).flatMap(({ stepId, type, localAt, localUntil }) =>
      type === 'EMAIL' || localUntil !== null ? [[stepId, localUntil ?? localAt]] : [],
    ),
  )
}

const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.json') && 'steps' in read(name))

for (const file of FILES) {
  test(`${file} can be saved, simulated and published as it stands`, async (t) => {
    const { name, ...graph } = read(file)
    const { workflow } = await organization.data('create_workflow', { name })
    const { updatedAt } = workflow
    const change = { workflowId: workflow.id, expectedUpdatedAt: updatedAt, ...graph }
    await organization.data('configure_workflow_draft', change)
    const published = await organization.confirmed('publish_workflow', {
      workflowId: workflow.id,
      activate: false,
    })
    t.is(published.status, 200, JSON.stringify(published.body))
    const sample = { customFields: { birthday: '1990-03-28', webinar_at: '2027-03-28T16:00:00Z' } }
    const answer: Simulation = await organization.data('simulate_workflow', {
      workflowId: workflow.id,
      sample,
      from: '2027-03-01T09:00:00Z',
    })
    t.deepEqual(answer.deadEnds, [])
    t.true(answer.ways.every(({ end }) => end.status !== 'FAILED' && end.status !== 'CUT'))
    const reached = new Set(answer.ways.flatMap(({ timeline }) => timeline.map(({ stepId }) => stepId)))
    t.is(reached.size, graph.steps.length)
  })
}

/** Both daylight saving changes in two zones: a date a few days before, and the offsets before and after. */
const CHANGES = [
  { zone: 'Europe/Paris', eve: '2027-03-25', offsets: ['+01:00', '+02:00'] },
  { zone: 'Europe/Paris', eve: '2027-10-28', offsets: ['+02:00', '+01:00'] },
  { zone: 'America/New_York', eve: '2027-03-11', offsets: ['-05:00', '-04:00'] },
  { zone: 'America/New_York', eve: '2027-11-04', offsets: ['-04:00', '-05:00'] },
] as const

/** Returns the date `days` days after another. */
function day(eve: string, days: number): string {
  return new Date(Date.parse(eve) + days * 86_400_000).toISOString().slice(0, 10)
}

for (const { zone, eve, offsets } of CHANGES) {
  const [before, after] = offsets
  // Thursday noon; the clocks change on the following Sunday.
  const noon = `${eve}T12:00:00${before}`
  const on = (days: number, time: string) => `${day(eve, days)}T${time}:00${days < 3 ? before : after}`

  test(`onboarding keeps its mornings in ${zone} from ${eve} on`, async (t) => {
    const answer = await walked('onboarding.json', zone, noon)
    t.deepEqual(dates(answer), {
      welcome: on(0, '12:00'),
      'first-project': on(2, '12:00'),
      // Saturday: the email waits for Monday. Three days later is Thursday.
      help: on(4, '09:00'),
      'some-days': on(7, '09:00'),
      team: on(7, '09:00'),
      'a-week': on(14, '09:00'),
      ask: on(14, '09:00'),
    })
    const eager = answer.ways.find(({ timeline }) => timeline[0]?.assumed?.includes('PROJECT_CREATED'))
    t.deepEqual(
      eager?.timeline.map(({ stepId }) => stepId),
      ['first-project', 'started', 'some-days', 'team', 'a-week', 'active', 'ask'],
    )
  })

  test(`abandoned cart wakes nobody and writes at ten in ${zone} from ${eve} on`, async (t) => {
    // Late on Saturday evening; the clocks change that night.
    const answer = await walked('abandoned-cart.json', zone, `${day(eve, 2)}T22:30:00${before}`, {
      entry: { metadata: { items: 2, total: 80, cartId: 'c1' } },
    })
    t.deepEqual(dates(answer), {
      'an-hour': on(2, '23:30'),
      daytime: on(3, '08:00'),
      reminder: on(3, '08:00'),
      'next-day': on(4, '10:00'),
      discount: on(4, '10:00'),
      'two-days': on(6, '10:00'),
    })
    t.is(answer.ways[0]?.timeline.at(-1)?.stepId, 'lost')
  })

  test(`webinar reminder counts back from the webinar in ${zone} from ${eve} on`, async (t) => {
    const customFields = { webinar_at: `${day(eve, 3)}T18:00:00${after}` }
    const early = await walked('webinar-reminder.json', zone, noon, { customFields })
    t.deepEqual(dates(early), {
      confirmation: on(0, '12:00'),
      'day-before': on(2, '18:00'),
      tomorrow: on(2, '18:00'),
      'hour-before': on(3, '17:00'),
      soon: on(3, '17:00'),
      'day-after': on(4, '18:00'),
      recording: on(4, '18:00'),
    })
    const late = await walked('webinar-reminder.json', zone, `${day(eve, 3)}T12:00:00${after}`, {
      customFields,
    })
    t.deepEqual(Object.keys(dates(late)), ['confirmation', 'hour-before', 'soon', 'day-after', 'recording'])
    const came = await walked('webinar-reminder.json', zone, noon, {
      customFields,
      tags: ['Webinar-Attended'],
    })
    t.is(came.ways[0]?.timeline.at(-2)?.stepId, 'thanks')
  })

  test(`birthday keeps its morning in ${zone} from ${eve} on`, async (t) => {
    const answer = await walked('birthday.json', zone, `${eve}T09:00:00${before}`, { name: 'Ann' })
    t.deepEqual(dates(answer), {
      wishes: on(0, '09:00'),
      'some-days': on(5, '09:00'),
      reminder: on(5, '09:00'),
    })
    t.is(answer.ways[0]?.timeline[1]?.email?.subject, 'Happy birthday, Ann')
  })

  test(`win-back writes in its hours and lets go in ${zone} from ${eve} on`, async (t) => {
    const answer = await walked('win-back.json', zone, noon)
    t.deepEqual(
      answer.entries.map(({ enters, reason }) => [enters, reason]),
      [[false, 'FILTERS']],
    )
    t.deepEqual(dates(answer), {
      'miss-you': on(5, '09:00'),
      click: on(12, '09:00'),
      stay: on(12, '09:00'),
      answer: on(26, '09:00'),
    })
    t.like(answer.ways[0]?.end, { status: 'CANCELED', exitReason: 'UNSUBSCRIBED' })
    const back = answer.ways.filter(({ timeline }) => timeline.at(-1)?.stepId === 'back')
    t.is(back.length, 2)
  })
}
