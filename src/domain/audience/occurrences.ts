import { sql } from 'kysely'

import type { FilterOperator, Leaf } from '../../../schema/audience.ts'
import { idsAround } from '../event-rows.ts'
import { once, shifted } from './dates.ts'
import { allOf, type Predicate, type Test, total } from './predicate.ts'
import { statExists, statNumberTest, type Surroundings, whereTest } from './related.ts'
import { numberHolds, numberTest } from './scalars.ts'

/** Counters that change in the transaction that writes the event: the number of events and the time of the last. */
const NUMBERS: Readonly<Record<string, { count: string; last?: string }>> = {
  EMAIL_SENT: { count: 'email_count' },
  EMAIL_OPENED: { count: 'open_count', last: 'last_opened_at' },
  EMAIL_CLICKED: { count: 'click_count', last: 'last_clicked_at' },
}

/**
 * `event`: matches subscribers by the number of their events of a type, optionally with conditions on the data and
 * since a time. A counter of `subscriber_stat` answers it alone when it can, or narrows the search for events.
 */
export function eventTest(around: Surroundings, leaf: Leaf): Test {
  const { operator, value } = leaf.count ?? { operator: 'gte', value: 1 }
  const where = leaf.where ?? []
  const numbers = NUMBERS[leaf.event ?? '']
  if (numbers && where.length === 0 && !leaf.within)
    return statNumberTest(around, numbers.count, operator, value)
  const since = leaf.within && shifted(leaf.within, -1, around)
  const matching = allOf([
    sql<boolean>`e.organization_id = ${around.organizationId} and e.type = ${leaf.event}`,
    ...(since ? [sql<boolean>`${idsAround(since, null, sql`e`)} and e.created_at >= ${once(since)}`] : []),
    ...where.map((condition) => whereTest(sql`e.data`, condition, around)),
  ])
  const isOnce = (operator === 'gte' && value === 1) || (operator === 'gt' && value === 0)
  const found = isOnce ? performed(matching) : counted(around, matching, operator, value)
  if (numberHolds(0, operator, value)) return total(found)
  if (!numbers) return total(isOnce ? found : allOf([performed(matching), found]))
  const least = sql<boolean>`${sql.raw(`st.${numbers.count}`)} >= ${operator === 'gt' ? value + 1 : value}::int`
  const recent =
    since && numbers.last !== undefined
      ? [sql<boolean>`${sql.raw(`st.${numbers.last}`)} >= ${once(sql`${since} - interval '1 minute'`)}`]
      : []
  return total(allOf([statExists(around, allOf([least, ...recent])), found]))
}

function performed(matching: Predicate): Predicate {
  return sql<boolean>`exists (select 1 from subscriber_event e where e.subscriber_id = s.id and ${matching})`
}

function counted(
  around: Surroundings,
  matching: Predicate,
  operator: FilterOperator,
  value: number,
): Predicate {
  const often = numberTest(sql`count(*)`, operator, value).holds
  if (around.single) {
    return sql<boolean>`(select ${often} from subscriber_event e where e.subscriber_id = s.id and ${matching})`
  }
  // With `is true`, PostgreSQL builds the array once and looks it up by hash, whatever its size. As a join, the groups
  // could be computed again for each subscriber when the planner underestimates them, such as for a new tag.
  const among = (having: Predicate) => sql<boolean>`s.id in (select unnest(array(
    select e.subscriber_id from subscriber_event e where ${matching} group by e.subscriber_id having ${having})))`
  // Subscribers without such events are in no group, so when zero matches, the non-matching groups are excluded.
  if (!numberHolds(0, operator, value)) return sql<boolean>`((${among(often)}) is true)`
  return sql<boolean>`((${among(sql<boolean>`not (${often})`)}) is not true)`
}
