import type { Static, TObject, TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'

import type { Permission, Plan } from '../../schema/values.ts'
import type { EntityManager } from '../database.ts'
import type { Services } from '../services.ts'
import type { KeyedCall } from './idempotency.ts'

/** The organization a call is scoped to. */
export type Organization = {
  id: string
  name: string
  slug: string
  timezone: string
  plan: Plan
  doubleOptIn: boolean
}

/** Who caused a change; it is written into events, history and audit. */
export type Actor = {
  kind: 'token' | 'member' | 'import' | 'run' | 'public' | 'system'
  /** The TypeID of the token, member, import, run or subscriber, where there is one. */
  id: string
  name: string
  /** Of a run: how many runs led to it, each started by the one before. */
  depth?: number
  /** An AI agent uses the token, over MCP. */
  isAgent?: boolean
}

/**
 * What is done after the commit: Temporal is told, a transaction of its own does more (`work`), or a schedule is brought in step
 * (`schedule`, with its id as `workflowId`). `payload` is the workflow's argument, the signal's, or what is asked.
 */
export type Intent = {
  kind: 'start' | 'signal' | 'work' | 'schedule'
  workflowId: string
  payload?: Record<string, unknown>
  /** Higher goes first; bulk entries use a negative one. */
  priority?: number
}

/** Everything an operation works with. It never sees HTTP, never flushes and never talks to Temporal. */
export type Call = {
  em: EntityManager
  organization: Organization
  actor: Actor
  /** The database's time when the call began. */
  now: Date
  services: Services
  /** The idempotency key that the handler's single statement has to take. */
  keyed?: KeyedCall
  /** Tells Temporal something once this unit of work has committed. */
  emit(intent: Intent): void
  /** Registers a write that is made even if the call is refused, in a unit of work of its own after the rollback. */
  ifRefused(write: (call: Call) => Promise<void>): void
  /** Wakes the delivery lane once this unit of work has committed. */
  wakeLane(lane: 'transactional' | 'bulk'): void
}

/** What a call that needs a confirmation will do, shown before it is done (decisions, section 2, "Confirmation"). */
export type ConfirmationSummary = {
  action: string
  target: string
  recipients?: number
  effects: string[]
  warnings: string[]
}

/**
 * The only safety fact of a tool: `read` changes nothing, `draft` changes what nobody receives, `write` changes data,
 * `impact` reaches people or destroys and asks for a confirmation.
 */
export type Effect = 'read' | 'draft' | 'write' | 'impact'

/** The groups in which discovery lists the tools. */
const TOOL_GROUPS = [
  'subscribers',
  'tags',
  'segments',
  'events',
  'campaigns',
  'workflows',
  'content',
  'senders',
  'domains',
  'emails',
  'organization',
  'documentation',
] as const
export type ToolGroup = (typeof TOOL_GROUPS)[number]

type Definition<Input extends TObject, Output extends TSchema, Prepared> = {
  name: string
  title: string
  description: string
  group: ToolGroup
  effect: Effect
  /** The permission a token needs; null if any token will do. */
  permission: Permission | null
  input: Input
  output: Output
  /** Largest JSON body in bytes; 1 MB unless said otherwise. */
  bodyLimit?: number
  /** How many levels deep the input may be nested; JSON_DEPTH unless it carries a document. */
  jsonDepth?: number
  /** False for an operation that only REST or v1 has. */
  listed?: boolean
  /** Email sends are bounded by quotas and the lane's backlog instead of the request window. */
  counted?: boolean
  /**
   * For these inputs the handler makes one statement of everything: it refuses a token that is gone, takes the key of
   * the call (`keyed`), writes, and keeps the answer. So no query asks for the token first, and nothing is around it. Not
   * for impact tools.
   */
  singleStatement?: (input: Static<Input>) => boolean
  /** Narrows the gate of an impact tool to some inputs. */
  confirm?: (input: Static<Input>) => boolean
  /** Refuses what cannot be done and says what will happen; runs before the challenge, for impact tools. */
  summarize?: (call: Call, input: Static<Input>) => Promise<ConfirmationSummary>
  /**
   * Before the transaction: asks the network and hands what it found to the handler, so that nothing holds a connection
   * meanwhile. Not for impact tools, and not run for an answer that an idempotency key has already.
   */
  prepare?: (call: Outside, input: Static<Input>) => Promise<Prepared>
  /**
   * Takes a body that is a file, before the unit of work and in place of prepare(): it may be long, so it is never whole
   * in memory. What it keeps is taken away by `discard` unless the handler made something of it.
   */
  receive?: (call: Outside, input: Static<Input>, body: AsyncIterable<Buffer>) => Promise<Prepared & Received>
  handler: (call: Call, input: Static<Input>, prepared: Prepared) => Promise<Static<Output>>
  /** The answer as it is stored for an Idempotency-Key; needed if the answer shows a secret that is shown only once. */
  kept?: (data: Static<Output>) => Static<Output>
  /** After the commit: waits for what Temporal did and may complete the answer. Safe to repeat. */
  settle?: (call: Outside, input: Static<Input>, data: Static<Output>) => Promise<Static<Output>>
}

/** The part of a call that is available outside its transaction, in `prepare`, `receive` and `settle`. */
export type Outside = Pick<Call, 'organization' | 'actor' | 'services'>

/** A file that was stored: its id and its hash; `discard` deletes it again. */
export type Received = { id: string; digest: string; discard: () => Promise<void> }

/** A catalogue entry with its types erased, as doors and laws see it. */
export type Tool = Required<
  Pick<Definition<TObject, TSchema, unknown>, 'bodyLimit' | 'jsonDepth' | 'listed' | 'counted'>
> &
  Omit<
    Definition<TObject, TSchema, unknown>,
    | 'bodyLimit'
    | 'jsonDepth'
    | 'listed'
    | 'counted'
    | 'singleStatement'
    | 'confirm'
    | 'summarize'
    | 'prepare'
    | 'receive'
    | 'handler'
    | 'kept'
    | 'settle'
  > & {
    validator: Validator
    isGated(input: unknown): boolean
    /** Whether isSingleStatement() can be true for any input. */
    hasSingleStatement: boolean
    isSingleStatement(input: unknown): boolean
    summarize(call: Call, input: unknown): Promise<ConfirmationSummary>
    prepare?(call: Outside, input: unknown): Promise<unknown>
    receive?(call: Outside, input: unknown, body: AsyncIterable<Buffer>): Promise<Received>
    handler(call: Call, input: unknown, prepared: unknown): Promise<unknown>
    kept?(data: unknown): unknown
    settle?(call: Outside, input: unknown, data: unknown): Promise<unknown>
  }

const BODY_LIMIT = 1_000_000

/** How deep JSON may be nested (decisions, section 1). */
export const JSON_DEPTH = 32

/** Declares one operation; the input is validated and its defaults filled before the handler sees it. */
export function defineTool<Input extends TObject, Output extends TSchema, Prepared = undefined>(
  definition: Definition<Input, Output, Prepared>,
): Tool {
  const { singleStatement, confirm, summarize, prepare, receive, kept, settle, handler, ...facts } =
    definition
  if (definition.effect === 'impact' && !summarize) {
    throw new Error(`${definition.name} has impact and needs summarize()`)
  }
  if (definition.effect === 'impact' && prepare) {
    throw new Error(`${definition.name} would ask the network before it is confirmed`)
  }
  if (definition.effect === 'impact' && singleStatement) {
    throw new Error(`${definition.name} has to be confirmed, which takes statements of its own`)
  }
  // invoke() hands over only what `validator` accepted and what prepare() gave, so each `as` restates what it checked.
  return {
    ...facts,
    bodyLimit: definition.bodyLimit ?? BODY_LIMIT,
    jsonDepth: definition.jsonDepth ?? JSON_DEPTH,
    listed: definition.listed ?? true,
    counted: definition.counted ?? true,
    validator: Compile(definition.input),
    isGated: (input) => definition.effect === 'impact' && (confirm ? confirm(input as Static<Input>) : true),
    hasSingleStatement: singleStatement !== undefined,
    isSingleStatement: (input) => singleStatement?.(input as Static<Input>) === true,
    summarize: async (call, input) => {
      if (!summarize) throw new Error(`${definition.name} asks for no confirmation`)
      return await summarize(call, input as Static<Input>)
    },
    ...(receive && {
      receive: (call: Outside, input: unknown, body: AsyncIterable<Buffer>) =>
        receive(call, input as Static<Input>, body),
    }),
    handler: (call, input, prepared) => handler(call, input as Static<Input>, prepared as Prepared),
    ...(prepare && {
      prepare: (call: Outside, input: unknown) => prepare(call, input as Static<Input>),
    }),
    ...(kept && { kept: (data: unknown) => kept(data as Static<Output>) }),
    ...(settle && {
      settle: (call: Outside, input: unknown, data: unknown) =>
        settle(call, input as Static<Input>, data as Static<Output>),
    }),
  }
}
