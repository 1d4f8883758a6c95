import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { findMail } from '../delivery/claims.ts'
import { createRenderer } from '../delivery/render.ts'
import { readToken } from '../delivery/tracking-token.ts'
import { writeAwaited } from '../domain/campaigns/batches.ts'
import type { Services } from '../services.ts'

/**
 * The Content-Security-Policy of an email in a browser: it may only be shown and open links. No scripts, forms or
 * frames, and an opaque origin.
 */
export const VIEW_SECURITY_POLICY =
  "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src http: https: data:; style-src 'unsafe-inline'; font-src https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Returns a function that renders the HTML of an email for its online view; null when the link is not valid. */
export function createOnlineViews(services: Services): (token: string) => Promise<string | null> {
  const renderer = createRenderer(services)
  return async (token) => {
    const read = readToken(services.config.secret, 'view', token)
    if (!read) return null
    const em = crossOrganization(services)
    const find = () => findMail(em, read.organizationId, read.messageId)
    const mail = (await find()) ?? ((await writeAwaited(em, [read])) ? await find() : null)
    const filled = mail && (await renderer.fillForBrowser(mail))
    return filled?.html ?? null
  }
}
