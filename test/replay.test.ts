import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { DefaultLogger, Runtime } from '@temporalio/worker'
import { DeterminismViolationError } from '@temporalio/workflow'
import test from 'ava'

import { WAIT_MODES } from '../schema/automation-steps.ts'
import { STEP_TYPES } from '../schema/automation.ts'
import * as workflows from '../temporal/workflows/index.ts'
import {
  editionOf,
  hashSources,
  HISTORIES,
  type Recorded,
  readHistories,
  replay,
  SOURCES,
} from './helpers/histories.ts'
import { deedsIn, deedsOfWorkflows, stepsIn } from './helpers/history-deeds.ts'

const RECORD =
  'make sure that the old histories replay (npm test -- test/replay.test.ts), then record again with npm run record-histories'
const LACKING = 'no history shows this: add a scene to scripts/scenes/ and npm run record-histories'

test.before(() => {
  // The SDK logs every worker, and also the violation that is expected here.
  const telemetryOptions = { logging: { filter: 'OFF', forward: {} } }
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions })
})

test.serial('runs that began with earlier workflows go on with these', async (t) => {
  const histories = await readHistories()
  t.true(histories.size >= 8)
  t.deepEqual(await replay(histories), new Map())
})

test('whatever a workflow begins, hears, does and continues was recorded', async (t) => {
  const [declared, recorded] = [await deedsOfWorkflows(), deedsIn(await newestHistories())]
  for (const name of Object.keys(workflows)) t.true(declared.includes(`${name} begins`), name)
  t.deepEqual(
    declared.filter((deed) => !recorded.has(deed)),
    [],
    LACKING,
  )
})

test('every kind of step, and every mode of a wait, was recorded', async (t) => {
  const steps = [...stepsIn(await newestHistories())]
  const kinds = new Set(steps.map((words) => /\((.*)\)$/.exec(words)?.[1]))
  t.deepEqual(
    STEP_TYPES.filter((type) => !kinds.has(type)),
    [],
    LACKING,
  )
  t.deepEqual(
    WAIT_MODES.filter((mode) => !steps.includes(`${mode} (WAIT_UNTIL)`)),
    [],
    LACKING,
  )
})

test.serial('no workflow file changed after its histories were recorded', async (t) => {
  t.deepEqual(await hashSources(), await readSources(), `workflow files changed: ${RECORD}`)
})

test.serial('a run that did something else than the workflow would do is found out', async (t) => {
  const [waits] = [...(await readHistories())].filter(([file]) => file.startsWith('waits.'))
  if (!waits) throw new Error('no history of waits was recorded')
  const [file, { workflowId, events }] = waits
  const failed = await replay(new Map([[file, { workflowId, events: withoutTimers(events) }]]))
  t.true(failed.get(file) instanceof DeterminismViolationError)
})

test('histories hold nothing personal and nothing of the machine they were recorded on', async (t) => {
  for (const [file, { workflowId, events }] of await readHistories()) {
    t.regex(
      workflowId,
      /^((run\/wf_[^/]+\/sub_[^/]+|campaign\/cmp_[^/]+)\/\d+|domain\/dom_[^/]+|intake\/wf_[^/]+\/[0-9a-f-]+|import\/imp_[^/]+|segments\/refresh\/histories|trigger\/histories\/wf_[^/]+\/start)$/,
      file,
    )
    const text = readable(events)
    const identities = events.flatMap((event) => [...JSON.stringify(event).matchAll(/"identity":"([^"]*)"/g)])
    t.deepEqual(new Set(identities.map(([, identity]) => identity)), new Set(['worker']), file)
    t.notRegex(text, /[^\s"/]@[^\s"/]+\.[a-z]{2}/i, file)
    for (const secret of ['file://', 'Reader', '.ts:', 'node_modules']) {
      t.false(text.includes(secret), `${file} holds ${secret}`)
    }
    t.true(text.length < 100_000, file)
  }
})

/** Returns the histories of the last recording. */
async function newestHistories(): Promise<Recorded[]> {
  const edition = editionOf(await readSources())
  const newest = [...(await readHistories())].filter(([file]) => file.endsWith(`.${edition}.json`))
  return newest.map(([, history]) => history)
}

/** Returns the hashes of the workflow files with which they were recorded. */
async function readSources(): Promise<Record<string, string>> {
  // Written by scripts/record-histories.ts.
  return JSON.parse(await readFile(join(HISTORIES, SOURCES), 'utf8')) as Record<string, string>
}

/** Returns a history in which the run never waited. The event ids remain consecutive. */
function withoutTimers(events: Recorded['events']): Recorded['events'] {
  return events.map((event) => {
    if (event['eventType'] !== 'EVENT_TYPE_TIMER_STARTED') return event
    const { eventId, eventTime, taskId } = event
    return {
      eventId,
      eventTime,
      taskId,
      eventType: 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED',
      activityTaskScheduledEventAttributes: { activityId: '1', activityType: { name: 'somethingElse' } },
    }
  })
}

/** Returns the text of a history with decoded payloads. */
function readable(value: unknown): string {
  return JSON.stringify(value, (key, member: unknown) =>
    key === 'data' && typeof member === 'string' ? Buffer.from(member, 'base64').toString() : member,
  )
}
