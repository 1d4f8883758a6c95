import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { findMail } from '../delivery/claims.ts'
import { createRenderer } from '../delivery/render.ts'
import { readToken } from '../delivery/tracking-token.ts'
import { writeAwaited } from '../domain/campaigns/batches.ts'
import type { Services } from '../services.ts'

/**
 * An email's HTML may do nothing in a browser but show itself and open links: no script, no form, no frame around it,
 * and no origin to share anything with.
 */
export const VIEW_SECURITY_POLICY =
  "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; img-src http: https: data:; style-src 'unsafe-inline'; font-src https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The HTML of an email as its recipient may read it in a browser, or null when the link is not one of ours. */
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
