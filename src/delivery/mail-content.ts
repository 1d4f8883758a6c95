import { sql } from 'kysely'

import { CONTENT_TYPES } from '../../schema/values.ts'
import { isOwnFault } from '../catalogue/database-error.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { type CompiledEmail, compileContent } from '../content/compile.ts'
import { row } from '../database.ts'
import type { MessageSource } from '../domain/messages.ts'
import type { Services } from '../services.ts'
import type { Mail } from './claims.ts'

type StepEmail = Partial<Pick<MessageSource, 'subject' | 'preview' | 'content' | 'text'>> & {
  contentType?: string
}

const FORMATS = [...CONTENT_TYPES, 'HTML'] as const

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

/** Compiles content for one email. */
export function compileSource(mail: Mail, source: StepEmail): CompiledEmail {
  return compileContent({
    contentType: FORMATS.find((format) => format === source.contentType) ?? 'MARKDOWN',
    source: source.content,
    subject: source.subject ?? '',
    preview: source.preview ?? null,
    text: source.text,
    kind: mail.marketing ? 'marketing' : 'transactional',
  })
}

/** Compiles the content of the email's step, in the version of its run. Returns null when it no longer exists. */
export async function compileStepEmail(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await reading(
    row<{ email: StepEmail | null }>(
      crossOrganization(services),
      sql`select definition -> 'emails' -> ${mail.stepId}::text as email from automation_version
        where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
    ),
  )
  return found?.email ? compileSource(mail, found.email) : null
}

/** Compiles the content that was frozen when the campaign was due. Returns null when it no longer exists. */
export async function compileCampaignSend(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await reading(
    row<StepEmail>(
      crossOrganization(services),
      sql`select subject, preview, content, content_type as "contentType" from campaign_send
        where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
    ),
  )
  return found && compileSource(mail, found)
}
