import type { ConflictStrategy } from '../../schema/workflow-group.ts'

const STAYS = ['WAITING', 'SKIPPED GROUP_CONFLICT'] as const
const GIVES_WAY = ['CANCELED GROUP_CONFLICT', 'WAITING'] as const

/**
 * Each case: a group strategy, the priority of a newcomer, and the expected states of the existing run (priority 50)
 * and of the newcomer's run.
 */
export const GROUP_CASES = [
  ['FIRST_WINS', 90, STAYS],
  ['LAST_WINS', 10, GIVES_WAY],
  ['PRIORITY', 50, STAYS],
  ['PRIORITY', 51, GIVES_WAY],
  ['QUEUE', 90, ['WAITING', 'QUEUED']],
] as const satisfies readonly (readonly [ConflictStrategy, number, readonly [string, string]])[]
export type GroupCase = (typeof GROUP_CASES)[number]
