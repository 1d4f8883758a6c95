import { sql } from 'kysely'

import { SUBSCRIBER_LIMITS } from '../../../schema/subscriber.ts'
import type { SubscriberStatus } from '../../../schema/values.ts'
import { databaseCode } from '../../catalogue/database-error.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Call, Impact } from '../../catalogue/tool.ts'
import { execute, json, row, rows } from '../../database.ts'
import { encodeId, missing, newId } from '../../ids.ts'
import { readCountry, readEmail, readIpAddress, readPhone } from '../addresses.ts'
import { IS_ACTIVE } from '../automations/runs/active.ts'
import { type NewEvent, recordEvents } from '../events.ts'
import { noteSegmentChanges } from '../segments/notes.ts'
import { oneLine } from '../text.ts'
import { changeOf, type SubscriberPatch } from './changes.ts'
import { CONSENT, firstStatus, nextStatus } from './consent.ts'
import { askToConfirm } from './double-opt-in.ts'
import { resolveFields } from './fields.ts'
import {
  chooseSubscriber,
  findSubscriber,
  SUBSCRIBER_COLUMNS,
  type SubscriberChoice,
  type SubscriberRow,
} from './records.ts'
import { ensureTags, readTagNames, type TagChange, tagEvents, unlinkOtherTags } from './tags.ts'

export { findSubscriber }

/** The given data of a subscriber; absent members stay, an empty string clears. */
export type SubscriberChanges = {
  name?: string | undefined
  phone?: string | undefined
  tags?: readonly string[] | undefined
  fields?: Record<string, unknown> | undefined
  replaceTags?: boolean | undefined
  resubscribe?: boolean | undefined
  triggerWorkflows?: boolean | undefined
  skipDoubleOptIn?: boolean | undefined
  ipAddress?: string | undefined
  country?: string | undefined
}

/** A validated change, ready to be written. */
type Patch = SubscriberPatch & { tags: string[] | undefined }

const ATTEMPTS = 5

/**
 * Creates a subscriber or updates the one with this email (contract, add_subscriber). Safe with concurrent calls.
 * Returns the uuid.
 */
export async function upsertSubscriber(
  call: Call,
  input: SubscriberChanges & { email: string },
): Promise<{ id: string; created: boolean; status: SubscriberStatus }> {
  const email = readEmail(input.email, 'email')
  const patch = await readPatch(call, input)
  const consent = { doubleOptIn: call.organization.doubleOptIn, skipDoubleOptIn: input.skipDoubleOptIn }
  const fresh = firstStatus(consent)
  const { before, id } = await insertOrLock(call, email, fresh, patch)
  const events: NewEvent[] = []
  const status = before
    ? nextStatus(before.status, { ...consent, adds: true, resubscribe: input.resubscribe })
    : fresh
  if (before) events.push(...(await writeChanges(call, before, patch, status)))
  else if (status === 'SUBSCRIBED') events.push({ subscriberId: id, type: 'SUBSCRIBED', data: {} })
  // A subscriber who awaits confirmation has a new status but no event, so segments must be notified here.
  if (status === 'PENDING_CONFIRMATION' && before?.status !== status) {
    await noteSegmentChanges(call, [id], { silent: input.triggerWorkflows === false })
  }
  events.push(...(await writeTags(call, id, patch.tags, input.replaceTags)))
  await recordEvents(call, events, triggering(input))
  if (status === 'PENDING_CONFIRMATION') await askToConfirm(call, id)
  return { id, created: !before, status }
}

/** Updates a subscriber by id or email (contract, update_subscriber). Throws `ALREADY_EXISTS` for an email in use. */
export async function updateSubscriber(
  call: Call,
  subscriber: string,
  input: SubscriberChanges & { email?: string | undefined },
): Promise<{ id: string; status: SubscriberStatus }> {
  const email = input.email === undefined ? undefined : readEmail(input.email, 'email')
  const patch = await readPatch(call, input)
  if (email !== undefined) patch.columns.email = email
  const before = await findSubscriber(call, chooseSubscriber(subscriber), { lock: true })
  const { resubscribe, skipDoubleOptIn } = input
  const { doubleOptIn } = call.organization
  const status = nextStatus(before.status, { adds: false, resubscribe, skipDoubleOptIn, doubleOptIn })
  const events = await writeChanges(call, before, patch, status).catch(asEmailInUse(email))
  events.push(...(await writeTags(call, before.id, patch.tags, input.replaceTags)))
  await recordEvents(call, events, triggering(input))
  const hasMoved = email !== undefined && email.toLowerCase() !== before.email.toLowerCase()
  if (status === 'PENDING_CONFIRMATION' && hasMoved) await askToConfirm(call, before.id, { anew: true })
  return { id: before.id, status }
}

/**
 * Unsubscribes a person (uuid) from any status; their runs end as their workflows define. Returns whether anything
 * changed, so a repeated call records no second event.
 */
export async function unsubscribeSubscriber(
  call: Call,
  subscriberId: string,
  { reason, source }: { reason?: string | undefined; source: string },
): Promise<boolean> {
  const { em, organization } = call
  const before = await row<{ status: SubscriberStatus }>(
    em,
    sql`select status from subscriber where organization_id = ${organization.id} and id = ${subscriberId} for update`,
  )
  if (!before) missing('sub', encodeId('sub', subscriberId))
  const status = CONSENT[before.status].UNSUBSCRIBE
  if (!status) return false
  await execute(
    em,
    sql`update subscriber set status = ${status} where organization_id = ${organization.id} and id = ${subscriberId}`,
  )
  const data = { source, from: before.status, ...(reason !== undefined && { reason }) }
  await recordEvents(call, [{ subscriberId, type: 'UNSUBSCRIBED', data }])
  return true
}

