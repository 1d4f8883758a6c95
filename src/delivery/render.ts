import type { CompiledEmail } from '../content/compile.ts'
import { type FilledEmail, fillContent } from '../content/fill.ts'
import { areShared } from '../domain/emails/links.ts'
import { compileStored } from '../domain/emails/stored-content.ts'
import type { Services } from '../services.ts'
import type { Mail } from './claims.ts'
import { signMail } from './dkim.ts'
import { createEmailCache } from './email-cache.ts'
import { fillInputOf } from './fill-input.ts'
import { formatMessageId } from './identity.ts'
import { compileCampaignSend, compileStepEmail, reading } from './mail-content.ts'
import { type ComposedMail, composeMail } from './mime.ts'
import { quote, quoteEmail } from './quoted-printable.ts'
import { returnPathOf } from './return-path.ts'
import { createSigningKeys } from './signing-keys.ts'

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

/** Room for hundreds of campaigns of 100 KB, or thousands of ordinary newsletters. */
const CACHED_BYTES = 32 << 20

/** How a compiled email is prepared before it is filled many times: quoted for mail, unchanged for a web page. */
const FORMS = { mail: quoteEmail, page: (email: CompiledEmail) => email }
type Form = keyof typeof FORMS

/** Creates a renderer. A process needs only one, which caches compiled emails and signing keys in memory. */
export function createRenderer(services: Services): Renderer {
  const { config } = services
  const kept = createEmailCache(CACHED_BYTES)
  const keys = createSigningKeys(services)

  /** Returns the compiled email in this form, the only one that is cached; null when its content no longer exists. */
  async function compiledOf(mail: Mail, form: Form): Promise<CompiledEmail | null> {
    const { source, versionId, stepId, marketing } = mail
    if (source) return FORMS[form](compileStored(source, mail))
    const isCampaign = mail.class === 'CAMPAIGN'
    if (!versionId || !(stepId || isCampaign)) return null
    return await kept(`${form}/${versionId}/${marketing}/${stepId}`, async () => {
      const email = isCampaign
        ? await compileCampaignSend(services, mail)
        : await compileStepEmail(services, mail)
      return email && FORMS[form](email)
    })
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
    const input = fillInputOf(config, mail, { pixel: true })
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
    const returnPath = returnPathOf(config.secret, mail)
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
      return email && fillContent(email, fillInputOf(config, mail, { pixel: false }))
    },
  }
}
