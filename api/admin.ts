import Router from '@koa/router'
import type { Context } from 'koa'

import { authenticateAdmin, describeAdminTools, invokeAdmin } from '../src/catalogue/admin.ts'
import { Failure } from '../src/catalogue/failure.ts'
import type { Services } from '../src/services.ts'
import { Throttle } from '../src/throttle.ts'
import { readJson } from './body.ts'
import { writeRate } from './doors.ts'
import { noteValidToken } from './wrong-tokens.ts'

const ADDRESS = '/api/v1/admin/tools'

/** The limit of requests per client address within the window, in each process. */
const REQUESTS = 60
const WINDOW_MS = 60_000
const BODY_LIMIT = 1_000_000

/** `/api/v1/admin/tools`: the queries of operators across organizations (contract, "Admin tools API"). */
export function adminRoutes(services: Services): Router {
  const router = new Router({ prefix: ADDRESS })
  const visits = new Throttle(REQUESTS, WINDOW_MS)

  async function enter(ctx: Context): Promise<void> {
    countVisit(ctx, visits)
    await authenticateAdmin(services, ctx.get('authorization') || undefined)
    noteValidToken(ctx)
  }

  router.get('/', async (ctx) => {
    await enter(ctx)
    ctx.body = { success: true, ...describeAdminTools(services.config.baseUrl + ADDRESS) }
  })

  router.post('/', async (ctx) => {
    await enter(ctx)
    ctx.body = { success: true, ...(await invokeAdmin(services, await readJson(ctx, BODY_LIMIT))) }
  })

  return router
}

/**
 * Counts every request of a client address, whatever its key, so that keys cannot be guessed. Throws `RATE_LIMITED`.
 */
function countVisit(ctx: Context, visits: Throttle): void {
  const { left, endsInMs } = visits.count(ctx.ip)
  const reset = Math.max(1, Math.ceil(endsInMs / 1_000))
  writeRate(ctx, { limit: REQUESTS, remaining: Math.max(0, left), reset })
  if (left >= 0) return
  throw new Failure(
    'RATE_LIMITED',
    `This address made its ${REQUESTS} requests of this minute; repeat the request in ${reset} s.`,
    { retryAfter: reset },
  )
}
