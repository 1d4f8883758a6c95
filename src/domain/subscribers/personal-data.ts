import { sql } from 'kysely'

import type { PersonalData } from '../../../schema/privacy.ts'
import type { Call } from '../../catalogue/tool.ts'
import { row, rows } from '../../database.ts'
import { encodeId } from '../../ids.ts'
import { readRuns } from '../automations/runs/run-records.ts'
import { SUBJECT } from '../emails/records.ts'
import { timestamp, timestampOrNull } from '../text.ts'
import { readAllEvents } from './history.ts'
import { chooseSubscriber, findSubscriber, readSubscriber } from './records.ts'

type PersonRow = {
  ipAddress: string | null
  bounceCategory: string | null
  requestedAt: string | null
  confirmedAt: string | null
  suppression: { reason: string; source: string; createdAt: string } | null
}

/** Returns all personal data of a subscriber, named by id or email (GDPR, articles 15 and 20). */
export async function exportPersonalData(call: Call, subscriber: string): Promise<PersonalData> {
  const { id } = await findSubscriber(call, chooseSubscriber(subscriber))
  const person = await readPerson(call, id)
  const events = await readAllEvents(call, id)
  return {
    exportedAt: call.now.toISOString(),
    subscriber: await readSubscriber(call, id),
    ipAddress: person.ipAddress,
    bounceCategory: person.bounceCategory,
    consent: {
      requestedAt: timestampOrNull(person.requestedAt),
      confirmedAt: timestampOrNull(person.confirmedAt),
      history: events.filter(({ type }) => type === 'SUBSCRIBED' || type === 'UNSUBSCRIBED'),
    },
    suppression: person.suppression && {
      ...person.suppression,
      createdAt: timestamp(person.suppression.createdAt),
    },
    events,
    emails: await readEmails(call, id),
    reports: await readReports(call, id),
    visits: await readVisits(call, id),
    runs: await readPersonalRuns(call, id),
  }
}

async function readPerson({ em, organization }: Call, id: string): Promise<PersonRow> {
  const found = await row<PersonRow>(
    em,
    sql`select subscriber.ip_address as "ipAddress", subscriber.bounce_category as "bounceCategory",
        subscriber.confirmation_requested_at as "requestedAt", subscriber.confirmed_at as "confirmedAt",
        (select jsonb_build_object('reason', blocked.reason, 'source', blocked.source, 'createdAt', blocked.created_at)
          from suppression blocked where blocked.organization_id = subscriber.organization_id
            and blocked.email_key = any(suppression_keys(subscriber.organization_id, subscriber.email))
          order by blocked.reason limit 1) as suppression
      from subscriber where subscriber.organization_id = ${organization.id} and subscriber.id = ${id}`,
  )
  if (!found) throw new Error('a subscriber that was just found is gone')
  return found
}

type EmailRow = PersonalData['emails'][number]

async function readEmails({ em, organization }: Call, id: string): Promise<EmailRow[]> {
  const found = await rows<EmailRow>(
    em,
    sql`select m.id, m.recipient, m.from_email as "from", ${SUBJECT} as subject,
        content.source ->> 'content' as content, m.status, m.reason, m.created_at as "createdAt",
        m.sent_at as "sentAt"
      from message m left join message_content content
        on content.organization_id = m.organization_id and content.message_id = m.id
      where m.organization_id = ${organization.id} and m.subscriber_id = ${id} order by m.id`,
  )
  return found.map((email) => ({
    ...email,
    id: encodeId('eml', email.id),
    createdAt: timestamp(email.createdAt),
    sentAt: timestampOrNull(email.sentAt),
  }))
}

type ReportRow = Omit<PersonalData['reports'][number], 'raw'> & { raw: Buffer }

async function readReports({ em, organization }: Call, id: string): Promise<PersonalData['reports']> {
  const found = await rows<ReportRow>(
    em,
    sql`select report.message_id as "emailId", report.kind, report.category, report.status, report.diagnostic,
        report.raw, report.created_at as "createdAt"
      from message m
      join email_report report on report.organization_id = m.organization_id and report.message_id = m.id
      where m.organization_id = ${organization.id} and m.subscriber_id = ${id} order by report.id`,
  )
  return found.map((report) => ({
    ...report,
    emailId: encodeId('eml', report.emailId),
    raw: report.raw.toString('utf8'),
    createdAt: timestamp(report.createdAt),
  }))
}

type VisitRow = PersonalData['visits'][number]

async function readVisits({ em, organization }: Call, id: string): Promise<VisitRow[]> {
  const found = await rows<VisitRow>(
    em,
    sql`select visit.message_id as "emailId", visit.kind, visit.human, link_target(m.organization_id, m.id, visit.position) as url,
        visit.user_agent as "userAgent", visit.created_at as "createdAt"
      from message m
      join tracking_event visit on visit.organization_id = m.organization_id and visit.message_id = m.id
      where m.organization_id = ${organization.id} and m.subscriber_id = ${id} order by visit.id`,
  )
  return found.map((visit) => ({
    ...visit,
    emailId: encodeId('eml', visit.emailId),
    createdAt: timestamp(visit.createdAt),
  }))
}

async function readPersonalRuns(call: Call, id: string): Promise<PersonalData['runs']> {
  const found = await rows<{ id: string; entry: Record<string, unknown> }>(
    call.em,
    sql`select id, context as entry from automation_run
      where organization_id = ${call.organization.id} and subscriber_id = ${id} order by id`,
  )
  const entries = new Map(found.map((run) => [encodeId('run', run.id), run.entry]))
  const runs = await readRuns(
    call,
    found.map((run) => run.id),
  )
  return runs.map((run) => ({ ...run, entry: entries.get(run.id) ?? {} }))
}
