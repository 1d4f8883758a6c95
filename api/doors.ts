import type { Context } from 'koa'

import { Failure } from '../src/catalogue/failure.ts'
import { readIdempotencyKey } from '../src/catalogue/idempotency.ts'
import type { RequestParts } from '../src/catalogue/input.ts'
import { type CountedRequest, countRequest, invoke } from '../src/catalogue/invoke.ts'
import { authenticate, type Principal, withPrincipal } from '../src/catalogue/principal.ts'
import type { RateBucket, RateState } from '../src/catalogue/rate-limit.ts'
import type { Tool } from '../src/catalogue/tool.ts'
import type { Services } from '../src/services.ts'
import { readJson } from './body.ts'
import { noteValidToken } from './wrong-tokens.ts'

/**
 * A door is an interface that offers operations to callers. `bucket` is its rate limit window; `gated` says whether it
 * asks for confirmations.
 */
export type Door = { bucket: RateBucket; gated: boolean }

/** How a door takes the input from a request: by default, it is the JSON body. `file` is a body that is a file. */
type Taking = {
  readInput?: (tool: Tool) => Promise<unknown>
  parts?: RequestParts
  file?: AsyncIterable<Buffer> | undefined
}

/**
 * Authenticates and counts a request, reads its input and runs one operation; the door only finds the operation and
 * shapes the answer.
 */
export async function runOperation(
  services: Services,
  ctx: Context,
  door: Door,
  find: () => Tool,
  { readInput = (tool) => readJson(ctx, tool.bodyLimit), parts, file }: Taking = {},
): Promise<unknown> {
  const onRate = (state: RateState) => writeRate(ctx, state)
  let read: Promise<unknown> | undefined
  return await withPrincipal(
    services,
    ctx.get('authorization') || undefined,
    () => find().hasSingleStatement,
    async (principal) => {
      // For a remembered principal, only the operation's own statement checks the token.
      if (!principal.isRemembered) noteValidToken(ctx)
      const tool = await findCounted(services, principal, { bucket: door.bucket, onRate }, find)
      const idempotencyKey = idempotencyKeyOf(ctx)
      read ??= readInput(tool)
      return await invoke(services, principal, {
        tool,
        input: await read,
        parts,
        gated: door.gated,
        idempotencyKey,
        file,
      })
    },
  )
}

/** Returns the idempotency key of a request. An empty header is refused, because its sender meant to have a key. */
export function idempotencyKeyOf(ctx: Context): string | undefined {
  return readIdempotencyKey('idempotency-key' in ctx.headers ? ctx.get('idempotency-key') : undefined)
}

/** Authenticates a request that runs no operation, or several that are counted one by one. */
export async function recognize(services: Services, ctx: Context): Promise<Principal> {
  const principal = await authenticate(services, ctx.get('authorization') || undefined)
  noteValidToken(ctx)
  return principal
}

/** Authenticates and counts a request that runs no operation, such as discovery. */
export async function admit(services: Services, ctx: Context, bucket: RateBucket): Promise<Principal> {
  const principal = await recognize(services, ctx)
  await countRequest(services, principal, { bucket, onRate: (state) => writeRate(ctx, state) })
  return principal
}

/** Counts the request and finds its operation. A request for an unknown tool counts too; email sends do not. */
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

/** Writes the state of the rate limit window into the headers. */
export function writeRate(ctx: Context, { limit, remaining, reset }: RateState): void {
  ctx.set('ratelimit-limit', String(limit))
  ctx.set('ratelimit-remaining', String(remaining))
  ctx.set('ratelimit-reset', String(reset))
}
