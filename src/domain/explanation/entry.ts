import type { TriggerConfig } from '../../../schema/automation-triggers.ts'
import type { Reason } from '../../../schema/explanation.ts'
import { entrySteps, reEntryOf } from '../../../temporal/graph.ts'
import type { Call } from '../../catalogue/tool.ts'
import type { Automation } from '../automations/definition/records.ts'
import type { Version } from '../automations/definition/versions.ts'
import { decide, readEntry, type Refusal } from '../automations/entry/enrolment.ts'
import { REFUSALS } from '../automations/entry/enter-by-hand.ts'
import { timedTrigger } from '../automations/triggers/due-people.ts'
import { filterReasons } from './filters.ts'
import { groupReasons } from './group.ts'
import { namesOf } from './names.ts'
import type { Person } from './person.ts'
import { timedReasons } from './timed.ts'
import { periodWords, valueWords } from './words.ts'

/**
 * Returns the reasons for and against entering a workflow now: re-entry rules, triggers with filters, and its group.
 */
export async function entryReasons(
  call: Call,
  person: Person,
  { id }: Automation,
  version: Version,
): Promise<Reason[]> {
  const { definition } = version
  const entries = entrySteps(definition)
  const names = await namesOf(
    call,
    entries.flatMap(({ config }) =>
      'segmentId' in config ? config.segmentId : 'workflowId' in config ? config.workflowId : [],
    ),
  )
  const triggers: Reason[][] = []
  for (const step of entries) {
    const path = `steps[${definition.steps.indexOf(step)}].config.filters`
    const context = { run: { automationId: id }, inWorkflow: true }
    const filters = await filterReasons(call, person, step.config.filters ?? [], path, context)
    const message = `The workflow takes them in when ${triggerWords(step.config, names)}.`
    triggers.push([
      { at: null, outcome: 'WAITING', code: `TRIGGER_${step.config.type}`, message, stepId: step.id },
      ...[...(await timeReasons(call, person, version, step.id)), ...filters].map((reason) => ({
        ...reason,
        stepId: step.id,
      })),
    ])
  }
  const isOpen = triggers.some((reasons) => reasons.every(({ outcome }) => outcome !== 'AGAINST'))
  const shown = triggers.flat().map((reason) =>
    // One matching trigger is enough, so those that do not match become notes.
    isOpen && reason.outcome === 'AGAINST' ? { ...reason, outcome: 'NOTE' as const } : reason,
  )
  return [
    ...(await reEntryReasons(call, person, id, version)),
    ...shown,
    ...(await groupReasons(call, person, id, version)),
  ]
}

async function timeReasons(call: Call, person: Person, version: Version, stepId: string): Promise<Reason[]> {
  const timed = timedTrigger(version, stepId)
  return timed ? await timedReasons(call, person, timed) : []
}

async function reEntryReasons(
  call: Call,
  person: Person,
  automationId: string,
  version: Version,
): Promise<Reason[]> {
  const { definition } = version
  if (reEntryOf(definition, definition.settings).mode === 'PER_KEY') return []
  const entry = await readEntry(call, { automationId, subscriberId: person.id })
  // The reasons of active runs are reported separately.
  const decided = decide({ version, context: {} }, { ...entry, activeKeys: new Set() })
  if (!('refusal' in decided)) return []
  return [
    { at: null, outcome: 'AGAINST', code: decided.refusal, message: refusalWords(person, decided.refusal) },
  ]
}

const OTHER_REFUSALS: Readonly<Record<string, string>> = {
  MISSED: 'was not let in, because the service was down at that moment and for more than a day after it',
  FILTERS: 'did not fulfil the filters of the trigger',
  OTHER_DATA: 'was not let in: what happened does not have the data that the trigger asks for',
  PAUSED: 'was not let in, because the workflow was paused',
  SILENT:
    'was not let in: what happened was not to start workflows (triggerWorkflows: false, an import, or a tag that was deleted)',
  DRAFT: 'was not let in, because the workflow had not been published',
  ARCHIVED: 'was not let in, because the workflow was archived',
  GROUP_CONFLICT: 'was not let in, because another workflow of its group comes first',
  EXPIRED: 'was not let in, because the turn in the group of the workflow did not come in time',
  LOOP: 'was not let in, because too many workflows had started each other',
  FILTER_REFERENCE_MISSING: 'was not let in, because a filter of the trigger names something that is gone',
}

/** Returns why an entry was or would be refused. */
export function refusalWords({ who }: Person, reason: string): string {
  const words: Readonly<Record<string, string>> = {
    ...OTHER_REFUSALS,
    ...(REFUSALS satisfies Record<Refusal, string>),
  }
  return `${who} ${words[reason] ?? `was not let in, for the reason ${reason}`}.`
}

function triggerWords(config: TriggerConfig, names: ReadonlyMap<string, string>): string {
  switch (config.type) {
    case 'SUBSCRIBED':
      return 'they subscribe'
    case 'UNSUBSCRIBED':
      return 'they unsubscribe'
    case 'FIELD_UPDATED':
      return `their field ${config.field} changes${'from' in config || 'to' in config ? ' as it asks for' : ''}`
    case 'WORKFLOW_EVENT':
      return `${config.event} happens to them in the workflow ${valueWords(config.workflowId, names)}`
    case 'TAG_ADDED':
      return `a tag is added: ${config.tagNames.join(' or ')}`
    case 'TAG_REMOVED':
      return `a tag is removed: ${config.tagNames.join(' or ')}`
    case 'SEGMENT_ENTERED':
      return `they come into the segment ${valueWords(config.segmentId, names)}`
    case 'SEGMENT_EXITED':
      return `they leave the segment ${valueWords(config.segmentId, names)}`
    case 'EVENT':
      return `the event ${config.eventType} happens${config.where?.length ? ' with the data that it asks for' : ''}`
    case 'DATE_FIELD':
      return `the date in their field ${config.field} is due`
    case 'SCHEDULE':
      return `its schedule (${config.cron}) comes`
    case 'INACTIVITY':
      return `the event ${config.eventType} has not happened for ${periodWords(config.inactiveFor)}`
    case 'INBOUND_WEBHOOK':
      return 'its webhook is called for them'
    case 'MANUAL':
      return 'somebody lets them in by hand'
  }
}
