import { sql } from 'kysely'

import type { Reason } from '../../../schema/explanation.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import type { Version } from '../automations/definition/versions.ts'
import { decideTurn, type GroupRules, placeKey, readPlaces } from '../automations/groups/group-places.ts'
import { IS_ACTIVE } from '../automations/runs/active.ts'
import type { Person } from './person.ts'
import { periodWords } from './words.ts'

type Group = GroupRules & {
  name: string
  /** The name of the workflow that holds the person's place in the group. */
  other: string | null
}

/** Returns how the workflow's group would treat a person who enters now, with the decision function of the engine. */
export async function groupReasons(
  call: Call,
  person: Person,
  automationId: string,
  { definition }: Version,
): Promise<Reason[]> {
  const group = await readGroup(call, person, automationId)
  if (group === null) return []
  const place = { groupId: group.id, subscriberId: person.id }
  const occupation = (await readPlaces(call, [place])).get(placeKey(place)) ?? { holder: null, queued: 0 }
  const where = `in the workflow “${group.other ?? ''}” of the group “${group.name}”`
  const say = (outcome: Reason['outcome'], code: string, message: string): Reason[] => [
    { at: null, outcome, code, message },
  ]
  switch (decideTurn(group.conflictStrategy, occupation, definition.settings.priority)) {
    case 'HOLDS':
      return []
    case 'SKIPPED': {
      const why =
        group.conflictStrategy === 'PRIORITY'
          ? 'whose priority is not lower'
          : 'which keeps those who came first'
      return say('AGAINST', 'GROUP_CONFLICT', `They are ${where}, ${why}, so they would not be let in.`)
    }
    case 'PREEMPTS':
      return say('NOTE', 'GROUP_TAKES_PLACE', `They are ${where}; entering here would end that.`)
    case 'QUEUES': {
      const limit = group.maxQueueAge === null ? '' : `, for at most ${periodWords(group.maxQueueAge)}`
      const message = `They would wait for their turn in the group “${group.name}”${limit}: others of it come first.`
      return say('WAITING', 'GROUP_QUEUE', message)
    }
  }
}

async function readGroup(
  { em, organization }: Call,
  person: Person,
  automationId: string,
): Promise<Group | null> {
  return await row<Group>(
    em,
    sql`select own.id, own.name, own.conflict_strategy as "conflictStrategy", own.max_queue_age as "maxQueueAge",
        (select other.name from automation_run run
          join automation other on other.organization_id = run.organization_id and other.id = run.automation_id
          where run.organization_id = own.organization_id and run.group_id = own.id
            and run.subscriber_id = ${person.id} and run.queued_at is null and run.${IS_ACTIVE}) as other
      from automation join automation_group own
        on own.organization_id = automation.organization_id and own.id = automation.group_id
      where automation.organization_id = ${organization.id} and automation.id = ${automationId}`,
  )
}
