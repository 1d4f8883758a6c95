import Type, { type Static, type TObject, type TSchema } from 'typebox'
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

/** The cause of a change; recorded in events, history and audit. */
export type Actor = {
  kind: 'token' | 'member' | 'import' | 'run' | 'public' | 'system'
  /** The TypeID of the token, member, import, run or subscriber, if there is one. */
  id: string
  name: string
  /** For a run: the number of runs before it, each of which started the next one. */
  depth?: number
  /** Set when an AI agent uses the token, over MCP. */
  isAgent?: boolean
}

/**
 * Work after the commit: start or signal a workflow in Temporal, run another transaction (`work`), or update a schedule
 * (`schedule`, with its id as `workflowId`). `payload` is the argument of the workflow, signal or work.
 */
export type Intent = {
  kind: 'start' | 'signal' | 'work' | 'schedule'
  workflowId: string
  payload?: Record<string, unknown>
  /** Higher values go first; bulk entries use negative ones. */
  priority?: number
}

/**
 * The context of an operation. An operation never handles HTTP, never flushes the entity manager and never calls
 * Temporal.
 */
export type Call = {
  em: EntityManager
  organization: Organization
  actor: Actor
  /** The database's time when the call began. */
  now: Date
  services: Services
  /** The idempotency key that the handler's single statement must take. */
  keyed?: KeyedCall
  /** Queues work to be done once this unit of work has committed. */
  emit(intent: Intent): void
  /**
   * Registers a write for the case that the call is refused: it runs after the rollback, in a unit of work of its own.
   */
  ifRefused(write: (call: Call) => Promise<void>): void
  /** Wakes the delivery lane once this unit of work has committed. */
  wakeLane(lane: 'transactional' | 'bulk'): void
}

/** What a call will do. */
export type Impact = {
  target: string
  recipients?: number
  effects: string[]
  warnings: string[]
}

/** What is shown to confirm a call (decisions, section 2, "Confirmation"). `action` is the name of the tool. */
export type ConfirmationSummary = { action: string } & Impact

/**
 * The effect of a tool, which all its safety rules derive from: `read` changes nothing, `draft` changes only things
 * that reach nobody, such as drafts, `write` changes data, `impact` reaches people or destroys data and needs a
 * confirmation.
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
  /** The permission a token needs; null if any token may call it. */
  permission: Permission | null
  input: Input
  /**
   * The member of the input whose items are checked one by one: a faulty item refuses no other, and the handler gets it
   * as `FaultyItem`.
   */
  rows?: string
  output: Output
  /** The largest JSON body in bytes; 1 MB by default. */
  bodyLimit?: number
  /** The deepest nesting of the input; JSON_DEPTH unless it contains a document. */
  jsonDepth?: number
  /** False for an operation that is not a tool: only REST or v1 has it. */
  listed?: boolean
  /** False for email sends, which quotas and the lane's backlog limit instead of the rate limit. */
  counted?: boolean
  /**
   * Returns whether the handler does everything in one statement for this input: it refuses a token that is no longer
   * valid, takes the idempotency key (`keyed`), writes, and stores the answer. Then no earlier query checks the token,
   * and there is no transaction around it. Not for impact tools.
   */
  singleStatement?: (input: Static<Input>) => boolean
  /** Limits the confirmation of an impact tool to some inputs. */
  confirm?: (input: Static<Input>) => boolean
  /**
   * Refuses calls that cannot be done, and describes the effects of the others; runs before the challenge. Required for
   * impact tools.
   */
  summarize?: (call: Call, input: Static<Input>) => Promise<Impact>
  /**
   * Queries the network before the transaction and passes the result to the handler, so that no database connection is
   * held meanwhile. Not for impact tools. Skipped when an idempotency key already has an answer.
   */
  prepare?: (call: Outside, input: Static<Input>) => Promise<Prepared>
  /**
   * Stores a request body that is a file, before the unit of work and instead of prepare(). The file may be large, so
   * it is never fully in memory. `discard` is always called afterwards and removes it, unless the handler used it.
   */
  receive?: (call: Outside, input: Static<Input>, body: AsyncIterable<Buffer>) => Promise<Prepared & Received>
  handler: (call: Call, input: Static<Input>, prepared: Prepared) => Promise<Static<Output>>
  /**
   * The answer that is stored for an Idempotency-Key; needed if the answer contains a secret that is shown only once.
   */
  kept?: (data: Static<Output>) => Static<Output>
  /** Runs after the commit: waits for Temporal and may complete the answer. Must be safe to repeat. */
  settle?: (call: Outside, input: Static<Input>, data: Static<Output>) => Promise<Static<Output>>
}

/** The part of a call that is available outside its transaction, in `prepare`, `receive` and `settle`. */
export type Outside = Pick<Call, 'organization' | 'actor' | 'services'>

/** A stored file: its id, its hash, and a function that deletes it. */
export type Received = { id: string; digest: string; discard: () => Promise<void> }

type AnyDefinition = Definition<TObject, TSchema, unknown>
type Defaulted = 'bodyLimit' | 'jsonDepth' | 'listed' | 'counted'
/** The functions, whose parameters have the types of one operation. */
type Typed =
  | 'singleStatement'
  | 'confirm'
  | 'summarize'
  | 'prepare'
  | 'receive'
  | 'handler'
  | 'kept'
  | 'settle'

/** An operation with its types erased, as doors and tests use it. */
export type Tool = Required<Pick<AnyDefinition, Defaulted>> &
  Omit<AnyDefinition, Defaulted | Typed> & {
    /** The schema of an input as a whole, in which the items of `rows` are anything. */
    whole: TObject
    /** Checks an input against `whole`. */
    validator: Validator
    isGated(input: unknown): boolean
    /** Whether isSingleStatement() can return true for some input. */
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

/** The deepest nesting of JSON input (decisions, section 1). */
export const JSON_DEPTH = 32

function wholeOf({ input, rows }: Pick<Tool, 'input' | 'rows'>): TObject {
  if (rows === undefined) return input
  const list = { ...input.properties[rows], items: Type.Unknown() }
  return Type.Object({ ...input.properties, [rows]: list }, { additionalProperties: false })
}

/** Declares an operation; the handler gets a validated input with its defaults filled in. */
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
  const whole = wholeOf(definition)
  // invoke() passes only inputs that `validator` accepted and the result of prepare(), so each `as` is safe.
  return {
    ...facts,
    bodyLimit: definition.bodyLimit ?? BODY_LIMIT,
    jsonDepth: definition.jsonDepth ?? JSON_DEPTH,
    listed: definition.listed ?? true,
    counted: definition.counted ?? true,
    whole,
    validator: Compile(whole),
    isGated: (input) => definition.effect === 'impact' && (confirm ? confirm(input as Static<Input>) : true),
    hasSingleStatement: singleStatement !== undefined,
    isSingleStatement: (input) => singleStatement?.(input as Static<Input>) === true,
    summarize: async (call, input) => {
      if (!summarize) throw new Error(`${definition.name} asks for no confirmation`)
      return { action: definition.name, ...(await summarize(call, input as Static<Input>)) }
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
