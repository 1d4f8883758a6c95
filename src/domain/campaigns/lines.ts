import { CAMPAIGN_LIMITS } from '../../../schema/campaign.ts'
import { refuse } from '../../catalogue/failure.ts'
import { readOwnEmail } from '../addresses.ts'
import { nameLine, oneLine } from '../text.ts'

/** Checks and returns the name that lists show. */
export function readName(name: string, path = 'name'): string {
  return nameLine(name, path, CAMPAIGN_LIMITS.name, 'a name such as "March newsletter"')
}

/** Checks and returns the subject line, which may contain variables. */
export function readSubject(subject: string): string {
  const line = oneLine(subject, 'subject', CAMPAIGN_LIMITS.line)
  if (line.trim() === '') refuse('subject', 'is blank; send the line that readers see in their inbox.')
  return line
}

/** Checks and returns the preview line; a blank one becomes null. */
export function readPreview(preview: string | null): string | null {
  return preview === null ? null : oneLine(preview.trim(), 'preview', CAMPAIGN_LIMITS.line) || null
}

/** Checks and returns the reply-to address; null means the sender's own. */
export function readReplyTo(replyTo: string | null): string | null {
  return replyTo === null ? null : readOwnEmail(replyTo, 'replyTo')
}