/** Summarizes what unsubscribing will do, including which runs end. */
export async function summarizeUnsubscribe(call: Call, choice: SubscriberChoice): Promise<Impact> {
  const { em, organization } = call
  const person = await findSubscriber(call, choice)
  const runs = await rows<{ name: string; leaves: boolean }>(
    em,
    sql`select automation.name,
        coalesce((version.definition #>> '{settings,exitOnUnsubscribe}')::boolean, true) as leaves
      from automation_run run
      join automation on automation.organization_id = run.organization_id and automation.id = run.automation_id
      join automation_version version on version.organization_id = run.organization_id and version.id = run.version_id
      where run.organization_id = ${organization.id} and run.subscriber_id = ${person.id}
        and run.${IS_ACTIVE} order by run.id`,
  )
  const isDone = CONSENT[person.status].UNSUBSCRIBE === undefined
  return {
    target: person.email,
    effects: isDone
      ? ['Nothing changes: this subscriber is UNSUBSCRIBED already.']
      : [
          `The status moves from ${person.status} to UNSUBSCRIBED; marketing email to this address stops.`,
          ...runs
            .filter(({ leaves }) => leaves)
            .map(({ name }) => `Their run of the workflow "${name}" is cancelled.`),
        ],
    warnings: isDone
      ? []
      : runs
          .filter(({ leaves }) => !leaves)
          .map(
            ({ name }) =>
              `The run of the workflow "${name}" continues, because the workflow ignores unsubscribes.`,
          ),
  }
}

async function readPatch(call: Call, input: SubscriberChanges): Promise<Patch> {
  const columns: Patch['columns'] = {}
  if (input.name !== undefined)
    columns.name = blankToNull(oneLine(input.name, 'name', SUBSCRIBER_LIMITS.name))
  if (input.phone !== undefined) columns.phone = blankToNull(readPhone(input.phone, 'phone'))
  if (input.country !== undefined) columns.country = input.country && readCountry(input.country, 'country')
  if (input.ipAddress !== undefined)
    columns.ipAddress = input.ipAddress && readIpAddress(input.ipAddress, 'ipAddress')
  const tags = input.tags && readTagNames(input.tags, 'tags')
  return { columns, tags, fields: await resolveFields(call, input.fields) }
}

/**
 * Creates the subscriber, or locks the existing row. When concurrent calls both find none, the second one's insert
 * waits for the first and does nothing, and it looks again.
 */
async function insertOrLock(
  call: Call,
  email: string,
  status: SubscriberStatus,
  { columns, fields }: Patch,
): Promise<{ id: string; before: SubscriberRow | null }> {
  const { em, organization } = call
  const id = newId()
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const found = await row<SubscriberRow & { isNew: boolean }>(
      em,
      sql`with known as (
          select ${SUBSCRIBER_COLUMNS} from subscriber
          where organization_id = ${organization.id} and email_key = lower(${email}) for update
        ), made as (
          insert into subscriber (id, organization_id, email, name, phone, country, ip_address, status, fields)
          select ${id}, ${organization.id}, ${email}, ${columns.name ?? null}, ${columns.phone ?? null},
            ${columns.country || null}, ${columns.ipAddress || null}, ${status}, ${json(fields.set)}
          where not exists (select from known)
          on conflict (organization_id, email_key) do nothing returning ${SUBSCRIBER_COLUMNS}
        ), counted as (
          insert into subscriber_stat (organization_id, subscriber_id) select ${organization.id}, id from made
        )
        select *, false as "isNew" from known union all select *, true from made`,
    )
    if (found) return { id: found.id, before: found.isNew ? null : found }
  }
  throw new Failure(
    'UNAVAILABLE',
    'This subscriber is being changed by many calls at once; repeat the request.',
    { retryAfter: 1 },
  )
}

/** Updates the changed columns of a locked row in one statement, and returns the events. */
async function writeChanges(
  call: Call,
  before: SubscriberRow,
  patch: Patch,
  status: SubscriberStatus,
): Promise<NewEvent[]> {
  const change = changeOf(before, patch, status)
  if (!change) return []
  const { after, events } = change
  await execute(
    call.em,
    sql`update subscriber set email = ${after.email}, name = ${after.name}, phone = ${after.phone},
        country = ${after.country}, ip_address = ${after.ipAddress}, status = ${status}, fields = ${json(after.fields)}
      where organization_id = ${call.organization.id} and id = ${before.id}`,
  )
  if (status === 'SUBSCRIBED' && before.status !== status) {
    events.unshift({ subscriberId: before.id, type: 'SUBSCRIBED', data: { from: before.status } })
  }
  return events
}

async function writeTags(
  call: Call,
  subscriberId: string,
  names: readonly string[] | undefined,
  replace = false,
): Promise<NewEvent[]> {
  if (names === undefined) return []
  const { tags, added } = await ensureTags(call, names, { path: 'tags', subscriberIds: [subscriberId] })
  const removed: TagChange[] = replace ? await unlinkOtherTags(call, subscriberId, tags) : []
  return [...tagEvents('TAG_REMOVED', removed), ...tagEvents('TAG_ADDED', added)]
}

function triggering({ triggerWorkflows }: SubscriberChanges): { triggerWorkflows: boolean } {
  return { triggerWorkflows: triggerWorkflows ?? true }
}

function blankToNull(text: string): string | null {
  return text.trim() === '' ? null : text
}

function asEmailInUse(email: string | undefined): (error: unknown) => never {
  return (error) => {
    if (email === undefined || databaseCode(error) !== '23505') throw error
    throw new Failure(
      'ALREADY_EXISTS',
      `email is the address of another subscriber already (${JSON.stringify(email)}); choose another one, or update that subscriber.`,
      { details: [{ path: 'email', message: 'is in use' }] },
    )
  }
}
