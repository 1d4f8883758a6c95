import { type RawBuilder, sql } from 'kysely'

import type { TimedTrigger, TriggerConfigs } from '../../../../schema/automation-triggers.ts'
import { durationMilliseconds } from '../../../../temporal/graph.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, column, execute, row, rows } from '../../../database.ts'
import { jsonWallTime } from '../../audience/dates.ts'
import { audiencePredicate } from '../../audience/match.ts'
import { idsAround } from '../../event-rows.ts'
import type { Version } from '../definition/versions.ts'
import { daysOf } from '../runs/schedule.ts'
import { CATCH_UP_MS, planDates, type Stretch } from './trigger-times.ts'

/** A timed trigger of a published version. */
export type Timed = { version: Version; stepId: string; config: TimedTrigger }

/**
 * A subscriber for whom a timed trigger is due. `occasion` identifies the date or silence, so that nobody enters twice
 * by the same one. `dueAt` is when it was due, and `refusal` is why they do not enter (null: they do).
 */
export type DuePerson = { id: string; occasion: string; dueAt: string; refusal: 'FILTERS' | 'MISSED' | null }

/** Returns the timed trigger of a step, or null if the step does not exist or is not a timed trigger. */
export function timedTrigger(version: Version, stepId: string): Timed | null {
  const step = version.graph.steps.get(stepId)
  if (step?.type !== 'TRIGGER') return null
  const { config } = step
  const isTimed = config.type === 'DATE_FIELD' || config.type === 'SCHEDULE' || config.type === 'INACTIVITY'
  return isTimed ? { version, stepId, config } : null
}

/** Returns the time zone of a version: that of its settings, else the organization's. */
export function zoneOf({ definition }: Version, { organization }: Pick<Call, 'organization'>): string {
  return definition.settings.timezone ?? organization.timezone
}

/** Returns the entry data of a run that a timed trigger starts; filters and `keyPath` read it as `entry.<path>`. */
export function entryDataOf(config: TimedTrigger, occasion: string, dueAt: string): Record<string, unknown> {
  switch (config.type) {
    case 'DATE_FIELD':
      return { field: config.field, date: occasion, dueAt }
    case 'INACTIVITY':
      return { eventType: config.eventType, inactiveSince: occasion, dueAt }
    case 'SCHEDULE':
      return { dueAt }
  }
}

/**
 * Counts the people who are due in the stretch. For dates and inactivity this includes those whom the filters refuse.
 */
export async function countDue(call: Call, timed: Timed, stretch: Stretch): Promise<number> {
  const { joined, where, candidates } = source(call, timed, stretch)
  // Everybody is due by a schedule, so its filters select the audience. Of other triggers, filters refuse people.
  const among = timed.config.type === 'SCHEDULE' ? await filtersOf(call, timed) : sql`true`
  const found = await row<{ count: number }>(
    call.em,
    sql`select count(*)::int as count from subscriber s ${joined} where ${where} and ${among}
      ${candidates ? sql`and s.id in (${candidates})` : sql``}`,
  )
  return found?.count ?? 0
}

/**
 * A page of people who are due, in the order of their ids, and the id after which the next page begins (null: no more).
 */
export type DuePage = { people: DuePerson[]; reached: string | null }

/**
 * Reads the next people who are due, after the id `reached`. Ignores subscribers who were created after `createdAt`.
 */
export async function nextDue(
  call: Call,
  timed: Timed,
  stretch: Stretch,
  { reached, createdAt, size }: { reached: string; createdAt: string; size: number },
): Promise<DuePage> {
  const { joined, where, candidates } = source(call, timed, stretch)
  const passes = await filtersOf(call, timed, { single: true })
  const among = timed.config.type === 'SCHEDULE' ? passes : sql`true`
  const isMissed =
    timed.config.type === 'DATE_FIELD' ? sql`found.due <= ${at(stretch.to - CATCH_UP_MS)}` : sql`false`
  const ids = candidates && (await nextIds(call, candidates, reached, size))
  const people = await rows<DuePerson>(
    call.em,
    sql`select s.id, found.occasion, found.due::timestamptz(3) as "dueAt",
        case when ${isMissed} then 'MISSED' when not coalesce(${passes}, false) then 'FILTERS' end as refusal
      from subscriber s ${joined}
      where ${where} and ${among} and ${ids ? sql`s.id = any(${array(ids, 'uuid')})` : sql`s.id > ${reached}`}
        and s.created_at <= ${createdAt} order by s.id limit ${size}`,
  )
  const looked = ids ?? people.map(({ id }) => id)
  return { people, reached: looked.length < size ? null : (looked.at(-1) ?? null) }
}

