import { sql } from 'kysely'

import {
  type ConfirmationEmail,
  ORGANIZATION_LIMITS,
  type OrganizationSettings,
  type WritingStyle,
} from '../../../schema/organization.ts'
import { refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { json, row } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { isTimeZone } from '../audience/moment.ts'
import { moveTriggerSchedules } from '../automations/triggers/trigger-schedules.ts'
import { lockSegments } from '../segments/lock.ts'
import { retakeMembers } from '../segments/watch.ts'
import { characters, nameLine, oneLine, timestamp } from '../text.ts'

/** The input of update_organization_settings; absent members stay as they are, null restores the standard. */
export type SettingsPatch = {
  name?: string | undefined
  timezone?: string | undefined
  doubleOptIn?: boolean | undefined
  confirmationEmail?: ConfirmationEmail | null | undefined
}

/** The input of update_writing_style; an empty text clears. */
export type WritingStylePatch = { [Member in keyof WritingStyle]?: string | undefined }

const COLUMNS = sql`id, name, slug, timezone, plan, double_opt_in as "doubleOptIn",
  confirmation_email as "confirmationEmail", created_at as "createdAt", updated_at as "updatedAt"`

/** Changes the given settings and returns all of them. */
export async function changeSettings(call: Call, patch: SettingsPatch): Promise<OrganizationSettings> {
  const { doubleOptIn, confirmationEmail } = patch
  const timezone = patch.timezone === undefined ? null : await readTimeZone(call, patch.timezone)
  const changes = [
    ...(patch.name === undefined ? [] : [sql`name = ${readName(patch.name)}`]),
    ...(timezone === null ? [] : [sql`timezone = ${timezone}`]),
    ...(doubleOptIn === undefined ? [] : [sql`double_opt_in = ${doubleOptIn}`]),
    ...(confirmationEmail === undefined
      ? []
      : [sql`confirmation_email = ${confirmationEmail && json(readConfirmationEmail(confirmationEmail))}`]),
  ]
  const before = timezone === null ? null : await lockTimeZone(call)
  const own = sql`id = ${call.organization.id}`
  const changed = await row<OrganizationSettings>(
    call.em,
    changes.length === 0
      ? sql`select ${COLUMNS} from organization where ${own}`
      : sql`update organization set ${sql.join(changes)} where ${own} returning ${COLUMNS}`,
  )
  if (!changed) throw new Error('the organization of a call is gone')
  if (before !== null && changed.timezone !== before) {
    await moveTriggerSchedules(call)
    await retakeMembers(call)
  }
  return {
    ...changed,
    id: encodeId('org', changed.id),
    createdAt: timestamp(changed.createdAt),
    updatedAt: timestamp(changed.updatedAt),
  }
}

/** Returns the writing style of the organization; members that nobody has set are null. */
export async function readWritingStyle({ em, organization }: Call): Promise<WritingStyle> {
  const found = await row<{ style: Partial<WritingStyle> | null }>(
    em,
    sql`select writing_style as style from organization where id = ${organization.id}`,
  )
  return presentStyle(found?.style)
}

/** Changes the given members and returns the whole style. */
export async function changeWritingStyle(call: Call, patch: WritingStylePatch): Promise<WritingStyle> {
  if (Object.keys(patch).length === 0) return await readWritingStyle(call)
  for (const [member, text] of Object.entries(patch)) {
    if (text !== undefined && characters(text) > ORGANIZATION_LIMITS.writingStyle) {
      refuse(member, `is longer than ${ORGANIZATION_LIMITS.writingStyle} characters; shorten it.`)
    }
  }
  const changed = await row<{ style: Partial<WritingStyle> }>(
    call.em,
    sql`update organization set writing_style = coalesce(writing_style, '{}') || ${json(patch)}
      where id = ${call.organization.id} returning writing_style as style`,
  )
  return presentStyle(changed?.style)
}

function presentStyle(style: Partial<WritingStyle> | null | undefined): WritingStyle {
  const { persona, audience, vocabulary } = style ?? {}
  return { persona: persona || null, audience: audience || null, vocabulary: vocabulary || null }
}

function readName(name: string): string {
  return nameLine(name, 'name', ORGANIZATION_LIMITS.name, 'the name that readers know')
}

/** Locks what depends on the time zone, and then reads it: another call may just have changed it. */
async function lockTimeZone(call: Call): Promise<string> {
  await lockSegments(call)
  const found = await row<{ timezone: string }>(
    call.em,
    sql`select timezone from organization where id = ${call.organization.id}`,
  )
  if (!found) throw new Error('the organization of a call is gone')
  return found.timezone
}

/** Returns the time zone name as PostgreSQL spells it, because both this process and SQL compute with it. */
async function readTimeZone({ em }: Call, timezone: string): Promise<string> {
  const known = isTimeZone(timezone)
    ? await row<{ name: string }>(
        em,
        sql`select name from pg_timezone_names where lower(name) = lower(${timezone}) limit 1`,
      )
    : null
  return (
    known?.name ??
    refuse('timezone', 'is not an IANA time zone; send a name such as "Europe/Paris" or "UTC".')
  )
}

function readConfirmationEmail({ subject, markdown }: ConfirmationEmail): ConfirmationEmail {
  if (subject.trim() === '') refuse('confirmationEmail.subject', 'is blank; write a subject.')
  if (markdown.trim() === '') refuse('confirmationEmail.markdown', 'is blank; write what the email says.')
  oneLine(subject, 'confirmationEmail.subject', ORGANIZATION_LIMITS.confirmationSubject)
  if (characters(markdown) > ORGANIZATION_LIMITS.confirmationMarkdown) {
    refuse(
      'confirmationEmail.markdown',
      `is longer than ${ORGANIZATION_LIMITS.confirmationMarkdown} characters; shorten it.`,
    )
  }
  return { subject, markdown }
}
