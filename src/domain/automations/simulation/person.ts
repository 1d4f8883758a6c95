import { sql } from 'kysely'

import type { SamplePerson } from '../../../../schema/simulation.ts'
import type { SubscriberStatus } from '../../../../schema/values.ts'
import { refuse, refuseFaults } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { array, row, rows } from '../../../database.ts'
import { newId } from '../../../ids.ts'
import { isTimeZone, readMoment } from '../../audience/moment.ts'
import { customFieldTypes } from '../../audience/references.ts'
import { type FieldScalar, shapeFaults, typeFaults } from '../../subscribers/fields.ts'
import { findSubscriber, type SubscriberRow } from '../../subscribers/records.ts'
import type { TagRow } from '../../subscribers/tags.ts'
import { NOBODY } from './state.ts'

/**
 * The simulated person. `person` and `numbers` are the rows of `subscriber` and `subscriber_stat` as JSON. Ids are
 * UUIDs.
 */
export type SimulatedPerson = Pick<SubscriberRow, 'id' | 'email' | 'name' | 'phone' | 'status' | 'fields'> & {
  person: Record<string, unknown>
  numbers: Record<string, unknown>
  /** For an existing subscriber, the ids of their tags; for a sample, names. */
  tags: readonly string[]
  timezone: string | null
  entry: Record<string, unknown>
}

/** Reads an existing subscriber in their current state. Throws `NOT_FOUND`. */
export async function readReal(call: Call, subscriberId: string): Promise<SimulatedPerson> {
  const { em, organization } = call
  const subscriber = await findSubscriber(call, { subscriberId })
  const found = await row<Pick<SimulatedPerson, 'person' | 'numbers' | 'tags'>>(
    em,
    sql`select to_jsonb(s) as person, coalesce(to_jsonb(st), '{}') as numbers,
        array(select tag_id::text from subscriber_tag link where link.organization_id = s.organization_id
          and link.subscriber_id = s.id) as tags
      from subscriber s
      left join subscriber_stat st on st.organization_id = s.organization_id and st.subscriber_id = s.id
      where s.organization_id = ${organization.id} and s.id = ${subscriber.id}`,
  )
  return {
    ...subscriber,
    ...(found ?? { person: {}, numbers: {}, tags: [] }),
    timezone: null,
    entry: {},
  }
}

/**
 * Makes a person from a sample that the caller describes. Throws `INVALID_INPUT` for invalid dates, time zones or
 * fields.
 */
export async function readSample(call: Call, sample: SamplePerson, from: number): Promise<SimulatedPerson> {
  const { email, name = null, phone = null, country = null, status, tags, customFields, entry } = sample
  const { organization } = call
  if (sample.timezone !== undefined && !isTimeZone(sample.timezone)) {
    refuse('sample.timezone', 'is not an IANA time zone; write one such as "Europe/Paris".')
  }
  const created = sample.createdAt === undefined ? from : momentIn('sample.createdAt', sample.createdAt, call)
  const given = Object.entries(customFields)
  const at = 'sample.customFields'
  const types = await customFieldTypes(call.em, call.organization.id)
  const faults = [...shapeFaults(given, at), ...typeFaults(given, types, at)]
  if (faults.length > 0) refuseFaults(faults)
  const createdAt = new Date(created).toISOString()
  // The cast is safe: `shapeFaults` has refused everything but text, numbers and booleans.
  const fields = customFields as Record<string, FieldScalar>
  const own = { id: NOBODY, email, name, phone, status, fields }
  return {
    ...own,
    person: {
      ...own,
      organization_id: organization.id,
      email_key: email.toLowerCase(),
      country,
      created_at: createdAt,
      updated_at: createdAt,
    },
    numbers: {},
    tags,
    timezone: sample.timezone ?? null,
    entry,
  }
}

/** Reads a moment in a caller's input as epoch ms. Without an offset, it is in the organization's time zone. */
export function momentIn(path: string, text: string, { organization }: Call): number {
  const moment = readMoment(text, organization.timezone)
  return moment?.start ?? refuse(path, 'is not a date; write ISO 8601, such as "2027-03-27T09:00:00Z".')
}

/**
 * Returns the tags with these names, by name as given. A tag that does not exist gets a new id and the first of the
 * names that differ only in case, as publishing would create it.
 */
export async function readTags(
  { em, organization }: Call,
  names: readonly string[],
): Promise<Map<string, TagRow>> {
  const found = await rows<{ asked: string; key: string; id: string | null; name: string | null }>(
    em,
    sql`select asked.name as asked, lower(asked.name) as key, tag.id, tag.name
      from unnest(${array(names, 'text')}) with ordinality as asked (name, position)
      left join tag on tag.organization_id = ${organization.id} and tag.name_key = lower(asked.name)
      order by asked.position`,
  )
  const made = new Map<string, TagRow>()
  return new Map(
    found.map(({ asked, key, id, name }) => {
      const tag = made.get(key) ?? { id: id ?? newId(), name: name ?? asked }
      made.set(key, tag)
      return [asked, tag]
    }),
  )
}

/**
 * Reads why delivery would send this person no email, for each status that a trigger or run can give them. Returns a
 * function that answers the reason, or null, for a status and for marketing or transactional email.
 */
export async function readConsent(
  { em, organization }: Call,
  { email, person, status }: SimulatedPerson,
): Promise<(status: SubscriberStatus, marketing: boolean) => string | null> {
  const statuses: SubscriberStatus[] = [...new Set<SubscriberStatus>([status, 'SUBSCRIBED', 'UNSUBSCRIBED'])]
  const found = await rows<{ status: string; marketing: boolean; refusal: string | null }>(
    em,
    sql`select asked.status, kind.marketing, case when exists (select from suppression blocked
          where blocked.organization_id = ${organization.id}
            and blocked.email_key = any(suppression_keys(${organization.id}::uuid, ${email}))) then 'SUPPRESSED'
        else consent_refusal(kind.marketing, asked.status, ${person['bounce_category'] ?? null}) end as refusal
      from unnest(${array(statuses, 'text')}) as asked (status) cross join (values (true), (false)) as kind (marketing)`,
  )
  const refusals = new Map(found.map((each) => [`${each.status}/${each.marketing}`, each.refusal]))
  return (of, marketing) => refusals.get(`${of}/${marketing}`) ?? null
}
