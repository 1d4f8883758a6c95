import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import {
  TIMED_TRIGGERS,
  type TriggerConfig,
  type TriggerType,
} from '../../../../schema/automation-triggers.ts'
import type { Definition } from '../../../../schema/automation.ts'
import type { WorkflowStatus } from '../../../../schema/values.ts'
import type { InboundWebhook, Workflow } from '../../../../schema/workflow.ts'
import { type Fault, refuseFaults } from '../../../catalogue/failure.ts'
import type { Call, Impact } from '../../../catalogue/tool.ts'
import { column, execute, json, row } from '../../../database.ts'
import { encodeId, newId } from '../../../ids.ts'
import { tagNamesOf } from '../../audience/check.ts'
import { customFieldTypes } from '../../audience/references.ts'
import { lockSegments } from '../../segments/lock.ts'
import { syncWatchedSegments } from '../../segments/watch.ts'
import { ensureTags } from '../../subscribers/tags.ts'
import { count } from '../../text.ts'
import { webhookSecret } from '../../webhooks/signature.ts'
import { goalIds, goalStepFaults, goalWarnings, readGoals, windowFaultsOf } from '../goals/goal-faults.ts'
import { countActiveRuns } from '../runs/runs.ts'
import { syncTriggerSchedules } from '../triggers/trigger-schedules.ts'
import { keyOfField, readUpdatedField } from '../triggers/updated-field.ts'
import { syncWebhooks } from '../webhooks/inbound-webhooks.ts'
import { goalReferenceFaults, namedFaults } from './draft.ts'
import { type Activation, type RunsMoved, setStatus, STATUS_AFTER_PUBLISH } from './lifecycle.ts'
import { compileFrozen, freezeEmails, noticeFaults } from './publish-emails.ts'
import { type Automation, findAutomation, readAutomation, titleOf } from './records.ts'
import { countHeldRuns } from './status.ts'
import { readDefinition, readSettings } from './validate.ts'
import type { FrozenEmail, PublishedDefinition } from './versions.ts'

/**
 * The result of publishing: the workflow, its new version, and how many held runs continue because it became ACTIVE.
 */
export type Publication = {
  workflow: Workflow
  version: { id: string; number: number }
  /** The secret with which receivers of WEBHOOK steps check signatures. Only for workflows with such a step. */
  webhookSecret?: string
  inboundWebhooks: InboundWebhook[]
} & Pick<RunsMoved, 'resumedRuns'>

/** A draft without faults, with its emails as they will be frozen. */
type Candidate = { definition: Definition; emails: Record<string, FrozenEmail> }

/**
 * Publishes the draft as a new immutable version with its emails frozen into it, replaces the triggers, and sets the
 * status that follows from `activate`. Throws with all faults if the draft cannot be published.
 */
export async function publish(
  call: Call,
  workflowId: string,
  activate: boolean | undefined,
): Promise<Publication> {
  await lockSegments(call)
  const automation = await findAutomation(call, workflowId)
  const { definition, emails } = await candidateOf(call, automation)
  await makeTags(call, definition, automation.successGoals)
  const { settings, successGoals } = automation
  const version = await writeVersion(call, automation, { ...definition, settings, successGoals, emails })
  await replaceTriggers(call, automation.id, definition)
  const inboundWebhooks = await syncWebhooks(call, automation.id, definition)
  const next = statusAfter(automation, activate)
  const { resumedRuns } = await setStatus(call, automation, next)
  // A change of status has already synchronized the segments and schedules.
  if (next === automation.status) {
    await syncWatchedSegments(call)
    await syncTriggerSchedules(call, [automation.id])
  }
  return {
    workflow: await readAutomation(call, automation.id),
    version: { id: encodeId('wfv', version.id), number: version.number },
    resumedRuns,
    ...(definition.steps.some(({ type }) => type === 'WEBHOOK') && {
      webhookSecret: webhookSecret(call.services.config.secret, call.organization.id),
    }),
    inboundWebhooks,
  }
}

