import { sql } from 'kysely'

import type { Definition, StepOf } from '../../../../schema/automation.ts'
import type { CampaignKind } from '../../../../schema/campaign.ts'
import type { ContentType } from '../../../../schema/values.ts'
import { Failure, type Fault, faultsOf } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, rows } from '../../../database.ts'
import { encodeId, newId, readId } from '../../../ids.ts'
import { ownEmailFault } from '../../addresses.ts'
import { readContent, typeOfContent } from '../../library/content.ts'
import type { Automation } from './records.ts'

/**
 * The planned write of one EMAIL step's internal email: a new row (`isNew`), which copies `sourceId` if that is not
 * null, or an update of the row `id`. Null in a content member means that the step does not set it.
 */
export type EmailPlan = {
  id: string
  stepId: string
  name: string
  isNew: boolean
  sourceId: string | null
  /** Whether members that the configuration leaves out become empty. If not, they keep their stored values. */
  replaces: boolean
  subject: string | null
  preview: string | null
  content: unknown
  contentType: ContentType | null
  senderId: string | null
  replyTo: string | null
}

/**
 * The plans of a draft's emails, and its faults. `missing` has the faults for ids that do not exist, `faults` the
 * others.
 */
export type EmailPlans = { plans: EmailPlan[]; faults: Fault[]; missing: Fault[] }

type Stored = {
  id: string
  kind: CampaignKind
  automationId: string | null
  stepId: string | null
}
type Placed = { step: StepOf<'EMAIL'>; path: string }

/** Decides which internal email each EMAIL step owns and what to write to it. Writes nothing. */
export async function planEmails(
  call: Call,
  automation: Pick<Automation, 'id' | 'draft'>,
  definition: Definition,
  unreadable: ReadonlySet<number>,
): Promise<EmailPlans> {
  const placed = definition.steps.flatMap((step, position): Placed[] =>
    step.type === 'EMAIL' && !unreadable.has(position) ? [{ step, path: `steps[${position}].config` }] : [],
  )
  if (placed.length === 0) return { plans: [], faults: [], missing: [] }
  const campaigns = await readCampaigns(call, automation.id, placed)
  const senders = await readSenderIds(call, placed)
  const owners = chooseOwners(automation, placed, campaigns)
  const result: EmailPlans = { plans: [], faults: placed.flatMap(lineFaults), missing: [] }
  for (const place of placed) {
    result.missing.push(...missingIds(place, campaigns, senders))
    const written = await readWritten(call, place)
    result.faults.push(...written.faults)
    result.plans.push(planOf(place, campaigns, owners, written))
  }
  return result
}

/** Returns the definition as it is stored: each EMAIL step has the id of its internal email in place of the content. */
export function namingEmails(definition: Definition, plans: readonly EmailPlan[]): Definition {
  const ids = new Map(plans.map(({ stepId, id }) => [stepId, id]))
  return {
    ...definition,
    steps: definition.steps.map((step) => {
      const id = ids.get(step.id)
      if (step.type !== 'EMAIL' || id === undefined) return step
      return {
        ...step,
        config: {
          campaignId: encodeId('cmp', id),
          transactional: step.config.transactional,
          ...(step.config.sendWindow && { sendWindow: step.config.sendWindow }),
        },
      }
    }),
  }
}

async function readCampaigns(
  { em, organization }: Call,
  automationId: string,
  placed: readonly Placed[],
): Promise<Map<string, Stored>> {
  const named = placed.flatMap(({ step }) => readId('cmp', step.config.campaignId ?? '') ?? [])
  const found = await rows<Stored>(
    em,
    sql`select id, kind, automation_id as "automationId", step_id as "stepId" from campaign where organization_id = ${organization.id}
        and (automation_id = ${automationId} or id = any(${array(named, 'uuid')}))
      order by id desc`,
  )
  return new Map(found.map((campaign) => [campaign.id, campaign]))
}

async function readSenderIds({ em, organization }: Call, placed: readonly Placed[]): Promise<Set<string>> {
  const named = placed.flatMap(({ step }) => readId('snd', step.config.senderId ?? '') ?? [])
  if (named.length === 0) return new Set()
  const found = await rows<{ id: string }>(
    em,
    sql`select id from sender where organization_id = ${organization.id} and id = any(${array(named, 'uuid')})`,
  )
  return new Set(found.map(({ id }) => id))
}

/**
 * Returns which step (value) owns which of the automation's own emails (key). An email that steps name by `campaignId`
 * goes to the step it belongs to if that names it, else to the first that names it (the step was renamed). Then each
 * step without a `campaignId` takes back the email that it had, if no other step owns it by now.
 */
