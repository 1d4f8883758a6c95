import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { DefaultLogger, Runtime } from '@temporalio/worker'
import { DeterminismViolationError } from '@temporalio/workflow'
import test from 'ava'

import * as workflows from '../temporal/workflows/index.ts'
import { hashSources, HISTORIES, type Recorded, readHistories, replay, SOURCES } from './helpers/histories.ts'

const RECORD =
  'make sure that the old histories replay (npm test -- test/replay.test.ts), then record again with npm run record-histories'

test.before(() => {
  // The SDK tells of every worker, and of the violation that is meant.
  const telemetryOptions = { logging: { filter: 'OFF', forward: {} } }
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions })
})

test.serial('runs that began with earlier workflows go on with these', async (t) => {
  const histories = await readHistories()
  t.true(histories.size >= 8)
  t.deepEqual(await replay(histories), new Map())
})

test.serial(
  'every workflow has a history of its own, and those that continue as new both halves of it',
  async (t) => {
    const types = new Set<string>()
    const continued = new Set<string>()
    for (const { events } of (await readHistories()).values()) {
      const begun = Object(events[0]?.['workflowExecutionStartedEventAttributes'])
      types.add(begun.workflowType.name)
      if (begun.continuedExecutionRunId) continued.add(begun.workflowType.name)
    }
    const names = Object.keys(workflows)
    t.deepEqual([...types].toSorted(), names.toSorted())
    t.deepEqual([...continued].toSorted(), [
      'AutomationIntake',
      'AutomationRun',
      'CampaignSend',
      'DomainVerification',
    ])
  },
)

test.serial('no workflow file changed after its histories were recorded', async (t) => {
  const recorded: unknown = JSON.parse(await readFile(join(HISTORIES, SOURCES), 'utf8'))
  t.deepEqual(await hashSources(), recorded, `workflow files changed: ${RECORD}`)
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

/** A history in which the run never waited; the numbers of events stay without gaps. */
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

/** The text of a history with its payloads decoded. */
function readable(value: unknown): string {
  return JSON.stringify(value, (key, member: unknown) =>
    key === 'data' && typeof member === 'string' ? Buffer.from(member, 'base64').toString() : member,
  )
}
