import { sql } from 'kysely'

import type { Filter } from '../../../schema/audience.ts'
import type { SendingStop } from '../../../schema/deliverability.ts'
import type { Explanation, Reason, VerdictOutcome } from '../../../schema/explanation.ts'
import { Failure, faultsOf } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import type { CampaignRow } from '../campaigns/records.ts'
import { readSendable } from '../campaigns/sendable.ts'
import { findStop } from '../deliverability/stops.ts'
import { isPending } from '../emails/messages.ts'
import { timestamp } from '../text.ts'
import { type Email, emailReasons, hasArrived, readEmails } from './email.ts'
import { filterReasons } from './filters.ts'
import { type Decision, decisionWords, readDecisions } from './ledger.ts'
import { canGet, changesSince, consentReasons, type Person } from './person.ts'
import { inOrder, verdictOf } from './verdict.ts'
import { spoken } from './words.ts'

type Send = { startedAt: string; isFrozen: boolean; filters: Filter[]; from: string }
/** `ahead`: recipients whose email is written earlier, counted up to `MOST_AHEAD` + 1. */
type Recipient = { reason: string | null; messageId: string | null; ahead: number }

const MOST_AHEAD = 1_000

/** Explains why a person got a campaign, did not get it, or would or would not get it. */
export async function explainCampaign(
  call: Call,
  person: Person,
  campaign: CampaignRow,
): Promise<Explanation> {
  const send = await findSend(call, campaign)
  const recipient =
    (await findRecipient(call, campaign, person)) ?? (await findFormerRecipient(call, campaign, person))
  if (send !== null && recipient !== null)
    return await explainRecipient(call, person, campaign, send, recipient)
  if (send?.isFrozen || campaign.status === 'SENT' || campaign.status === 'FAILED') {
    return await explainAbsence(call, person, campaign, send)
  }
  return await explainProspect(call, person, campaign, send)
}

/** Explains the campaign for a recipient in the frozen audience. */
async function explainRecipient(
  call: Call,
  person: Person,
  campaign: CampaignRow,
  send: Send,
  { reason, messageId, ahead }: Recipient,
): Promise<Explanation> {
  const ledger = await readDecisions(call, person.id, sql<boolean>`d.campaign_id = ${campaign.id}`)
  const [email] = messageId === null ? [] : await readEmails(call, sql<boolean>`m.id = ${messageId}`)
  const message =
    'When the campaign was due they were subscribed and its filters held for them, so they were among its recipients.'
  const reasons: Reason[] = [{ at: timestamp(send.startedAt), outcome: 'FOR', code: 'IN_AUDIENCE', message }]
  if (reason !== null) {
    const at = ledger.find(({ messageId: about }) => about === null)?.at ?? null
    reasons.push({ at, outcome: 'AGAINST', code: reason, message: decisionWords(reason) })
  }
  if (email) reasons.push(...emailReasons(call, email, ledger))
  const isOpen = email ? isPending(email) : reason === null && campaign.status === 'SENDING'
  if (isOpen) {
    const stop = email ? null : await findStop(call, send.from)
    reasons.push(...waitingReasons(campaign, { email, stop, ahead }), ...consentReasons(person))
  }
  reasons.push(...(await endReasons(call, campaign, email !== undefined && hasArrived(email))))
  return verdictOf(outcomeFor(person, email, isOpen), person.who, titleOf(campaign), inOrder(reasons))
}

/** Returns the outcome. An email that was not handed to a relay yet is withheld when its recipient may not get it. */
function outcomeFor(person: Person, email: Email | undefined, isOpen: boolean): VerdictOutcome {
  if (email && hasArrived(email)) return 'GOT_IT'
  if (!isOpen) return 'DID_NOT_GET_IT'
  const mayBeOut = email?.status === 'SUBMITTING'
  return mayBeOut || canGet(person, { transactional: false }) ? 'UNDER_WAY' : 'WOULD_NOT_GET_IT'
}

