import { CAMPAIGN_LIMITS } from '../../../schema/campaign.ts'
import { readOwnEmail } from '../addresses.ts'
import { oneLine, refuse } from '../text.ts'

/** What a campaign is called in lists. */
export function readName(name: string, path = 'name'): string {
  const line = oneLine(name.trim(), path, CAMPAIGN_LIMITS.name)
  if (line === '') refuse(path, 'is blank; send a name that people recognise, such as "March newsletter".')
  return line
}

/** The subject line, which may hold variables. */
export function readSubject(subject: string): string {
  const line = oneLine(subject, 'subject', CAMPAIGN_LIMITS.line)
  if (line.trim() === '') refuse('subject', 'is blank; send the line that readers see in their inbox.')
  return line
}

/** The preview line; blank is none. */
export function readPreview(preview: string | null): string | null {
  return preview === null ? null : oneLine(preview.trim(), 'preview', CAMPAIGN_LIMITS.line) || null
}

/** Where answers go; null is the sender's own. */
export function readReplyTo(replyTo: string | null): string | null {
  return replyTo === null ? null : readOwnEmail(replyTo, 'replyTo')
}