/** Reads a page of candidate ids, so that only these are checked for being due. */
async function nextIds(
  { em }: Call,
  candidates: RawBuilder<unknown>,
  reached: string,
  size: number,
): Promise<string[]> {
  const found = await rows<{ id: string }>(
    em,
    sql`select distinct id from (${candidates}) as candidate (id) where id > ${reached} order by id limit ${size}`,
  )
  return found.map(({ id }) => id)
}

/** Stores the occasions of these people and returns the ids of those whose stored occasion was another, or missing. */
export async function takeOccasions(
  { em, organization }: Call,
  { version, stepId }: Timed,
  people: readonly DuePerson[],
): Promise<Set<string>> {
  if (people.length === 0) return new Set()
  const taken = await rows<{ id: string }>(
    em,
    sql`insert into automation_occasion as known (organization_id, automation_id, step_id, subscriber_id, occasion)
      select ${organization.id}, ${version.automationId}, ${stepId}, person.id, person.occasion
      from unnest(
        ${column(people, ({ id }) => id, 'uuid')},
        ${column(people, ({ occasion }) => occasion, 'text')}
      ) as person (id, occasion)
      order by person.id
      on conflict (organization_id, automation_id, step_id, subscriber_id)
      do update set occasion = excluded.occasion where known.occasion <> excluded.occasion
      returning subscriber_id as id`,
  )
  return new Set(taken.map(({ id }) => id))
}

/** Deletes the occasions of triggers that an automation no longer has. */
export async function dropOccasions(
  { em, organization }: Call,
  automationId: string,
  stepIds: readonly string[],
): Promise<void> {
  if (stepIds.length === 0) return
  await execute(
    em,
    sql`delete from automation_occasion where organization_id = ${organization.id}
      and automation_id = ${automationId} and step_id = any(${array(stepIds, 'text')})`,
  )
}

/**
 * The SQL that finds people who are due, as parts of a query on `subscriber s`. `candidates`, if given, selects the ids
 * of a few people by an index; all who are due are among them.
 */
type Source = { joined: RawBuilder<unknown>; where: RawBuilder<unknown>; candidates?: RawBuilder<unknown> }

/** Returns the SQL for the people who are due in the stretch. It provides `found.occasion` and `found.due`. */
function source(call: Call, { version, config }: Timed, stretch: Stretch): Source {
  const own = sql`s.organization_id = ${call.organization.id}`
  // If unsubscribing ends a run, people who are not subscribed must not enter.
  const status = version.definition.settings.exitOnUnsubscribe ? sql`and s.status = 'SUBSCRIBED'` : sql``
  const found = sources[config.type](call, config as never, stretch, zoneOf(version, call))
  return { ...found, where: sql`${own} ${status} and ${found.where}` }
}

type SourceOf<Config extends TimedTrigger> = (
  call: Call,
  config: Config,
  stretch: Stretch,
  zone: string,
) => Source

const sources: { [Type in TimedTrigger['type']]: SourceOf<TriggerConfigs[Type]> } = {
  SCHEDULE: (_call, _config, { to }) => ({
    joined: sql`cross join (select ''::text as occasion, ${at(to)} as due) as found`,
    where: sql`true`,
  }),
  DATE_FIELD: dates,
  INACTIVITY: silences,
}

/**
 * Returns the source of a DATE_FIELD trigger. A comparison of the date as text narrows the people down, so that the
 * moment is only computed for few.
 */