function waitingReasons(
  campaign: CampaignRow,
  { email, stop, ahead }: { email: Email | undefined; stop: SendingStop | null; ahead: number },
): Reason[] {
  const many = ahead > MOST_AHEAD ? `more than ${MOST_AHEAD}` : String(ahead)
  return [
    ...holdReasons(campaign, stop),
    ...(email
      ? []
      : [waiting('IN_QUEUE', `The campaign is on its way to them; ${many} recipients are before them.`)]),
  ]
}

/** Returns the reasons that hold the whole campaign. */
function holdReasons({ paused }: CampaignRow, stop: SendingStop | null): Reason[] {
  return [
    ...(paused ? [waiting('PAUSED', 'The campaign is paused until somebody resumes it.')] : []),
    ...(stop === null ? [] : [waiting('SENDING_STOPPED', stop.message)]),
  ]
}

function waiting(code: string, message: string): Reason {
  return { at: null, outcome: 'WAITING', code, message }
}

/** Explains a finished campaign, or one with a frozen audience, for a person who is not a recipient. */
async function explainAbsence(
  call: Call,
  person: Person,
  campaign: CampaignRow,
  send: Send | null,
): Promise<Explanation> {
  const reasons: Reason[] = []
  if (send?.isFrozen) {
    const at = timestamp(send.startedAt)
    const message = 'They were not among the recipients when the campaign was due.'
    reasons.push({ at, outcome: 'AGAINST', code: 'NOT_IN_AUDIENCE', message })
    if (person.record.createdAt > at) {
      const later = 'They were only added after the campaign had begun.'
      reasons.push({ at: person.record.createdAt, outcome: 'AGAINST', code: 'ADDED_LATER', message: later })
    }
    reasons.push(...(await changesSince(call, person, at)))
  }
  reasons.push(...(await endReasons(call, campaign, false)))
  const now = await audienceReasons(call, person, send?.filters ?? campaign.recipientFilters)
  reasons.push(...now)
  const isPlain =
    send?.isFrozen &&
    !reasons.some(({ outcome, code }) => outcome === 'AGAINST' && code !== 'NOT_IN_AUDIENCE')
  if (isPlain) {
    const message =
      'As things are now they would be among the recipients: something about them has changed since.'
    reasons.push({ at: null, outcome: 'NOTE', code: 'CHANGED_SINCE', message })
  }
  return verdictOf('DID_NOT_GET_IT', person.who, titleOf(campaign), inOrder(reasons))
}

/** Explains a campaign whose audience is not frozen yet. */
async function explainProspect(
  call: Call,
  person: Person,
  campaign: CampaignRow,
  send: Send | null,
): Promise<Explanation> {
  const reasons = [
    ...stateReasons(call, campaign),
    ...(campaign.status === 'ARCHIVED' ? [] : await readinessReasons(call, campaign, send)),
    ...(await audienceReasons(call, person, send?.filters ?? campaign.recipientFilters)),
  ]
  const isKeptOut = reasons.some(({ outcome }) => outcome === 'AGAINST')
  const outcome = isKeptOut ? 'WOULD_NOT_GET_IT' : 'WOULD_GET_IT'
  return verdictOf(outcome, person.who, titleOf(campaign), inOrder(reasons))
}

function stateReasons({ organization }: Call, { status, sendAt }: CampaignRow): Reason[] {
  const state = (outcome: Reason['outcome'], message: string): Reason[] => [
    { at: null, outcome, code: `CAMPAIGN_${status}`, message },
  ]
  if (status === 'ARCHIVED') return state('AGAINST', 'The campaign is archived, so nobody gets it.')
  if (status === 'DRAFT')
    return state('WAITING', 'The campaign is a draft: nobody gets it until it is scheduled.')
  if (status === 'SENDING')
    return state('WAITING', 'The campaign has begun and is writing down its recipients.')
  const due = sendAt === null ? 'now' : `on ${spoken(sendAt, organization.timezone)}`
  return state('WAITING', `The campaign is due ${due}.`)
}

