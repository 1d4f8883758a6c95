import { sql } from 'kysely'

import { CONTENT_TYPES } from '../../schema/values.ts'
import { isOwnFault } from '../catalogue/database-error.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { type CompiledEmail, compileContent } from '../content/compile.ts'
import { type FilledEmail, type FillInput, fillContent } from '../content/fill.ts'
import { row } from '../database.ts'
import { emailFacts } from '../domain/email-facts.ts'
import { areShared } from '../domain/links.ts'
import type { MessageSource } from '../domain/messages.ts'
import { personVariables } from '../domain/variables.ts'
import type { Services } from '../services.ts'
import type { Mail } from './claims.ts'
import { signMail } from './dkim.ts'
import { createEmailCache } from './email-cache.ts'
import { formatMessageId } from './identity.ts'
import { type ComposedMail, composeMail } from './mime.ts'
import { quote, quoteEmail } from './quoted-printable.ts'
import { returnPathOf } from './return-path.ts'
import { createSigningKeys } from './signing-keys.ts'
import { MessageTokens } from './tracking-token.ts'

/** An email as one person gets it; `returnPath` is where its bounces come back to. */
export type RenderedMail = { subject: string; data: string; returnPath: string }

/** An email before it is sent. */
export type PreparedMail = {
  /** Where its links lead by position; none, where its campaign keeps them. */
  targets: readonly string[]
  /** The finished message for SMTP. Made when it is sent if possible: messages that wait are garbage that grows old. */
  compose(): Promise<RenderedMail>
}

/** Renders stored email; compiled versions are kept, because one version's step goes to many people. */
export type Renderer = {
  /** Null when there is nothing to render it from any more. */
  prepare(mail: Mail): Promise<PreparedMail | null>
  /** What a browser shows of an email that was sent: its links count, its pixel does not. */
  fillForBrowser(mail: Mail): Promise<FilledEmail | null>
}

/** What an email is made of, or signed with, could not be read: its content is not at fault, and it is tried again. */
export class Unreadable extends Error {}

async function reading<Found>(work: Promise<Found>): Promise<Found> {
  try {
    return await work
  } catch (error) {
    if (isOwnFault(error)) throw error
    throw new Unreadable('what the email is made of could not be read', { cause: error })
  }
}

/** Campaigns of 100 KB by the hundred, or ordinary newsletters by the thousand. */
const CACHED_BYTES = 32 << 20

type EmailContent = Parameters<typeof compileContent>[0]
/** What is made of a compiled email before it is filled again and again. */
const FORMS = { mail: quoteEmail, page: (email: CompiledEmail) => email }
type Form = keyof typeof FORMS

type PersonalUrls = FillInput['urls']
type StepEmail = Partial<Pick<MessageSource, 'subject' | 'preview' | 'content' | 'text'>> & {
  contentType?: string
}

