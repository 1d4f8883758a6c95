import { sql } from 'kysely'

import { crossOrganization, unitOfWork } from '../catalogue/unit-of-work.ts'
import type { Actor, Call } from '../catalogue/tool.ts'
import { execute, row } from '../database.ts'
import { recordEvents } from '../domain/events.ts'
import { noteSegmentChanges } from '../domain/segments/notes.ts'
import { readToken } from '../delivery/tracking-token.ts'
import { encodeId } from '../ids.ts'
import type { Services } from '../services.ts'
import { isMachine, type Visitor } from './visitors.ts'

/** What the message of a token is to its visitor. */
type Tracked = {
  subscriberId: string | null
  campaignId: string | null
  automationId: string | null
  runId: string | null
  stepId: string | null
  isTest: boolean
  /** Within two seconds after it was sent, or another link of it was followed within the last second. */
  isHasty: boolean
  target: string | null
}

const HASTE = sql`interval '2 seconds'`
const BURST = sql`interval '1 second'`
const LONGEST_AGENT = 300

/** Counts an opened email. False when the token is not one of ours; a pixel is answered all the same. */
export async function recordOpen(services: Services, token: string, visitor: Visitor): Promise<boolean> {
  const read = readToken(services.config.secret, 'open', token)
  if (!read) return false
  const scope = { organizationId: read.organizationId, messageId: read.messageId }
  const found = await findTracked(services, scope, null)
  if (!found || visitor.method === 'HEAD') return found !== null
  await count(services, { ...scope, found, position: null, visitor })
  return true
}

/**
 * Where a followed link leads, or null when the token is not one of ours. The click is committed before this answers,
 * so that a workflow that branches on it sees it. HEAD counts nothing.
 */
export async function followLink(
  services: Services,
  token: string,
  visitor: Visitor,
): Promise<string | null> {
  const read = readToken(services.config.secret, 'click', token)
  if (!read) return null
  const scope = { organizationId: read.organizationId, messageId: read.messageId }
  const found = await findTracked(services, scope, read.position)
  if (!found?.target) return null
  if (visitor.method !== 'HEAD') await count(services, { ...scope, found, position: read.position, visitor })
  return found.target
}

type Scope = { organizationId: string; messageId: string }
type Visit = Scope & { found: Tracked; position: number | null; visitor: Visitor }

async function findTracked(
  services: Services,
  { organizationId, messageId }: Scope,
  position: number | null,
): Promise<Tracked | null> {
  return await row<Tracked>(
    crossOrganization(services),
    sql`select m.subscriber_id as "subscriberId", m.campaign_id as "campaignId", m.automation_id as "automationId",
        m.run_id as "runId", m.step_id as "stepId", m.class = 'TEST' as "isTest",
        coalesce(m.sent_at, now()) > now() - ${HASTE} or (${position}::int is not null and exists (
          select 1 from tracking_event t where t.organization_id = m.organization_id and t.message_id = m.id
            and t.kind = 'CLICK' and t.position <> ${position}::int and t.created_at > now() - ${BURST})) as "isHasty",
        link.targets[${position}::int + 1] as target
      from message m
      left join link on link.organization_id = m.organization_id and link.message_id = m.id
      where m.organization_id = ${organizationId} and m.id = ${messageId}`,
  )
}

/** One tracking row for each visit; the event, the message and the numbers only move for a person's first. */
async function count(services: Services, visit: Visit): Promise<void> {
  const { found, visitor, organizationId } = visit
  const isHuman = !found.isHasty && !isMachine(visitor)
  const actor: Actor = {
    kind: 'public',
    id: found.subscriberId ? encodeId('sub', found.subscriberId) : '',
    name: 'Reader',
  }
  await unitOfWork(services, { organizationId, actor }, async (call) => {
    await writeVisit(call, visit, isHuman)
    if (!isHuman || found.isTest || !found.subscriberId) return
    const isFirst = visit.position === null ? await markOpened(call, visit) : await markClicked(call, visit)
    await moveNumbers(call, visit, isFirst)
    if (!isFirst) {
      await noteSegmentChanges(call, [found.subscriberId])
      return
    }
    const type = visit.position === null ? 'EMAIL_OPENED' : 'EMAIL_CLICKED'
    await recordEvents(call, [{ subscriberId: found.subscriberId, type, data: eventData(visit) }])
  })
}

async function writeVisit(
  call: Call,
  { messageId, position, visitor }: Visit,
  isHuman: boolean,
): Promise<void> {
  await execute(
    call.em,
    sql`insert into tracking_event (id, organization_id, message_id, kind, position, human, user_agent)
      values (new_id(), ${call.organization.id}, ${messageId}, ${position === null ? 'OPEN' : 'CLICK'}, ${position},
        ${isHuman}, ${visitor.userAgent.slice(0, LONGEST_AGENT)})`,
  )
}

/** The person is compared because an erased one is no longer in the message. */
async function markOpened(call: Call, { messageId, found }: Visit): Promise<boolean> {
  const changed = await execute(
    call.em,
    sql`update message set opened_at = now() where organization_id = ${call.organization.id} and id = ${messageId}
      and opened_at is null and subscriber_id = ${found.subscriberId}`,
  )
  return changed > 0
}

/** The link's row decides who is first: a second click waits for its lock and then finds itself late. */
async function markClicked(call: Call, { messageId, position }: Visit): Promise<boolean> {
  const changed = await execute(
    call.em,
    sql`with followed as (
        update link set followed = array_append(followed, ${position}::int)
        where organization_id = ${call.organization.id} and message_id = ${messageId}
          and not (${position}::int = any(followed))
        returning message_id)
      update message m set clicked_at = coalesce(m.clicked_at, now()) from followed
      where m.organization_id = ${call.organization.id} and m.id = followed.message_id`,
  )
  return changed > 0
}

async function moveNumbers(call: Call, { found, position }: Visit, isFirst: boolean): Promise<void> {
  const [opens, clicks] = position === null ? [Number(isFirst), 0] : [0, Number(isFirst)]
  await execute(
    call.em,
    sql`insert into subscriber_stat as stat (organization_id, subscriber_id, open_count, click_count, last_opened_at,
        last_clicked_at)
      select s.organization_id, s.id, ${opens}::int, ${clicks}::int,
        case when ${position === null} then now() end, case when ${position !== null} then now() end
      from subscriber s where s.organization_id = ${call.organization.id} and s.id = ${found.subscriberId}
      on conflict (organization_id, subscriber_id) do update set
        open_count = stat.open_count + excluded.open_count,
        click_count = stat.click_count + excluded.click_count,
        last_opened_at = coalesce(excluded.last_opened_at, stat.last_opened_at),
        last_clicked_at = coalesce(excluded.last_clicked_at, stat.last_clicked_at)`,
  )
}

function eventData({ messageId, position, found }: Visit): Record<string, unknown> {
  return {
    emailId: encodeId('eml', messageId),
    ...(position !== null && { position, url: found.target }),
    ...(found.campaignId && { campaignId: encodeId('cmp', found.campaignId) }),
    ...(found.automationId && { workflowId: encodeId('wf', found.automationId) }),
    ...(found.runId && { runId: encodeId('run', found.runId) }),
    ...(found.stepId && { stepId: found.stepId }),
  }
}
