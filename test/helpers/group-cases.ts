import type { ConflictStrategy } from '../../schema/workflow-group.ts'

const STAYS = ['WAITING', 'SKIPPED GROUP_CONFLICT'] as const
const GIVES_WAY = ['CANCELED GROUP_CONFLICT', 'WAITING'] as const

/** Every strategy of groups, the priority of a newcomer, and what becomes of a run that is in the group with 50 and of theirs. */
export const GROUP_CASES = [
  ['FIRST_WINS', 90, STAYS],
  ['LAST_WINS', 10, GIVES_WAY],
  ['PRIORITY', 50, STAYS],
  ['PRIORITY', 51, GIVES_WAY],
  ['QUEUE', 90, ['WAITING', 'QUEUED']],
] as const satisfies readonly (readonly [ConflictStrategy, number, readonly [string, string]])[]
export type GroupCase = (typeof GROUP_CASES)[number]
