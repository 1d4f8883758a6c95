import { sql } from 'kysely'

import { isOwnFault } from '../catalogue/database-error.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import type { CompiledEmail } from '../content/compile.ts'
import { row } from '../database.ts'
import { compileStored, type StoredContent } from '../domain/emails/stored-content.ts'
import type { Services } from '../services.ts'
import type { Mail } from './claims.ts'

/**
 * Thrown when the content or the signing key of an email could not be read. The content is not at fault, and the email
 * is tried again.
 */
export class Unreadable extends Error {}

/** Waits for something that an email is made of. Throws `Unreadable` if the cause lies outside of this email. */
export async function reading<Found>(work: Promise<Found>): Promise<Found> {
  try {
    return await work
  } catch (error) {
    if (isOwnFault(error)) throw error
    throw new Unreadable('what the email is made of could not be read', { cause: error })
  }
}

/** Compiles the content of the email's step, in the version of its run. Returns null when it no longer exists. */
export async function compileStepEmail(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await reading(
    row<{ email: StoredContent | null }>(
      crossOrganization(services),
      sql`select definition -> 'emails' -> ${mail.stepId}::text as email from automation_version
        where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
    ),
  )
  return found?.email ? compileStored(found.email, mail) : null
}

/** Compiles the content that was frozen when the campaign was due. Returns null when it no longer exists. */
export async function compileCampaignSend(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await reading(
    row<StoredContent>(
      crossOrganization(services),
      sql`select subject, preview, content, content_type as "contentType" from campaign_send
        where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
    ),
  )
  return found && compileStored(found, mail)
}
