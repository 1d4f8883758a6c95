import { databaseCode, isConcurrencyFault, isOwnFault } from '../../catalogue/database-error.ts'
import type { Call } from '../../catalogue/tool.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import type { Services } from '../../services.ts'
import {
  acceptDraft,
  acceptDrafts,
  type Draft,
  tokenScopeOf,
  type TokenScope,
  type Verdict,
  writeDraft,
} from './acceptance.ts'

const LARGEST_GROUP = 64
/** The most characters of JSON in a group; a larger email is accepted alone. */
const LONGEST_GROUP = 500_000
/** How long a group waits for locks held by others, such as the row of a recipient who is being erased. */
const PATIENCE_MS = 50
// lock_not_available
const END_OF_PATIENCE = '55P03'

type Waiting = {
  call: Call
  draft: Draft
  written: string
  settle: (verdict: Verdict | null | Promise<Verdict | null>) => void
}

/** The emails of one token that wait for a group. */
type Line = { scope: TokenScope; waiting: Waiting[] }

const lines = new WeakMap<Services, Map<string, Line>>()

/**
 * Accepts an email outside a transaction. Emails of one token that arrive in the same turn, or while a group of it is
 * being accepted, share one statement and commit, because a commit costs more than an email. Each email gets its own
 * verdict. When a group fails, its emails are tried again one by one, so that none suffers from another.
 */
export async function acceptGrouped(call: Call, draft: Draft): Promise<Verdict | null> {
  const { promise, resolve } = Promise.withResolvers<Verdict | null>()
  const written = writeDraft(call, draft)
  const open = lines.get(call.services) ?? new Map<string, Line>()
  lines.set(call.services, open)
  const scope = tokenScopeOf(call)
  const key = `${scope.organizationId} ${scope.tokenId}`
  const line = open.get(key)
  const waiting = { call, draft, written, settle: resolve }
  if (line) line.waiting.push(waiting)
  else {
    const opened = { scope, waiting: [waiting] }
    open.set(key, opened)
    setImmediate(() => void serve(opened, () => open.delete(key)))
  }
  return await promise
}

async function serve({ scope, waiting }: Line, done: () => void): Promise<void> {
  while (waiting.length > 0) await acceptGroup(scope, waiting.splice(0, sizeOfGroup(waiting)))
  done()
}

function sizeOfGroup(waiting: readonly Waiting[]): number {
  let length = 0
  const end = waiting.findIndex(({ written }, index) => {
    length += written.length
    return index > 0 && (index === LARGEST_GROUP || length > LONGEST_GROUP)
  })
  return end < 0 ? waiting.length : end
}

/** Settles every email of a group and never throws. Emails that are tried again alone are not awaited here. */
async function acceptGroup(scope: TokenScope, group: readonly Waiting[]): Promise<void> {
  const [first] = group
  if (!first) return
  try {
    const em = crossOrganization(first.call.services)
    const written = group.map((each) => each.written)
    const verdicts = await acceptDrafts(em, scope, written, PATIENCE_MS)
    for (const [place, { settle }] of group.entries()) settle(verdicts.get(place) ?? null)
  } catch (error) {
    const isContended = isConcurrencyFault(error) || databaseCode(error) === END_OF_PATIENCE
    const mayBeOthers = group.length > 1 && isOwnFault(error)
    for (const { call, draft, settle } of group) {
      settle(isContended || mayBeOthers ? acceptDraft(call, draft) : Promise.reject(error))
    }
  }
}
