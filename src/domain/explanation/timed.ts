import { sql } from 'kysely'

import type { TriggerConfigs } from '../../../schema/automation-triggers.ts'
import type { Reason } from '../../../schema/explanation.ts'
import { durationMilliseconds } from '../../../temporal/graph.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import { type Timed, zoneOf } from '../automations/triggers/due-people.ts'
import { nextDate, nextTime } from '../automations/triggers/trigger-times.ts'
import type { Person } from './person.ts'
import { periodWords, spoken } from './words.ts'

type Facts = {
  lookedUntil: string
  /** The last date or period of inactivity by which they entered. */
  occasion: string | null
  lastEventAt: string | null
  lastRunAt: string | null
  looked: number | null
}
type Told = Pick<Reason, 'outcome' | 'code' | 'message'>

/** Returns why a timed trigger started a run for a person, did not, or when it will. */
export async function timedReasons(call: Call, person: Person, timed: Timed): Promise<Reason[]> {
  const facts = await readFacts(call, person, timed)
  if (facts === null) return []
  const reasons = isLeftOut(person, timed)
    ? [
        against(
          'NOT_SUBSCRIBED',
          `It takes subscribed people only, and ${person.who} is ${person.record.status}.`,
        ),
      ]
    : reasonsOf(call, person, timed, facts)
  return reasons.map((reason) => ({ at: null, ...reason }))
}

function isLeftOut({ record }: Person, { version }: Timed): boolean {
  return version.definition.settings.exitOnUnsubscribe && record.status !== 'SUBSCRIBED'
}

function reasonsOf(call: Call, person: Person, timed: Timed, facts: Facts): Told[] {
  const say = (moment: number) => spoken(new Date(moment).toISOString(), zoneOf(timed.version, call))
  switch (timed.config.type) {
    case 'DATE_FIELD':
      return dateReasons(person, timed.config, zoneOf(timed.version, call), facts, say)
    case 'INACTIVITY':
      return silenceReasons(person, timed.config, facts, say)
    case 'SCHEDULE':
      return scheduleReasons(person, timed.config, zoneOf(timed.version, call), facts, say)
  }
}

type Say = (moment: number) => string

/** Before every stored date, because years have four digits. */
const BEFORE_ALL = Date.UTC(1000, 0)

function dateReasons(
  { who, record }: Person,
  config: TriggerConfigs['DATE_FIELD'],
  zone: string,
  { lookedUntil, occasion }: Facts,
  say: Say,
): Told[] {
  const value = record.customFields[config.field]
  const taken =
    occasion === null
      ? []
      : [
          note(
            'DATE_TAKEN',
            `They were due by the date ${occasion}, and nobody enters twice by the same one.`,
          ),
        ]
  const first = nextDate(value, config, zone, BEFORE_ALL)
  if (first === null)
    return [...taken, against('NO_DATE', `${who} has no date in the field ${config.field}.`)]
  const next = nextDate(value, config, zone, Date.parse(lookedUntil))
  if (next === null) {
    if (occasion === first.occasion) return taken
    const over = `Their date was due on ${say(first.due)}, when the workflow did not look for it: it had not begun, was paused, or the date was set later.`
    return [...taken, against('DATE_OVER', over)]
  }
  if (next.occasion === occasion) return taken
  return [...taken, waiting('DATE_DUE', `Their date is due on ${say(next.due)}.`)]
}

function silenceReasons(
  { record }: Person,
  { eventType, inactiveFor }: TriggerConfigs['INACTIVITY'],
  { lookedUntil, occasion, lastEventAt }: Facts,
  say: Say,
): Told[] {
  const since = Date.parse(lastEventAt ?? record.createdAt)
  const due = since + durationMilliseconds(inactiveFor)
  const began =
    lastEventAt === null ? `They have had no ${eventType} since they came` : `Their last ${eventType} was`
  const words = `${began} on ${say(since)}`
  if (occasion === new Date(since).toISOString())
    return [note('SILENCE_TAKEN', `${words}, and they were let in by that silence.`)]
  if (due > Date.parse(lookedUntil)) {
    return [
      waiting('SILENCE_DUE', `${words}; ${periodWords(inactiveFor)} of silence are over on ${say(due)}.`),
    ]
  }
  const before = `${words}: they were silent for long enough before the workflow looked for it, or while it was paused.`
  return [against('SILENCE_BEFORE', before)]
}

function scheduleReasons(
  { record }: Person,
  { cron }: TriggerConfigs['SCHEDULE'],
  zone: string,
  { lookedUntil, lastRunAt, looked }: Facts,
  say: Say,
): Told[] {
  const next = nextTime(cron, zone, Date.parse(lookedUntil))
  const told = next === null ? [] : [waiting('SCHEDULE_NEXT', `Its schedule comes next on ${say(next)}.`)]
  if (lastRunAt === null) return told
  const isLater = Date.parse(record.createdAt) > Date.parse(lastRunAt)
  const last = `Its schedule came last on ${say(Date.parse(lastRunAt))} and took ${looked ?? 0} people${isLater ? ', before they were there' : ''}.`
  return [note('SCHEDULE_LAST', last), ...told]
}

async function readFacts(
  { em, organization }: Call,
  person: Person,
  { version, stepId, config }: Timed,
): Promise<Facts | null> {
  const eventType = config.type === 'INACTIVITY' ? config.eventType : ''
  return await row<Facts>(
    em,
    sql`select schedule.looked_until as "lookedUntil", occasion.occasion,
        (select event.created_at from subscriber_event event where event.organization_id = ${organization.id}
          and event.subscriber_id = ${person.id} and event.type = ${eventType} order by event.id desc limit 1)
          as "lastEventAt",
        last.due_to as "lastRunAt", last.looked
      from automation_schedule schedule
      left join automation_occasion occasion on occasion.organization_id = schedule.organization_id
        and occasion.automation_id = schedule.automation_id and occasion.step_id = schedule.step_id
        and occasion.subscriber_id = ${person.id}
      left join lateral (select due_to, looked from automation_intake intake
        where intake.organization_id = schedule.organization_id and intake.automation_id = schedule.automation_id
          and intake.step_id = schedule.step_id order by due_to desc limit 1) as last on true
      where schedule.organization_id = ${organization.id} and schedule.automation_id = ${version.automationId}
        and schedule.step_id = ${stepId}`,
  )
}

function against(code: string, message: string): Told {
  return { outcome: 'AGAINST', code, message }
}

function waiting(code: string, message: string): Told {
  return { outcome: 'WAITING', code, message }
}

function note(code: string, message: string): Told {
  return { outcome: 'NOTE', code, message }
}
