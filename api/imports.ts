import { Readable } from 'node:stream'

import type { Context } from 'koa'

import { invoke } from '../src/catalogue/invoke.ts'
import { findOperation } from '../src/catalogue/registry.ts'
import type { Services } from '../src/services.ts'
import { admit } from './doors.ts'

type Page = { csv: string; next: number | null }

/** `GET /api/v2/imports/{id}/rejected`: sends the rows that an import refused as one CSV file, read page by page. */
export async function sendRejected(services: Services, ctx: Context): Promise<void> {
  const principal = await admit(services, ctx, 'rest')
  const tool = findOperation('list_rejected_rows')
  const importId: unknown = Reflect.get(ctx['params'], 'importId')
  const read = async (after: number | null): Promise<Page> => {
    const input = { importId, ...(after !== null && { after }) }
    // The output schema of the operation guarantees this.
    return (await invoke(services, principal, { tool, input, gated: false })) as Page
  }
  const first = await read(null)
  ctx.attachment(`rejected-${String(importId)}.csv`)
  ctx.type = 'text/csv; charset=utf-8'
  ctx.body = Readable.from(pages(first, read))
}

async function* pages(first: Page, read: (after: number) => Promise<Page>): AsyncGenerator<string> {
  let page = first
  yield page.csv
  while (page.next !== null) {
    page = await read(page.next)
    yield page.csv
  }
}
