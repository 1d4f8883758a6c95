import { sql } from 'kysely'

import type { TimedTrigger } from '../../../../schema/automation-triggers.ts'
import type { Fired } from '../../../../temporal/contract.ts'
import { Failure } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { execute, row } from '../../../database.ts'
import { loadVersion } from '../definition/versions.ts'
import { beginIntake } from '../entry/intake.ts'
import { countDue, type Timed, timedTrigger, zoneOf } from './due-people.ts'
import { CATCH_UP_MS, lastTime, nextLook, type Stretch } from './trigger-times.ts'

// A stretch must be shorter than a year, so that it contains each yearly date at most once.
const LONGEST_LOOK_MS = 300 * 86_400_000

const IDLE: Fired = { state: 'IDLE', until: null, expected: 0, intake: null, nextMs: null }

/**
 * Begins an intake of everybody who has become due by a timed trigger since the last look. `looked_until` moves on in
 * the same transaction under the lock of its row, so a firing that is repeated, early or late takes nobody twice and
 * misses nobody.
 */
export async function fire(call: Call, automationId: string, stepId: string): Promise<Fired> {
  const { em, organization } = call
  const automation = await row<{ name: string; status: string; versionId: string | null }>(
    em,
    sql`select name, status, published_version_id as "versionId" from automation
      where organization_id = ${organization.id} and id = ${automationId} for share`,
  )
  const looked = await row<{ until: string; now: string }>(
    em,
    sql`select looked_until as until, clock_timestamp()::timestamptz(3) as now from automation_schedule
      where organization_id = ${organization.id} and automation_id = ${automationId} and step_id = ${stepId} for update`,
  )
  if (!looked || automation?.status !== 'ACTIVE' || automation.versionId === null) return IDLE
  const timed = timedTrigger(await loadVersion(em, organization.id, automation.versionId), stepId)
  if (!timed) return IDLE
  const now = Date.parse(looked.now)
  const zone = zoneOf(timed.version, call)
  const next = nextLook(timed.config, zone, now)
  await execute(
    em,
    sql`update automation_schedule set looked_until = greatest(looked_until, to_timestamp(${now / 1000}::float8)),
        next_at = to_timestamp(${next / 1000}::float8)
      where organization_id = ${organization.id} and automation_id = ${automationId} and step_id = ${stepId}`,
  )
  const stretch = dueStretch(timed.config, zone, { from: Date.parse(looked.until), to: now })
  const fired = { ...IDLE, nextMs: next - now, until: new Date(now).toISOString() }
  const due = stretch ? await countExpected(call, timed, stretch) : 0
  if (!stretch || due === 0) return { ...fired, state: 'NOTHING' }
  const expected = due ?? 0
  const intake = await beginIntake(call, {
    automation: { id: automationId, name: automation.name },
    filters: [],
    cause: { type: timed.config.type },
    most: null,
    expected,
    due: { stepId, ...stretch },
  })
  if (intake === null) return { ...fired, state: 'NOTHING' }
  return { ...fired, state: 'FIRED', expected, intake }
}

/**
 * Returns the stretch whose people a look takes, or null if there is none. A schedule fires once, for its last time, if
 * that is less than a day ago. Dates and inactivity take the whole stretch, at most `LONGEST_LOOK_MS`: dates that are
 * older than a day are refused one by one (`nextDue`), and inactivity lasts, so nobody is too late.
 */
export function dueStretch(config: TimedTrigger, zone: string, { from, to }: Stretch): Stretch | null {
  if (config.type !== 'SCHEDULE') {
    return from < to ? { from: Math.max(from, to - LONGEST_LOOK_MS), to } : null
  }
  const since = Math.max(from, to - CATCH_UP_MS)
  const last = lastTime(config.cron, zone, { from: since, to })
  return last === null ? null : { from: since, to: last }
}

/**
 * Counts the people who are due. Returns null if a filter names something deleted; the intake then fails and says so.
 */
async function countExpected(call: Call, timed: Timed, stretch: Stretch): Promise<number | null> {
  try {
    return await countDue(call, timed, stretch)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return null
  }
}