/** Describes what publishing will do. Throws with all faults if the draft cannot be published. */
export async function summarizePublish(
  call: Call,
  workflowId: string,
  activate: boolean | undefined,
): Promise<Impact> {
  const automation = await findAutomation(call, workflowId, { lock: false })
  const { definition, emails } = await candidateOf(call, automation)
  const number = await nextNumber(call, automation.id)
  const next = statusAfter(automation, activate)
  const effects = [
    `Version ${number} is made from the draft; the workflow is ${automation.status} now and ${next} after it.`,
    LIVE[next],
    ...(await runEffects(call, automation, next)),
    `Triggers: ${definition.steps.flatMap(triggerWords).join('; ')}.`,
    ...emailEffects(emails),
  ]
  return {
    target: titleOf(automation),
    effects,
    warnings: [
      ...(await contentWarnings(call, emails)),
      ...goalWarnings(definition, automation.successGoals),
    ],
  }
}

const LIVE: Readonly<Record<WorkflowStatus, string>> = {
  ACTIVE: 'It is live: subscribers enter by its triggers and get its emails.',
  PAUSED: 'It is not live: nobody enters and no step runs until it is set to ACTIVE.',
  ARCHIVED: 'It stays archived: nobody enters it.',
  DRAFT: 'It stays a draft.',
}

function statusAfter({ status }: Automation, activate: boolean | undefined): WorkflowStatus {
  const wish: Activation = activate === undefined ? 'omitted' : activate ? 'activate' : 'pause'
  return STATUS_AFTER_PUBLISH[status][wish]
}

/** Checks the draft as saving does, because things that it names may be deleted by now, and for completeness. */
async function candidateOf(call: Call, automation: Automation): Promise<Candidate> {
  const reading = readDefinition(automation.draft, { publishing: true })
  const { emails, faults } = await freezeEmails(call, automation.id, reading.definition)
  const goals = readGoals(automation.successGoals, reading.definition.steps)
  const all: Fault[] = [
    ...reading.faults,
    ...faults,
    ...(await noticeFaults(call, reading.definition)),
    ...(await namedFaults(call, reading)),
    ...goalStepFaults(reading.definition, reading.unreadable, goalIds(automation.successGoals)),
    ...goals.faults,
    ...windowFaultsOf(goals.goals, reading.definition),
    ...readSettings(automation.settings).faults,
    ...(await goalReferenceFaults(call, goals.filters)),
  ]
  if (all.length > 0) refuseFaults(all, 'The draft cannot be published yet: it')
  return { definition: reading.definition, emails }
}

const TAGS_A_CALL = 100

async function makeTags(call: Call, definition: Definition, goals: readonly SuccessGoal[]): Promise<void> {
  const names = tagNamesOf(definition, goals)
  for (let from = 0; from < names.length; from += TAGS_A_CALL) {
    await ensureTags(call, names.slice(from, from + TAGS_A_CALL))
  }
}

async function nextNumber({ em, organization }: Call, automationId: string): Promise<number> {
  const last = await row<{ number: number | null }>(
    em,
    sql`select max(number) as number from automation_version
      where organization_id = ${organization.id} and automation_id = ${automationId}`,
  )
  return (last?.number ?? 0) + 1
}

/** Stores the version with the next number. The caller holds the automation's row lock, so numbers do not collide. */
async function writeVersion(
  call: Call,
  { id: automationId }: Automation,
  definition: PublishedDefinition,
): Promise<{ id: string; number: number }> {
  const { em, organization, actor } = call
  const version = { id: newId(), number: await nextNumber(call, automationId) }
  await execute(
    em,
    sql`insert into automation_version (id, organization_id, automation_id, number, definition, created_by)
      values (${version.id}, ${organization.id}, ${automationId}, ${version.number}, ${json(definition)}, ${actor.name})`,
  )
  await execute(
    em,
    sql`update automation set published_version_id = ${version.id}, updated_by = ${actor.name}
      where organization_id = ${organization.id} and id = ${automationId}`,
  )
  return version
}

