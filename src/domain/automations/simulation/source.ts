import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Definition, Settings } from '../../../../schema/automation.ts'
import { isRecord } from '../../../../schema/json.ts'
import { type Fault, refuseFaults } from '../../../catalogue/failure.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { compileContent } from '../../../content/compile.ts'
import { fillContent } from '../../../content/fill.ts'
import { array, rows } from '../../../database.ts'
import { readId } from '../../../ids.ts'
import { personVariables } from '../../library/variables.ts'
import { goalReferenceFaults, namedFaults, refuseMissing, within } from '../definition/draft.ts'
import { planEmails } from '../definition/internal-emails.ts'
import { findAutomation } from '../definition/records.ts'
import { readDefinition, readSettings } from '../definition/validate.ts'
import { goalIds, goalStepFaults, readGoals } from '../goals/goal-faults.ts'
import type { ShownEmail } from './place.ts'
import { NOBODY } from './state.ts'

/** The simulated graph with its settings and goals. `automationId` is null if it belongs to no workflow. */
export type Source = {
  automationId: string | null
  definition: Definition
  settings: Settings
  goals: readonly SuccessGoal[]
}

type Person = { name: string | null; email: string; phone: string | null }
type Written = { id: string; subject: string; preview: string | null; senderId: string | null }

/** Reads the draft of a workflow, or validates a given definition. Throws with all faults. */
export async function readSource(
  call: Call,
  { workflowId, definition }: { workflowId?: string | undefined; definition?: unknown },
): Promise<Source> {
  if (workflowId === undefined) return await readGiven(call, definition)
  const automation = await findAutomation(call, workflowId, { lock: false })
  const reading = readDefinition(automation.draft)
  const { settings, successGoals: goals } = automation
  const faults = [...reading.faults, ...readSettings(settings).faults]
  if (faults.length > 0) refuseFaults(faults, 'The draft cannot be simulated: it')
  return { automationId: automation.id, definition: reading.definition, settings, goals }
}

/** Returns the emails of a graph by step id. Each renders its subject and preview for a state of the person. */
export async function readEmails(
  call: Call,
  { definition }: Source,
  person: Person,
): Promise<Map<string, ShownEmail>> {
  const stored = await readWritten(call, definition)
  const senders = await readSenders(call, definition, [...stored.values()])
  return new Map(
    definition.steps.flatMap((step) => {
      if (step.type !== 'EMAIL') return []
      const { campaignId, transactional, ...given } = step.config
      const written = stored.get(readId('cmp', campaignId ?? '') ?? '')
      const senderId = readId('snd', given.senderId ?? '') ?? written?.senderId ?? null
      const compiled = compileContent({
        contentType: 'MARKDOWN',
        source: '',
        subject: given.subject ?? written?.subject ?? '',
        preview: given.preview ?? written?.preview ?? null,
        kind: transactional ? 'transactional' : 'marketing',
      })
      const shown = new Map<string, ReturnType<ShownEmail['render']>>()
      const email: ShownEmail = {
        campaignId: written?.id ?? null,
        render({ fields, profile }) {
          const key = JSON.stringify([fields, profile])
          const before = shown.get(key)
          if (before) return before
          const variables = personVariables({ ...person, ...profile, fields }, call.organization.name)
          const { subject, preheader } = fillContent(compiled, {
            variables,
            urls: { unsubscribe: '', online: '' },
          })
          const lines = { subject, preview: preheader, from: senders.get(senderId) ?? null }
          shown.set(key, lines)
          return lines
        },
      }
      return [[step.id, email]]
    }),
  )
}

async function readGiven(call: Call, given: unknown): Promise<Source> {
  const { settings: rawSettings, successGoals, ...graph } = isRecord(given) ? given : {}
  const reading = readDefinition(graph)
  const settings = readSettings(rawSettings)
  const goals = readGoals(successGoals, reading.definition.steps)
  const unsaved = { id: NOBODY, draft: { steps: [], edges: [] } }
  const emails = await planEmails(call, unsaved, reading.definition, reading.unreadable)
  const faults = [
    ...reading.faults,
    ...emails.faults,
    ...(await namedFaults(call, reading)),
    ...goalStepFaults(reading.definition, reading.unreadable, goalIds(successGoals)),
    ...settings.faults,
    ...goals.faults,
    ...(await goalReferenceFaults(call, goals.filters)),
  ]
  const placed = (all: readonly Fault[]) => all.map((fault) => within('definition', fault))
  if (faults.length > 0) {
    refuseFaults(placed([...faults, ...emails.missing]), 'The definition cannot be simulated: it')
  }
  if (emails.missing.length > 0) refuseMissing(placed(emails.missing))
  const { definition } = reading
  return { automationId: null, definition, settings: settings.settings, goals: goals.goals }
}

/** Reads stored emails, including those of other workflows, because saving a graph that names them copies them. */
async function readWritten({ em, organization }: Call, { steps }: Definition): Promise<Map<string, Written>> {
  const ids = steps.flatMap((step) =>
    step.type === 'EMAIL' ? (readId('cmp', step.config.campaignId ?? '') ?? []) : [],
  )
  if (ids.length === 0) return new Map()
  const found = await rows<Written>(
    em,
    sql`select id, subject, preview, sender_id as "senderId" from campaign
      where organization_id = ${organization.id} and id = any(${array(ids, 'uuid')})`,
  )
  return new Map(found.map((email) => [email.id, email]))
}

/** Returns the addresses of the senders of these emails by their ids, and that of the default sender by null. */
async function readSenders(
  { em, organization }: Call,
  { steps }: Definition,
  stored: readonly Written[],
): Promise<Map<string | null, string>> {
  const ids = [
    ...steps.flatMap((step) =>
      step.type === 'EMAIL' ? (readId('snd', step.config.senderId ?? '') ?? []) : [],
    ),
    ...stored.flatMap(({ senderId }) => senderId ?? []),
  ]
  const found = await rows<{ id: string; email: string; isDefault: boolean }>(
    em,
    sql`select id, email, is_default as "isDefault" from sender
      where organization_id = ${organization.id} and (is_default or id = any(${array(ids, 'uuid')}))`,
  )
  const addresses = new Map<string | null, string>(found.map(({ id, email }) => [id, email]))
  const standard = found.find(({ isDefault }) => isDefault)
  if (standard) addresses.set(null, standard.email)
  return addresses
}
