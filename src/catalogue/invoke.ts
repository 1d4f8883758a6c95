import type { Services } from '../services.ts'
import { hashJson } from './canonical.ts'
import { challenge, countWrongCode, spendCode } from './confirmation.ts'
import { databaseCode } from './database-error.ts'
import { Failure } from './failure.ts'
import {
  findAnswer,
  isStorable,
  type KeyedCall,
  replay,
  storeAnswer,
  storeRefusal,
  takeKey,
} from './idempotency.ts'
import { readInput, type RequestParts } from './input.ts'
import { type Principal, refuseToken, requirePermission } from './principal.ts'
import type { RateBucket, RateState } from './rate-limit.ts'
import type { Call, Outside, Received, Tool } from './tool.ts'
import { crossOrganization, unitOfWork } from './unit-of-work.ts'

/** A call of an operation as a door passes it on. */
export type Invocation = {
  tool: Tool
  input: unknown
  /** The parts of the request that the input is from, if it is not one JSON object. */
  parts?: RequestParts | undefined
  /** Whether impact tools need a confirmation at this door; REST v2 and v1 do not ask for one. */
  gated: boolean
  idempotencyKey?: string | undefined
  /** The request body, for an operation that takes a file. */
  file?: AsyncIterable<Buffer> | undefined
}

/**
 * Runs an operation; there is no other way to run one. Steps: permission, strict validation, prepare, idempotency,
 * confirmation, unit of work, handler, settle. Throws `Failure` for a refusal; any other error is a fault.
 */
export async function invoke(
  services: Services,
  principal: Principal,
  invocation: Invocation,
): Promise<unknown> {
  const { tool } = invocation
  if (tool.permission !== null) requirePermission(principal, tool.permission)
  const { input, confirmationCode } = readInput(tool, invocation.input, invocation.parts)
  const isGated = invocation.gated && tool.isGated(input)
  const isSingle = tool.isSingleStatement(input)
  // Only a single-statement operation checks the token again. For others, refusing makes the door authenticate and
  // retry.
  if (principal.isRemembered && !isSingle) refuseToken()
  const { file, idempotencyKey } = invocation
  const received = file && (await tool.receive?.(outside(services, principal), input, file))
  try {
    const execution = { tool, input, confirmationCode, isGated, isSingle, received }
    const data = await executeKeyed(services, principal, execution, idempotencyKey)
    return tool.settle ? await tool.settle(outside(services, principal), input, data) : data
  } finally {
    await received?.discard()
  }
}

function outside(services: Services, { organization, actor }: Principal): Outside {
  return { organization, actor, services }
}

/**
 * A request that counts against its door's rate limit. `onRate` gets the state of the limit, even if the request is
 * refused.
 */
export type CountedRequest = {
  bucket: RateBucket
  onRate: (state: RateState) => void
  /** Reports the state without counting the request: email sends have limits of their own. */
  isFree?: boolean
}

/** Counts one authenticated request, whether it succeeds or not. Throws `RATE_LIMITED` above the limit. */
export async function countRequest(
  services: Services,
  { organization, requestLimit }: Principal,
  { bucket, onRate, isFree }: CountedRequest,
): Promise<void> {
  const { rateLimiter } = services
  try {
    const state = isFree
      ? rateLimiter.peek(organization.id, bucket, requestLimit)
      : await rateLimiter.take(crossOrganization(services), organization.id, bucket, requestLimit)
    if (state) onRate(state)
  } catch (error) {
    if (error instanceof Failure && error.retryAfter) {
      onRate({ limit: requestLimit, remaining: 0, reset: error.retryAfter })
    }
    throw error
  }
}

type Execution = {
  tool: Tool
  input: unknown
  confirmationCode: string | undefined
  isGated: boolean
  isSingle: boolean
  /** The result of prepare(); absent if it did not run. */
  prepared?: { value: unknown }
  /** The file that was sent with the request. */
  received?: Received | undefined
}