const NOT_BY_EVENTS: ReadonlySet<TriggerType> = new Set(['MANUAL', 'INBOUND_WEBHOOK', ...TIMED_TRIGGERS])

/**
 * Replaces the trigger rows by which events find the automation. Only triggers that events fire have one. PostgreSQL
 * lowercases tag names here and when it looks for triggers, because its `lower` can differ from JavaScript's.
 */
async function replaceTriggers(
  { em, organization }: Call,
  automationId: string,
  definition: Definition,
): Promise<void> {
  const triggers = definition.steps.flatMap((step) => {
    if (step.type !== 'TRIGGER' || NOT_BY_EVENTS.has(step.config.type)) return []
    const { type } = step.config
    return keysOf(step.config).map((key) => ({
      stepId: step.id,
      type,
      key: type === 'FIELD_UPDATED' ? keyOfField(readUpdatedField(key)) : key,
    }))
  })
  await execute(
    em,
    sql`delete from automation_trigger where organization_id = ${organization.id} and automation_id = ${automationId}`,
  )
  if (triggers.length === 0) return
  await execute(
    em,
    sql`insert into automation_trigger (organization_id, automation_id, step_id, type, match_key)
      select distinct ${organization.id}::uuid, ${automationId}::uuid, step_id, type,
        case when type in ('TAG_ADDED', 'TAG_REMOVED') then lower(key) else key end
      from unnest(
        ${column(triggers, ({ stepId }) => stepId, 'text')},
        ${column(triggers, ({ type }) => type, 'text')},
        ${column(triggers, ({ key }) => key, 'text')}
      ) as given (step_id, type, key)`,
  )
}

/**
 * Returns the keys by which events find the trigger: tag names, a segment, a field, a workflow's event or an event
 * type.
 */
function keysOf(config: TriggerConfig): string[] {
  if ('tagNames' in config) return config.tagNames
  if ('segmentId' in config) return [config.segmentId]
  if ('field' in config) return [config.field]
  if (config.type === 'WORKFLOW_EVENT') return [`${config.workflowId}/${config.event}`]
  return ['eventType' in config ? config.eventType : '']
}

async function runEffects(call: Call, automation: Automation, next: WorkflowStatus): Promise<string[]> {
  const active = await countActiveRuns(call.em, call.organization.id, automation.id)
  const held = next === 'ACTIVE' ? await countHeldRuns(call, automation.id) : 0
  const staying =
    active === 0
      ? 'There are no active runs.'
      : `${count(active, 'active run')} ${active === 1 ? 'stays' : 'stay'} on the version entered on.`
  return [staying, ...(held > 0 ? [`${count(held, 'held run')} will continue, spread out.`] : [])]
}

function triggerWords(step: Definition['steps'][number]): string[] {
  if (step.type !== 'TRIGGER') return []
  const { config } = step
  const keys = config.type === 'SCHEDULE' ? [config.cron] : keysOf(config).filter(Boolean)
  const detail = keys.map((key) => `“${key}”`).join(', ')
  const filtered = config.filters?.length ? ' (filtered)' : ''
  return [`${config.type}${detail && ` ${detail}`}${filtered}`]
}

function emailEffects(emails: Record<string, FrozenEmail>): string[] {
  return Object.entries(emails).map(([stepId, { subject, sender, transactional }]) => {
    const kind = transactional ? ' (transactional)' : ''
    return `Email ${stepId}: “${subject}” from ${sender?.email ?? 'nobody'}${kind}.`
  })
}

async function contentWarnings(call: Call, emails: Record<string, FrozenEmail>): Promise<string[]> {
  const fields = await customFieldTypes(call.em, call.organization.id)
  return Object.entries(emails).flatMap(([stepId, email]) => {
    const compiled = compileFrozen(email, fields.keys())
    const footer = compiled.unsubscribeLinkAdded
      ? ['it has no unsubscribe link; a footer with one is added.']
      : []
    return [...compiled.warnings.map(({ message }) => message), ...footer].map(
      (message) => `Email ${stepId}: ${message}`,
    )
  })
}
