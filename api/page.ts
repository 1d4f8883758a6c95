import type { Context } from 'koa'

import { PAGE_SECURITY_POLICY } from '../src/public/page-frame.ts'

/** Answers a person with a page that no cache keeps and no search engine lists. */
export function showPage(ctx: Context, status: number, html: string, policy = PAGE_SECURITY_POLICY): void {
  ctx.status = status
  ctx.set('Content-Security-Policy', policy)
  ctx.set('Cache-Control', 'no-store')
  ctx.set('Referrer-Policy', 'no-referrer')
  ctx.set('X-Robots-Tag', 'noindex')
  ctx.type = 'text/html; charset=utf-8'
  ctx.body = html
}