/** Returns what holds the campaign or would make it fail for everybody now; audienceReasons covers the filters. */
async function readinessReasons(call: Call, campaign: CampaignRow, send: Send | null): Promise<Reason[]> {
  try {
    const from = send?.from ?? (await readSendable(call, { ...campaign, recipientFilters: [] })).sender.email
    return holdReasons(campaign, await findStop(call, from))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return faultsOf(error).map(({ path, message }) => ({
      at: null,
      outcome: 'AGAINST',
      code: 'CAMPAIGN_NOT_READY',
      message: `The campaign cannot be sent as it is: ${message}.`,
      path,
    }))
  }
}

async function audienceReasons(call: Call, person: Person, filters: readonly Filter[]): Promise<Reason[]> {
  const everybody: Reason = {
    at: null,
    outcome: 'FOR',
    code: 'NO_FILTERS',
    message: 'The campaign has no filters: it is for everybody who is subscribed.',
  }
  return [
    ...consentReasons(person),
    ...(filters.length === 0 ? [everybody] : await filterReasons(call, person, filters, 'recipientFilters')),
  ]
}

/** Returns why the campaign failed, as a note for recipients who had got it by then. */
async function endReasons(call: Call, campaign: CampaignRow, hasGotIt: boolean): Promise<Reason[]> {
  const ends = await readDecisions(call, null, sql<boolean>`d.campaign_id = ${campaign.id}`)
  return ends.map(({ at, reason, data }: Decision) => ({
    at,
    outcome: hasGotIt ? 'NOTE' : 'AGAINST',
    code: reason,
    message: `The campaign failed: ${typeof data['message'] === 'string' ? data['message'] : reason}.`,
  }))
}

async function findSend(
  { em, organization }: Call,
  { id, scheduleVersion }: CampaignRow,
): Promise<Send | null> {
  return await row<Send>(
    em,
    sql`select started_at as "startedAt", audience_frozen as "isFrozen", recipient_filters as filters,
        sender_email as "from"
      from campaign_send where organization_id = ${organization.id} and campaign_id = ${id}
        and number = ${scheduleVersion}`,
  )
}

async function findRecipient(
  { em, organization }: Call,
  { id, scheduleVersion }: CampaignRow,
  person: Person,
): Promise<Recipient | null> {
  return await row<Recipient>(
    em,
    sql`select r.reason, r.message_id as "messageId", (select count(*)::int from (select from campaign_recipient before
        join campaign_send send on send.organization_id = before.organization_id
          and send.campaign_id = before.campaign_id and send.number = ${scheduleVersion}
        where before.organization_id = r.organization_id and before.campaign_id = r.campaign_id
          and before.subscriber_id > send.enqueued_to and before.subscriber_id < r.subscriber_id
          and before.reason is null limit ${MOST_AHEAD + 1}) counted) as ahead
      from campaign_recipient r
      where r.organization_id = ${organization.id} and r.campaign_id = ${id} and r.subscriber_id = ${person.id}`,
  )
}

/** Finds a recipient after the stored audience was deleted, by their email or the decision against it. */
async function findFormerRecipient(
  { em, organization }: Call,
  { id, status }: CampaignRow,
  person: Person,
): Promise<Recipient | null> {
  if (status !== 'SENT' && status !== 'FAILED') return null
  const about = sql`organization_id = ${organization.id} and subscriber_id = ${person.id} and campaign_id = ${id}`
  return await row<Recipient>(
    em,
    sql`select null as reason, id as "messageId", 0 as ahead from message where ${about} and class = 'CAMPAIGN'
      union all
      select reason, null, 0 from decision where ${about} and action = 'SEND_EMAIL' and message_id is null
      limit 1`,
  )
}

function titleOf({ name }: CampaignRow): string {
  return `the campaign “${name}”`
}
