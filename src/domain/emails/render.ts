import type { Call } from '../../catalogue/tool.ts'
import { fillContent } from '../../content/fill.ts'
import { organizationVariables, personVariables } from '../library/variables.ts'
import type { MessageSource } from './messages.ts'
import { compileStored } from './stored-content.ts'

/**
 * An accepted email with the current data of its recipient; those members are null for a test, and when the subscriber
 * is gone.
 */
type Accepted = {
  source: Partial<MessageSource>
  marketing: boolean
  isTest: boolean
  recipient: string
  subscriberName: string | null
  phone: string | null
  fields: Record<string, unknown> | null
}

/**
 * Renders the bodies of an email again from its stored source. Links are not tracked and personal addresses are
 * samples, so that reading it counts nothing and unsubscribes nobody.
 */
export function renderAgain(call: Call, email: Accepted): { html: string; text: string } {
  const { source, recipient, subscriberName, phone, fields, isTest } = email
  const { baseUrl } = call.services.config
  const compiled = compileStored(source, email)
  const { name } = call.organization
  const { html, text } = fillContent(compiled, {
    variables:
      fields === null && !isTest
        ? organizationVariables(name)
        : personVariables({ fields: fields ?? {}, name: subscriberName, email: recipient, phone }, name),
    showAll: isTest,
    urls: {
      unsubscribe: `${baseUrl}/u/preview`,
      online: `${baseUrl}/v/preview`,
      confirm: source.confirms && `${baseUrl}/s/preview`,
    },
  })
  return { html, text }
}
