import { sql } from 'kysely'

import type { RUN_WAITS, Run, RunStory, RunVisit } from '../../../../schema/run.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { row, rows } from '../../../database.ts'
import { decodeId, encodeId } from '../../../ids.ts'
import { timestamp, timestampOrNull } from '../../text.ts'
import { readTimeline } from './run-records.ts'
import type { WaitKind } from './run-state.ts'

type Waiting = NonNullable<RunStory['waiting']>
type WaitRow = {
  waitKind: WaitKind | null
  wakeAt: string | null
  queuedAt: string | null
  queueExpiresAt: string | null
}

/** Reads a run with its steps, emails, decisions not to act and conversions, and why it waits. Throws `NOT_FOUND`. */
export async function readStory(call: Call, runId: string): Promise<RunStory> {
  const { run, timeline } = await readTimeline(call, runId)
  const id = decodeId('run', run.id)
  return {
    run,
    timeline,
    waiting: run.endedAt === null ? await readWaiting(call, id, run, timeline) : null,
    emails: await readEmails(call, id),
    decisions: await readDecisions(call, id, run),
    conversions: await readConversions(call, id),
  }
}

const WORDS: Readonly<Record<WaitKind, string>> = {
  TIME: 'It waits for its time.',
  LIMIT: 'It waits for its time, which lies beyond its time-out.',
  EVENT: 'It waits for an event.',
  CONDITION: 'It waits for its filters to hold.',
  GOAL: 'It waits for its goal.',
  MESSAGE: 'It waits for the outcome of its email.',
  WEBHOOK: 'It waits for what comes of its request.',
}

async function readWaiting(
  { em, organization }: Call,
  id: string,
  { held }: Run,
  timeline: readonly RunVisit[],
): Promise<Waiting | null> {
  const found = await row<WaitRow>(
    em,
    sql`select wait_kind as "waitKind", wake_at as "wakeAt", queued_at as "queuedAt",
        queue_expires_at as "queueExpiresAt"
      from automation_run where organization_id = ${organization.id} and id = ${id}`,
  )
  if (!found) return null
  const { waitKind, wakeAt, queuedAt, queueExpiresAt } = found
  const waits = (
    what: (typeof RUN_WAITS)[number],
    message: string,
    until: string | null = null,
  ): Waiting => ({
    for: what,
    until: timestampOrNull(until),
    message,
  })
  if (queuedAt !== null) return waits('GROUP', 'It waits for its turn in the group.', queueExpiresAt)
  if (held) return waits('PAUSED', 'It is due and held: the workflow is PAUSED.')
  if (waitKind === null) return waits('WORKER', 'It is due: a worker takes it next.')
  const isOwn = waitKind === 'MESSAGE' || waitKind === 'WEBHOOK'
  return waits(waitKind, waitWords(waitKind, timeline.at(-1)), isOwn ? null : wakeAt)
}

/** Describes a wait; `visit` is that of the step at which the run waits. */
function waitWords(waitKind: WaitKind, visit: RunVisit | undefined): string {
  const { eventType, goalId } = visit?.details ?? {}
  if (waitKind === 'EVENT' && typeof eventType === 'string') return `It waits for the event ${eventType}.`
  if (waitKind === 'GOAL' && typeof goalId === 'string') return `It waits for its goal ${goalId}.`
  return WORDS[waitKind]
}

async function readEmails({ em, organization }: Call, id: string): Promise<RunStory['emails']> {
  const found = await rows<RunStory['emails'][number]>(
    em,
    sql`select id, step_id as "stepId", visit, subject, status, reason, created_at as "createdAt", sent_at as "sentAt"
      from message where organization_id = ${organization.id} and run_id = ${id} order by id`,
  )
  return found.map((email) => ({
    ...email,
    id: encodeId('eml', email.id),
    createdAt: timestamp(email.createdAt),
    sentAt: timestampOrNull(email.sentAt),
  }))
}

async function readDecisions(
  { em, organization }: Call,
  id: string,
  { subscriberId, enteredAt }: Run,
): Promise<RunStory['decisions']> {
  const found = await rows<RunStory['decisions'][number]>(
    em,
    sql`select step_id as "stepId", action, reason, data, created_at as at from decision
      where organization_id = ${organization.id} and subscriber_id = ${decodeId('sub', subscriberId)}
        and id >= id_floor(${enteredAt}::timestamptz - interval '1 hour') and run_id = ${id} order by id`,
  )
  return found.map((decision) => ({ ...decision, at: timestamp(decision.at) }))
}

async function readConversions({ em, organization }: Call, id: string): Promise<RunStory['conversions']> {
  const found = await rows<RunStory['conversions'][number]>(
    em,
    sql`select goal_id as "goalId", value::float8 as value, currency, created_at as at from goal_conversion
      where organization_id = ${organization.id} and run_id = ${id} order by created_at, goal_id`,
  )
  return found.map((conversion) => ({ ...conversion, at: timestamp(conversion.at) }))
}
