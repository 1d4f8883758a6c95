import type { Context } from 'koa'

import { readIdempotencyKey } from '../src/catalogue/idempotency.ts'
import { countRequest, invoke } from '../src/catalogue/invoke.ts'
import { authenticate } from '../src/catalogue/principal.ts'
import type { RateBucket, RateState } from '../src/catalogue/rate-limit.ts'
import type { Tool } from '../src/catalogue/tool.ts'
import type { Services } from '../src/services.ts'
import { readJson } from './body.ts'

/** How a door differs from the others. */
export type Door = { bucket: RateBucket; gated: boolean }

/** Authenticates, reads the body and runs one operation; every door does exactly this and only shapes the answer. */
export async function runOperation(
  services: Services,
  ctx: Context,
  door: Door,
  tool: Tool,
  shape: (body: unknown) => unknown = (body) => body,
): Promise<unknown> {
  const principal = await authenticate(services, ctx.get('authorization') || undefined)
  const idempotencyKey = readIdempotencyKey(ctx.get('idempotency-key') || undefined)
  const input = shape(await readJson(ctx, tool.bodyLimit))
  return await invoke(services, principal, {
    tool,
    input,
    ...door,
    idempotencyKey,
    onRate: (state) => writeRate(ctx, state),
  })
}

/** Authenticates and counts a request that runs no operation, such as discovery. */
export async function admit(services: Services, ctx: Context, bucket: RateBucket): Promise<void> {
  const principal = await authenticate(services, ctx.get('authorization') || undefined)
  await countRequest(services, principal, { bucket, onRate: (state) => writeRate(ctx, state) })
}

function writeRate(ctx: Context, { limit, remaining, reset }: RateState): void {
  ctx.set('ratelimit-limit', String(limit))
  ctx.set('ratelimit-remaining', String(remaining))
  ctx.set('ratelimit-reset', String(reset))
}
