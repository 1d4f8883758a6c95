import { createServer } from 'node:http'

import Koa, { type Context } from 'koa'
import pg from 'pg'

/**
 * Serves bare Koa on this port until SIGTERM, for comparison with the API. `answer` gets a pool of the same size as the
 * API's; `setUp` is SQL to run before.
 */
export async function serveBare(
  port: number,
  { setUp, answer }: { setUp?: string; answer: (ctx: Context, pool: pg.Pool) => Promise<void> },
): Promise<void> {
  const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 12 })
  if (setUp !== undefined) await pool.query(setUp)
  const app = new Koa()
  app.use((ctx) => answer(ctx, pool))
  const server = createServer(app.callback())
  server.keepAliveTimeout = 65_000
  server.listen(port, '127.0.0.1')
  process.once('SIGTERM', () => {
    server.close()
    server.closeAllConnections()
    void pool.end()
  })
}

/** Returns the JSON body of a request, or undefined if it has none, as that of a probe. */
export async function readBody(ctx: Context) {
  const chunks: Buffer[] = []
  for await (const chunk of ctx.req) chunks.push(chunk)
  return chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString())
}
