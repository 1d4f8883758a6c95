import { CONTENT_TYPES } from '../../../schema/values.ts'
import type { Call } from '../../catalogue/tool.ts'
import { compileContent } from '../../content/compile.ts'
import { fillContent } from '../../content/fill.ts'
import type { MessageSource } from '../messages.ts'
import { organizationVariables, personVariables } from '../variables.ts'

/** An email that was accepted, and the person it goes to as they are now; null members where there is nobody any more. */
type Accepted = {
  source: Partial<MessageSource>
  marketing: boolean
  recipient: string
  subscriberName: string | null
  phone: string | null
  fields: Record<string, unknown> | null
}

const FORMATS = [...CONTENT_TYPES, 'HTML'] as const

/**
 * The bodies of an email, made again from what is kept of it. Its links lead where they say and its personal addresses
 * are samples, so that reading it counts nothing and unsubscribes nobody.
 */
export function renderAgain(call: Call, email: Accepted): { html: string; text: string } {
  const { source, recipient, subscriberName, phone, fields } = email
  const { baseUrl } = call.services.config
  const compiled = compileContent({
    contentType: FORMATS.find((format) => format === source.contentType) ?? 'MARKDOWN',
    source: source.content,
    subject: source.subject ?? '',
    preview: source.preview ?? null,
    text: source.text,
    kind: email.marketing ? 'marketing' : 'transactional',
  })
  const { name } = call.organization
  const { html, text } = fillContent(compiled, {
    variables:
      fields === null
        ? organizationVariables(name)
        : personVariables({ fields, name: subscriberName, email: recipient, phone }, name),
    urls: {
      unsubscribe: `${baseUrl}/u/preview`,
      online: `${baseUrl}/v/preview`,
      confirm: source.confirms && `${baseUrl}/s/preview`,
    },
  })
  return { html, text }
}