/** One for each process: it keeps compiled emails and signing keys in memory. */
export function createRenderer(services: Services): Renderer {
  const { baseUrl, secret } = services.config
  const kept = createEmailCache(CACHED_BYTES)
  const keys = createSigningKeys(services)

  /** Compiled and brought into its form, in which alone it is kept. */
  async function compiledOf(mail: Mail, form: Form): Promise<CompiledEmail | null> {
    const { source, versionId, stepId, marketing } = mail
    if (source) return FORMS[form](compileContent(contentOf(mail, source)))
    const isCampaign = mail.class === 'CAMPAIGN'
    if (!versionId || !(stepId || isCampaign)) return null
    return await kept(`${form}/${versionId}/${marketing}/${stepId}`, async () => {
      const email = isCampaign ? await loadCampaign(services, mail) : await loadStep(services, mail)
      return email && FORMS[form](email)
    })
  }

  function urlsOf(mail: Mail, tokens: MessageTokens): PersonalUrls {
    const { subscriberId } = mail
    // A test goes to nobody who could leave; its links show where one would stand.
    const personal = (door: string, kind: 'unsubscribe' | 'confirm'): string =>
      `${baseUrl}/${door}/${subscriberId ? tokens[kind](subscriberId) : 'preview'}`
    return {
      unsubscribe: personal('u', 'unsubscribe'),
      confirm: mail.source?.confirms ? personal('s', 'confirm') : undefined,
      // Few emails have this link.
      get online() {
        return `${baseUrl}/v/${tokens.view()}`
      },
    }
  }

  function inputFor(mail: Mail, options: { pixel: boolean }): FillInput {
    const { id: messageId, organizationId, tracking } = mail
    const tokens = new MessageTokens(secret, { organizationId, messageId })
    return {
      variables: variablesOf(mail),
      showAll: mail.subscriberId === null,
      urls: urlsOf(mail, tokens),
      tracking: tracking
        ? {
            openUrl: options.pixel ? `${baseUrl}/o/${tokens.open()}.gif` : undefined,
            clickUrl: (position) => `${baseUrl}/c/${tokens.click(position)}`,
          }
        : undefined,
    }
  }

  async function signed(mail: Mail, { headers, body }: ComposedMail): Promise<string> {
    const key = await reading(keys.of(mail))
    const signature = key ? await signMail(headers, body, key) : ''
    return `${signature}${headers}\r\n${body}`
  }

  async function compose(
    mail: Mail,
    email: CompiledEmail,
  ): Promise<RenderedMail & { targets: readonly string[] }> {
    const input = inputFor(mail, { pixel: true })
    const { subject, html, text, links } = fillContent(email, input, quote)
    const composed = composeMail({
      messageId: formatMessageId(mail),
      date: new Date(),
      from: { name: mail.fromName, email: mail.fromEmail },
      to: { name: mail.subscriberName, email: mail.recipient },
      replyTo: mail.replyTo,
      subject,
      html,
      text,
      unsubscribeUrl: mail.marketing && mail.subscriberId ? input.urls.unsubscribe : null,
    })
    const returnPath = returnPathOf(secret, mail)
    return { subject, targets: links, returnPath, data: await signed(mail, composed) }
  }

  /** Asks for the email once more: of many campaigns, all that wait would hold more than what is kept. */
  async function composeLater(mail: Mail): Promise<RenderedMail> {
    const email = await compiledOf(mail, 'mail')
    if (!email) throw new Error('its content is gone')
    return await compose(mail, email)
  }

  return {
    async prepare(mail) {
      const email = await compiledOf(mail, 'mail')
      if (!email) return null
      const isOfSend = mail.class === 'CAMPAIGN' && !mail.source
      if (isOfSend && areShared(email)) return { targets: [], compose: () => composeLater(mail) }
      const composed = await compose(mail, email)
      return { targets: composed.targets, compose: async () => composed }
    },
    async fillForBrowser(mail) {
      const email = await compiledOf(mail, 'page')
      return email && fillContent(email, inputFor(mail, { pixel: false }))
    },
  }
}

async function loadStep(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await reading(
    row<{ email: StepEmail | null }>(
      crossOrganization(services),
      sql`select definition -> 'emails' -> ${mail.stepId}::text as email from automation_version
        where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
    ),
  )
  return found?.email ? compileContent(contentOf(mail, found.email)) : null
}

/** What was frozen when the campaign fell due. */
async function loadCampaign(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await reading(
    row<StepEmail>(
      crossOrganization(services),
      sql`select subject, preview, content, content_type as "contentType" from campaign_send
        where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
    ),
  )
  return found && compileContent(contentOf(mail, found))
}

const FORMATS = [...CONTENT_TYPES, 'HTML'] as const

function contentOf(mail: Mail, source: StepEmail): EmailContent {
  return {
    contentType: FORMATS.find((format) => format === source.contentType) ?? 'MARKDOWN',
    source: source.content,
    subject: source.subject ?? '',
    preview: source.preview ?? null,
    text: source.text,
    kind: mail.marketing ? 'marketing' : 'transactional',
  }
}

function variablesOf(mail: Mail): Record<string, unknown> {
  const { fields, subscriberName, recipient, phone, organizationName } = mail
  return personVariables({ fields, name: subscriberName, email: recipient, phone }, organizationName)
}

/** What the events of an email carry, as TypeIDs. */
export function eventData(mail: Mail, subject: string | null): Record<string, unknown> {
  return { ...emailFacts({ ...mail, messageId: mail.id }), ...(subject !== null && { subject }) }
}