function dates(_call: Call, config: TriggerConfigs['DATE_FIELD'], stretch: Stretch, zone: string): Source {
  const { years, low, high, daysOfYear } = planDates(config, zone, stretch)
  const { anniversary, at: time, offset, direction } = config
  const value = sql`(s.fields -> ${config.field}::text)`
  const text = sql`(s.fields ->> ${config.field}::text)`
  const occurrences = anniversary
    ? sql`(select given.wall + make_interval(years => year - extract(year from given.wall)::int)
        from unnest(${array(years, 'int')}) as year where year >= extract(year from given.wall))`
    : sql`(select given.wall where given.wall is not null)`
  const wall = time === undefined ? sql`day.wall` : sql`(day.wall::date + ${time}::time)`
  const sign = sql.raw(direction === 'AFTER' ? '+' : '-')
  const day = sql`day.wall::date::text`
  const occasion =
    time === undefined
      ? sql`(case when day.wall::time < '00:00:01' then ${day} else to_char(day.wall, 'YYYY-MM-DD"T"HH24:MI:SS') end)`
      : day
  const days = daysOf(offset)
  const due =
    days === null
      ? sql`local_moment(${wall}, ${zone}) ${sign} make_interval(secs => ${offset ? durationMilliseconds(offset) / 1000 : 0}::float8)`
      : sql`local_moment(${wall} ${sign} make_interval(days => ${days}::int), ${zone})`
  return {
    joined: sql`cross join lateral (select ${jsonWallTime(value, zone)} as wall) as given
      cross join lateral ${occurrences} as day (wall)
      cross join lateral (select ${occasion} as occasion, ${due} as due) as found`,
    where: sql`${mayBeDue()} and found.due > ${at(stretch.from)} and found.due <= ${at(stretch.to)}`,
  }

  function mayBeDue(): RawBuilder<unknown> {
    if (!anniversary) return sql`left(${text}, 10) between ${low} and ${high}`
    if (daysOfYear === null) return sql`${text} is not null`
    return sql`substr(${text}, 6, 5) = any(${array(daysOfYear, 'text')})`
  }
}

/**
 * Returns the source of an INACTIVITY trigger. A silence begins with the last such event, or with the subscriber's
 * creation.
 */
function silences(
  { organization }: Call,
  { eventType, inactiveFor }: TriggerConfigs['INACTIVITY'],
  stretch: Stretch,
): Source {
  const length = durationMilliseconds(inactiveFor)
  const [from, to] = [at(stretch.from - length), at(stretch.to - length)]
  const event = sql`event.organization_id = ${organization.id} and event.type = ${eventType}`
  return {
    joined: sql`cross join lateral (select coalesce((select event.created_at from subscriber_event event
          where ${event} and event.subscriber_id = s.id order by event.id desc limit 1), s.created_at) as since) as silence
      cross join lateral (select to_char(silence.since at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as occasion,
        silence.since + make_interval(secs => ${length / 1000}::float8) as due) as found`,
    where: sql`silence.since > ${from} and silence.since <= ${to}`,
    candidates: sql`select event.subscriber_id from subscriber_event event where ${event}
          and event.created_at > ${from} and event.created_at <= ${to} and ${idsAround(from, to, sql`event`)}
        union all
        select fresh.id from subscriber fresh where fresh.organization_id = ${organization.id}
          and fresh.created_at > ${from} and fresh.created_at <= ${to} and ${idsAround(from, to, sql`fresh`)}`,
  }
}

async function filtersOf(
  call: Call,
  { version, config }: Timed,
  { single = false }: { single?: boolean } = {},
): Promise<RawBuilder<boolean>> {
  const scope = { organizationId: call.organization.id }
  const context = { entry: {}, run: { automationId: version.automationId } }
  return await audiencePredicate(call.em, scope, config.filters ?? [], context, { single })
}

function at(moment: number): RawBuilder<unknown> {
  return sql`to_timestamp(${moment / 1000}::float8)`
}
