import Router from '@koa/router'
import type { Context } from 'koa'

import { type Confirmation, confirmSubscription, findConfirmation } from '../src/public/confirmation.ts'
import { findImage, IMAGE_SECURITY_POLICY } from '../src/public/images.ts'
import { createOnlineViews, VIEW_SECURITY_POLICY } from '../src/public/online-view.ts'
import {
  confirmSubscriptionPage,
  lateConfirmationPage,
  lostLinkPage,
  maskEmail,
  sampleLinkPage,
  unsubscribePage,
} from '../src/public/pages.ts'
import { findRecipient, type LinkRecipient, unsubscribe } from '../src/public/unsubscribe.ts'
import type { Visitor } from '../src/public/visitors.ts'
import type { Services } from '../src/services.ts'
import { showPage } from './page.ts'

/**
 * The pages for people without an API token: unsubscribe, confirm, read online. Every path ends in a signed token; all
 * invalid tokens get the same page.
 */
export function publicRoutes(services: Services): Router {
  const router = new Router()
  const readOnline = createOnlineViews(services)

  // Links with a target were answered before, in visits.ts.
  router.get('/c/:token', (ctx) => showPage(ctx, 404, lostLinkPage()))

  router.get('/u/:token', async (ctx) => {
    const token = ctx.params['token'] ?? ''
    showRecipient(ctx, token, await findRecipient(services, token))
  })

  // The body (a form, multipart or RFC 8058) adds nothing to the address, so it is not read. RFC 8058 forbids redirects
  // here.
  router.post('/u/:token', async (ctx) => {
    ctx.req.resume()
    const token = ctx.params['token'] ?? ''
    showRecipient(ctx, token, await unsubscribe(services, token))
  })

  router.get('/s/:token', async (ctx) => {
    const token = ctx.params['token'] ?? ''
    showConfirmation(ctx, token, await findConfirmation(services, token))
  })

  router.post('/s/:token', async (ctx) => {
    ctx.req.resume()
    const token = ctx.params['token'] ?? ''
    showConfirmation(ctx, token, await confirmSubscription(services, token, visitorOf(ctx)))
  })

  router.get('/v/:token', async (ctx) => {
    const token = ctx.params['token'] ?? ''
    const html = await readOnline(token)
    if (html === null) return showInvalidLink(ctx, token)
    showPage(ctx, 200, html, VIEW_SECURITY_POLICY)
  })

  // The bytes of an image never change, so clients may cache them for good.
  router.get('/i/:organization/:file', async (ctx) => {
    const { organization = '', file = '' } = ctx.params
    const image = await findImage(services, { organization, file })
    if (!image) return
    ctx.status = 200
    ctx.type = image.contentType
    ctx.etag = image.tag
    ctx.set('Cache-Control', 'public, max-age=31536000, immutable')
    ctx.set('Content-Security-Policy', IMAGE_SECURITY_POLICY)
    ctx.set('X-Content-Type-Options', 'nosniff')
    if (ctx.fresh) ctx.status = 304
    else ctx.body = await image.load()
  })

  return router
}

function showRecipient(ctx: Context, token: string, recipient: LinkRecipient | null): void {
  if (!recipient) return showInvalidLink(ctx, token)
  const { organization, email, isUnsubscribed } = recipient
  const known = { organization, ...(email !== null && { email: maskEmail(email) }) }
  const page = isUnsubscribed
    ? unsubscribePage({ ...known, state: 'done' })
    : unsubscribePage({ ...known, state: 'ask', actionUrl: `/u/${token}` })
  showPage(ctx, 200, page)
}

/** Answers a token that belongs to nobody: the sample token of tests and previews, or an invalid one. */
function showInvalidLink(ctx: Context, token: string): void {
  if (token === 'preview') showPage(ctx, 200, sampleLinkPage())
  else showPage(ctx, 404, lostLinkPage())
}

function showConfirmation(ctx: Context, token: string, confirmation: Confirmation | null): void {
  if (!confirmation) return showInvalidLink(ctx, token)
  const { organization, email, state } = confirmation
  if (state === 'late') return showPage(ctx, 410, lateConfirmationPage(organization))
  const known = { organization, email: maskEmail(email) }
  const page =
    state === 'done'
      ? confirmSubscriptionPage({ ...known, state })
      : confirmSubscriptionPage({ ...known, state, actionUrl: `/s/${token}` })
  showPage(ctx, 200, page)
}

function visitorOf(ctx: Context): Visitor {
  return { method: ctx.method, userAgent: ctx.get('user-agent'), ipAddress: ctx.ip }
}
