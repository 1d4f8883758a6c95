import type { FillInput } from '../content/fill.ts'
import { personVariables } from '../domain/library/variables.ts'
import type { Services } from '../services.ts'
import type { Mail } from './claims.ts'
import { MessageTokens } from './tracking-token.ts'

/** What the links of an email need: the public address of the API, and the secret that signs them. */
type Signing = Pick<Services['config'], 'baseUrl' | 'secret'>

/** Returns what fills a compiled email for its recipient: variables, links and, with `pixel`, the tracking pixel. */
export function fillInputOf(
  { baseUrl, secret }: Signing,
  mail: Mail,
  options: { pixel: boolean },
): FillInput {
  const { id: messageId, organizationId, tracking } = mail
  const tokens = new MessageTokens(secret, { organizationId, messageId })
  return {
    variables: variablesOf(mail),
    showAll: mail.subscriberId === null,
    urls: urlsOf(baseUrl, mail, tokens),
    tracking: tracking
      ? {
          openUrl: options.pixel ? `${baseUrl}/o/${tokens.open()}.gif` : undefined,
          clickUrl: (position) => `${baseUrl}/c/${tokens.click(position)}`,
        }
      : undefined,
  }
}

function urlsOf(baseUrl: string, mail: Mail, tokens: MessageTokens): FillInput['urls'] {
  const { subscriberId } = mail
  // A test email has no subscriber who could unsubscribe; the link only shows where it would be.
  const personal = (door: string, kind: 'unsubscribe' | 'confirm'): string =>
    `${baseUrl}/${door}/${subscriberId ? tokens[kind](subscriberId) : 'preview'}`
  return {
    unsubscribe: personal('u', 'unsubscribe'),
    confirm: mail.source?.confirms ? personal('s', 'confirm') : undefined,
    // A getter, because few emails have this link.
    get online() {
      return `${baseUrl}/v/${tokens.view()}`
    },
  }
}

function variablesOf(mail: Mail): Record<string, unknown> {
  const { fields, subscriberName, recipient, phone, organizationName } = mail
  return personVariables({ fields, name: subscriberName, email: recipient, phone }, organizationName)
}