async function executeKeyed(
  services: Services,
  principal: Principal,
  execution: Execution,
  key: string | undefined,
): Promise<unknown> {
  const { tool, input } = execution
  if (key === undefined || tool.effect === 'read') {
    return await run(services, principal, await prepare(services, principal, execution))
  }
  const keyed: KeyedCall = {
    organizationId: principal.organization.id,
    key,
    operation: tool.name,
    bodyHash: hashJson({ operation: tool.name, input, file: execution.received?.digest }),
  }
  // A refusal of prepare() depends on the state of the network, so it is not stored under the key.
  const isAnswered = tool.prepare && (await findAnswer(crossOrganization(services), keyed)) !== null
  const ready = isAnswered ? execution : await prepare(services, principal, execution)
  try {
    return await run(services, principal, ready, keyed)
  } catch (error) {
    if (error instanceof Failure && isStorable(error)) {
      const { code, message, details, body } = error
      await storeRefusal(crossOrganization(services), keyed, {
        failure: { code, message, ...(details !== undefined && { details }), ...(body && { body }) },
      })
    }
    throw error
  }
}

async function prepare(services: Services, principal: Principal, execution: Execution): Promise<Execution> {
  const { tool, input } = execution
  if (!tool.prepare) return execution
  return { ...execution, prepared: { value: await tool.prepare(outside(services, principal), input) } }
}

async function run(
  services: Services,
  principal: Principal,
  execution: Execution,
  keyed?: KeyedCall,
): Promise<unknown> {
  const { tool, input, confirmationCode, isGated, isSingle } = execution
  const scope = {
    organizationId: principal.organization.id,
    actor: principal.actor,
    organization: principal.organization,
    now: principal.now,
  }
  const outcome = await unitOfWork(services, scope, (call) => perform(call, execution, keyed), {
    readOnly: tool.effect === 'read',
    singleStatement: isSingle,
  }).catch(asRefusal)
  if ('data' in outcome) return outcome.data
  if (confirmationCode !== undefined) {
    await countWrongCode(crossOrganization(services), scope.organizationId, execution)
  }
  if (!isGated) throw new Error(`${tool.name} asked for a confirmation it does not need`)
  throw await unitOfWork(services, scope, async (call) =>
    challenge(call, { tool, input }, await tool.summarize(call, input), outcome.unconfirmed),
  )
}

/** The handler's data, or the reason why a confirmation is still needed (undefined when no code was sent). */
type Outcome = { data: unknown } | { unconfirmed: string | undefined }

async function perform(call: Call, execution: Execution, keyed: KeyedCall | undefined): Promise<Outcome> {
  const { tool, input, confirmationCode, isGated, isSingle, prepared } = execution
  if (isSingle) return { data: await tool.handler(keyed ? { ...call, keyed } : call, input, undefined) }
  if (keyed) {
    const stored = await takeKey(call.em, keyed)
    if (stored) return { data: replay(stored) }
  }
  if (isGated) {
    if (confirmationCode === undefined) return { unconfirmed: undefined }
    const refusal = await spendCode(call, execution, confirmationCode)
    if (refusal) return { unconfirmed: refusal }
  }
  if (tool.prepare && !prepared) throw answerGone()
  const data = await tool.handler(call, input, execution.received ?? prepared?.value)
  if (keyed) await storeAnswer(call.em, keyed, { data: tool.kept ? tool.kept(data) : data })
  return { data }
}

/** Returns the failure for a call that skipped prepare() because of a stored answer, which has expired since. */
function answerGone(): Failure {
  return new Failure(
    'IDEMPOTENCY_IN_PROGRESS',
    'The answer kept for this Idempotency-Key has just expired; repeat the request.',
    { retryAfter: 1 },
  )
}

/**
 * Throws `ALREADY_EXISTS` for a unique violation (SQLSTATE 23505), wherever it happens; throws any other error again.
 */
function asRefusal(error: unknown): never {
  if (!(error instanceof Failure) && databaseCode(error) === '23505') {
    throw new Failure(
      'ALREADY_EXISTS',
      'A record with the same unique value exists already; read it and update it instead.',
      {
        cause: error,
      },
    )
  }
  throw error
}