function chooseOwners(
  automation: Pick<Automation, 'id' | 'draft'>,
  placed: readonly Placed[],
  campaigns: ReadonlyMap<string, Stored>,
): Map<string, string> {
  const owners = new Map<string, string>()
  const isOwn = (id: string) => campaigns.get(id)?.automationId === automation.id
  const named = placed.flatMap(({ step }) => {
    const id = readId('cmp', step.config.campaignId ?? '')
    return id !== null && isOwn(id) ? [{ stepId: step.id, id }] : []
  })
  const byOwner = named.filter(({ stepId, id }) => campaigns.get(id)?.stepId === stepId)
  for (const { stepId, id } of [...byOwner, ...named]) if (!owners.has(id)) owners.set(id, stepId)
  const current = new Map(
    automation.draft.steps.map((step) => [
      step.id,
      step.type === 'EMAIL' ? readId('cmp', step.config.campaignId ?? '') : null,
    ]),
  )
  for (const { step } of placed) {
    if (step.config.campaignId !== undefined) continue
    const drafted = current.get(step.id)
    const earlier = [...campaigns.values()].find(({ id, stepId }) => stepId === step.id && isOwn(id))
    const id = drafted && isOwn(drafted) ? drafted : earlier?.id
    if (id !== undefined && !owners.has(id)) owners.set(id, step.id)
  }
  return owners
}

function planOf(
  { step }: Placed,
  campaigns: ReadonlyMap<string, Stored>,
  owners: ReadonlyMap<string, string>,
  { content, contentType }: Written,
): EmailPlan {
  const { config } = step
  const inline = {
    stepId: step.id,
    name: step.name?.trim() || step.id,
    subject: config.subject ?? null,
    preview: config.preview ?? null,
    content,
    contentType,
    senderId: config.senderId === undefined ? null : readId('snd', config.senderId),
    replyTo: config.replyTo ?? null,
  }
  const own = [...owners].find(([, stepId]) => stepId === step.id)?.[0]
  if (own !== undefined) {
    return { ...inline, id: own, isNew: false, sourceId: null, replaces: config.campaignId === undefined }
  }
  const source = campaigns.get(readId('cmp', config.campaignId ?? '') ?? '')
  return { ...inline, id: newId(), isNew: true, sourceId: source?.id ?? null, replaces: true }
}

/** The content of a step as it will be stored, and its faults. */
type Written = { content: unknown; contentType: ContentType | null; faults: Fault[] }

async function readWritten(call: Call, { step, path }: Placed): Promise<Written> {
  const { content } = step.config
  if (content === undefined) return { content: null, contentType: null, faults: [] }
  const contentType = step.config.contentType ?? typeOfContent(content)
  try {
    const checked = await readContent(call, contentType, content)
    return { content: checked.content, contentType, faults: [] }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const faults = faultsOf(error).map((fault) => ({
      stepId: step.id,
      path: `${path}.${fault.path}`,
      message: fault.message,
    }))
    return { content, contentType, faults }
  }
}

function missingIds(
  { step, path }: Placed,
  campaigns: ReadonlyMap<string, Stored>,
  senders: ReadonlySet<string>,
): Fault[] {
  const { campaignId, senderId } = step.config
  const faults: Fault[] = []
  const absent = (member: string, id: string, what: string, tool: string) =>
    faults.push({
      stepId: step.id,
      path: `${path}.${member}`,
      message: `there is no ${what} ${JSON.stringify(id.slice(0, 80))} in this organization; ${tool}`,
    })
  if (campaignId !== undefined && !campaigns.has(readId('cmp', campaignId) ?? '')) {
    absent('campaignId', campaignId, 'campaign', 'leave campaignId out to write a new email in place')
  }
  if (senderId !== undefined && !senders.has(readId('snd', senderId) ?? '')) {
    absent('senderId', senderId, 'sender', 'get_email_senders lists what there is')
  }
  return faults
}

/** Checks what the schema cannot express: the subject and preview are one line, and `replyTo` is a valid address. */
function lineFaults({ step, path }: Placed): Fault[] {
  const { subject, preview, replyTo } = step.config
  const faults: Fault[] = []
  for (const [member, text] of Object.entries({ subject, preview })) {
    if (text === undefined || !/[\p{Cc}\u2028\u2029]/u.test(text)) continue
    const message = 'holds a line break or another control character; write one line'
    faults.push({ stepId: step.id, path: `${path}.${member}`, message })
  }
  const wrong = replyTo === undefined ? null : ownEmailFault(replyTo)
  if (wrong !== null) faults.push({ stepId: step.id, path: `${path}.replyTo`, message: wrong })
  return faults
}
