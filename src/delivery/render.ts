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

/** An email as one recipient gets it: `data` is the whole message, and bounces come back to `returnPath`. */
export type RenderedMail = { subject: string; data: string; returnPath: string }

/** An email that is ready to be composed. */
export type PreparedMail = {
  /** The targets of its links by position; empty when they are stored with its campaign. */
  targets: readonly string[]
  /**
   * Returns the finished message for SMTP. It is made at sending time if possible, because finished messages that wait
   * burden the garbage collector. Null when the content no longer exists.
   */
  compose(): Promise<RenderedMail | null>
}

/** Renders stored email. Compiled versions are cached, because one version goes to many people. */
export type Renderer = {
  /** Returns null when the email's content no longer exists. */
  prepare(mail: Mail): Promise<PreparedMail | null>
  /**
   * Returns what a browser shows of a sent email, or null when its content no longer exists. Its links are tracked; it
   * has no pixel.
   */
  fillForBrowser(mail: Mail): Promise<FilledEmail | null>
}

/**
 * Thrown when the content or the signing key of an email could not be read. The content is not at fault, and the email
 * is tried again.
 */
export class Unreadable extends Error {}

async function reading<Found>(work: Promise<Found>): Promise<Found> {
  try {
    return await work
  } catch (error) {
    if (isOwnFault(error)) throw error
    throw new Unreadable('what the email is made of could not be read', { cause: error })
  }
}

/** Room for hundreds of campaigns of 100 KB, or thousands of ordinary newsletters. */
const CACHED_BYTES = 32 << 20

type EmailContent = Parameters<typeof compileContent>[0]
/** How a compiled email is prepared before it is filled many times: quoted for mail, unchanged for a web page. */
const FORMS = { mail: quoteEmail, page: (email: CompiledEmail) => email }
type Form = keyof typeof FORMS

type PersonalUrls = FillInput['urls']
type StepEmail = Partial<Pick<MessageSource, 'subject' | 'preview' | 'content' | 'text'>> & {
  contentType?: string
}

/** Creates a renderer. A process needs only one, which caches compiled emails and signing keys in memory. */
export function createRenderer(services: Services): Renderer {
  const { baseUrl, secret } = services.config
  const kept = createEmailCache(CACHED_BYTES)
  const keys = createSigningKeys(services)

  /** Returns the compiled email in this form, the only one that is cached; null when its content no longer exists. */
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

  /**
   * Looks up the compiled email again: if waiting emails of many campaigns held theirs, memory use would exceed the
   * cache.
   */
  async function composeLater(mail: Mail): Promise<RenderedMail | null> {
    const email = await compiledOf(mail, 'mail')
    return email && (await compose(mail, email))
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

/** Loads the content that was frozen when the campaign was due. */
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

/** Returns the data that the events of an email carry, with ids as TypeIDs. */
export function eventData(mail: Mail, subject: string | null): Record<string, unknown> {
  return { ...emailFacts({ ...mail, messageId: mail.id }), ...(subject !== null && { subject }) }
}
