import Router from '@koa/router'

import { describeTool } from '../src/catalogue/describe-tool.ts'
import { findTool, LISTED_TOOLS } from '../src/catalogue/registry.ts'
import type { Services } from '../src/services.ts'
import { admit, type Door, runOperation } from './doors.ts'

const TOOLS_DOOR: Door = { bucket: 'tools', gated: true }

/** `/api/v2/tools`: discovery, and one address for each tool (contract, "Tools API conventions"). */
export function toolRoutes(services: Services): Router {
  const router = new Router({ prefix: '/api/v2/tools' })

  router.get('/', async (ctx) => {
    await admit(services, ctx, TOOLS_DOOR.bucket)
    ctx.body = {
      success: true,
      data: { tools: LISTED_TOOLS.map(describeTool), total: LISTED_TOOLS.length },
    }
  })

  router.get('/:name', async (ctx) => {
    await admit(services, ctx, TOOLS_DOOR.bucket)
    ctx.body = { success: true, data: describeTool(findTool(ctx.params['name'] ?? '')) }
  })

  router.post('/:name', async (ctx) => {
    const data = await runOperation(services, ctx, TOOLS_DOOR, () => findTool(ctx.params['name'] ?? ''))
    ctx.body = { success: true, data }
  })

  return router
}
