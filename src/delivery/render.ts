import { sql } from 'kysely'

import { CONTENT_TYPES } from '../../schema/values.ts'
import { row } from '../database.ts'
import type { Services } from '../services.ts'
import { type CompiledEmail, compileContent } from '../content/compile.ts'
import { type FilledEmail, fillContent } from '../content/fill.ts'
import { encodeId } from '../ids.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { personVariables } from '../domain/variables.ts'
import type { Mail } from './claims.ts'
import { signMail } from './dkim.ts'
import { formatMessageId } from './identity.ts'
import { composeMail } from './mime.ts'
import { createSigningKeys } from './signing-keys.ts'
import { signToken } from './tracking-token.ts'

/** An email as one person gets it. `targets[position]` is where its link at that position leads. */
export type RenderedMail = {
  subject: string
  targets: readonly string[]
  data: string
  /** Why it cannot be sent at all. */
  refusal?: string
}

/** Renders stored email; compiled versions are kept, because one version's step goes to many people. */
export type Renderer = {
  /** The finished message for SMTP. Null when there is nothing to render it from any more. */
  compose(mail: Mail): Promise<RenderedMail | null>
  /** What a browser shows of an email that was sent: its links count, its pixel does not. */
  fillForBrowser(mail: Mail): Promise<FilledEmail | null>
}

const CACHED_EMAILS = 500

type EmailContent = Parameters<typeof compileContent>[0]
type StepEmail = { subject?: string; preview?: string | null; content?: unknown; contentType?: string }

export function createRenderer(services: Services): Renderer {
  const { baseUrl, secret } = services.config
  const compiled = new Map<string, Promise<CompiledEmail | null>>()
  const keys = createSigningKeys(services)

  async function compiledOf(mail: Mail): Promise<CompiledEmail | null> {
    if (mail.source) return compileContent(contentOf(mail, mail.source))
    const isCampaign = mail.class === 'CAMPAIGN'
    if (!mail.versionId || !(mail.stepId || isCampaign)) return null
    const key = `${mail.versionId}/${mail.marketing}/${mail.stepId}`
    const known = compiled.get(key)
    if (known) {
      // Re-inserted last: a Map keeps the order, so the first key is the one longest unused.
      compiled.delete(key)
      compiled.set(key, known)
      return await known
    }
    const loading = isCampaign ? loadCampaign(services, mail) : loadStep(services, mail)
    compiled.set(key, loading)
    const oldest = compiled.size > CACHED_EMAILS ? compiled.keys().next().value : undefined
    if (oldest !== undefined) compiled.delete(oldest)
    try {
      return await loading
    } catch (error) {
      compiled.delete(key)
      throw error
    }
  }

  function fill(mail: Mail, email: CompiledEmail, options: { pixel: boolean }): FilledEmail {
    const ids = { organizationId: mail.organizationId, messageId: mail.id }
    return fillContent(email, {
      variables: variablesOf(mail),
      showAll: mail.subscriberId === null,
      urls: {
        unsubscribe: personalUrl(mail, 'u', 'unsubscribe'),
        ...(mail.source?.confirms && { confirm: personalUrl(mail, 's', 'confirm') }),
        online: `${baseUrl}/v/${signToken(secret, { kind: 'view', ...ids })}`,
      },
      ...(mail.tracking && {
        tracking: {
          ...(options.pixel && {
            openUrl: `${baseUrl}/o/${signToken(secret, { kind: 'open', ...ids })}.gif`,
          }),
          clickUrl: (position: number) =>
            `${baseUrl}/c/${signToken(secret, { kind: 'click', ...ids, position })}`,
        },
      }),
    })
  }

  function personalUrl(mail: Mail, door: 'u' | 's', kind: 'unsubscribe' | 'confirm'): string {
    const { organizationId, id: messageId, subscriberId } = mail
    // A test goes to nobody who could leave; its link shows where one would stand.
    if (!subscriberId) return `${baseUrl}/${door}/preview`
    return `${baseUrl}/${door}/${signToken(secret, { kind, organizationId, messageId, subscriberId })}`
  }

  async function signed(mail: Mail, data: string): Promise<string> {
    const key = await keys.of(mail)
    if (!key) return data
    const end = data.indexOf('\r\n\r\n')
    return (await signMail(data.slice(0, end), data.slice(end + 4), key)) + data
  }

  return {
    async compose(mail) {
      const email = await compiledOf(mail)
      if (!email) return null
      const filled = fill(mail, email, { pixel: true })
      const data = composeMail({
        messageId: formatMessageId(mail),
        date: new Date(),
        from: { name: mail.fromName, email: mail.fromEmail },
        to: { name: mail.subscriberName, email: mail.recipient },
        replyTo: mail.replyTo,
        subject: filled.subject,
        html: filled.html,
        text: filled.text,
        unsubscribeUrl: mail.marketing && mail.subscriberId ? personalUrl(mail, 'u', 'unsubscribe') : null,
      })
      return { subject: filled.subject, targets: filled.links, data: await signed(mail, data) }
    },
    async fillForBrowser(mail) {
      const email = await compiledOf(mail)
      return email && fill(mail, email, { pixel: false })
    },
  }
}

async function loadStep(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await row<{ email: StepEmail | null }>(
    crossOrganization(services),
    sql`select definition -> 'emails' -> ${mail.stepId}::text as email from automation_version
      where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
  )
  return found?.email ? compileContent(contentOf(mail, found.email)) : null
}

/** What was frozen when the campaign fell due. */
async function loadCampaign(services: Services, mail: Mail): Promise<CompiledEmail | null> {
  const found = await row<StepEmail>(
    crossOrganization(services),
    sql`select subject, preview, content, content_type as "contentType" from campaign_send
      where organization_id = ${mail.organizationId} and id = ${mail.versionId}`,
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
    kind: mail.marketing ? 'marketing' : 'transactional',
  }
}

function variablesOf(mail: Mail): Record<string, unknown> {
  const { fields, subscriberName, recipient, phone, organizationName } = mail
  return personVariables({ fields, name: subscriberName, email: recipient, phone }, organizationName)
}

/** What the events of an email carry, as TypeIDs. */
export function eventData(mail: Mail, subject: string | null): Record<string, unknown> {
  return {
    emailId: encodeId('eml', mail.id),
    ...(subject !== null && { subject }),
    ...(mail.campaignId && { campaignId: encodeId('cmp', mail.campaignId) }),
    ...(mail.automationId && { workflowId: encodeId('wf', mail.automationId) }),
    ...(mail.runId && { runId: encodeId('run', mail.runId) }),
    ...(mail.stepId && { stepId: mail.stepId }),
  }
}
