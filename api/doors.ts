import type { Context } from 'koa'

import { Failure } from '../src/catalogue/failure.ts'
import { readIdempotencyKey } from '../src/catalogue/idempotency.ts'
import { type CountedRequest, countRequest, invoke } from '../src/catalogue/invoke.ts'
import { authenticate, type Principal, withPrincipal } from '../src/catalogue/principal.ts'
import type { RateBucket, RateState } from '../src/catalogue/rate-limit.ts'
import type { Tool } from '../src/catalogue/tool.ts'
import type { Services } from '../src/services.ts'
import { readJson } from './body.ts'
import { noteToken } from './strangers.ts'

/** How a door differs from the others. */
export type Door = { bucket: RateBucket; gated: boolean }

/**
 * Authenticates, counts, reads the input and runs one operation; a door only finds it and shapes the answer. The input
 * is the JSON body unless the door says otherwise, as it does where the body is a file.
 */
export async function runOperation(
  services: Services,
  ctx: Context,
  door: Door,
  find: () => Tool,
  readInput: (tool: Tool) => Promise<unknown> = (tool) => readJson(ctx, tool.bodyLimit),
  file?: AsyncIterable<Buffer>,
): Promise<unknown> {
  const onRate = (state: RateState) => writeRate(ctx, state)
  let read: Promise<unknown> | undefined
  return await withPrincipal(
    services,
    ctx.get('authorization') || undefined,
    () => find().hasSingleStatement,
    async (principal) => {
      // A remembered one is judged by the operation's own statement.
      if (!principal.isRemembered) noteToken(ctx)
      const tool = await findCounted(services, principal, { bucket: door.bucket, onRate }, find)
      const idempotencyKey = idempotencyKeyOf(ctx)
      read ??= readInput(tool)
      return await invoke(services, principal, {
        tool,
        input: await read,
        gated: door.gated,
        idempotencyKey,
        file,
      })
    },
  )
}

/** The key of a request that may be repeated. An empty one is refused: who sent it meant to be safe. */
export function idempotencyKeyOf(ctx: Context): string | undefined {
  return readIdempotencyKey('idempotency-key' in ctx.headers ? ctx.get('idempotency-key') : undefined)
}

/** Authenticates a request that runs no operation, or several, which count by themselves. */
export async function recognize(services: Services, ctx: Context): Promise<Principal> {
  const principal = await authenticate(services, ctx.get('authorization') || undefined)
  noteToken(ctx)
  return principal
}

/** Authenticates and counts a request that runs no operation, such as discovery. */
export async function admit(services: Services, ctx: Context, bucket: RateBucket): Promise<Principal> {
  const principal = await recognize(services, ctx)
  await countRequest(services, principal, { bucket, onRate: (state) => writeRate(ctx, state) })
  return principal
}

/** Every authenticated request counts, also one that names no tool; only sends are bounded by other means. */
async function findCounted(
  services: Services,
  principal: Principal,
  request: CountedRequest,
  find: () => Tool,
): Promise<Tool> {
  try {
    const tool = find()
    await countRequest(services, principal, { ...request, isFree: !tool.counted })
    return tool
  } catch (error) {
    if (error instanceof Failure && error.code === 'TOOL_NOT_FOUND') {
      await countRequest(services, principal, request)
    }
    throw error
  }
}

/** Tells a caller how much of its window is left. */
export function writeRate(ctx: Context, { limit, remaining, reset }: RateState): void {
  ctx.set('ratelimit-limit', String(limit))
  ctx.set('ratelimit-remaining', String(remaining))
  ctx.set('ratelimit-reset', String(reset))
}
