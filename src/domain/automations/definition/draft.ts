import { sql } from 'kysely'

import type { SuccessGoal } from '../../../../schema/automation-goals.ts'
import type { Definition, Settings } from '../../../../schema/automation.ts'
import type { Workflow } from '../../../../schema/workflow.ts'
import { Failure, type Fault, refuseFaults } from '../../../catalogue/failure.ts'
import { joinPath } from '../../../catalogue/schema-faults.ts'
import type { Call } from '../../../catalogue/tool.ts'
import { execute, json } from '../../../database.ts'
import { filtersOf, type PlacedFilter, referenceFaults } from '../../audience/check.ts'
import { placesOf } from '../../audience/references.ts'
import { lockSegments } from '../../segments/lock.ts'
import { goalIds, goalStepFaults, readGoals } from '../goals/goal-faults.ts'
import { triggerFaults } from '../triggers/trigger-faults.ts'
import { fieldFaults } from './field-faults.ts'
import { writeEmails } from './internal-email-rows.ts'
import { namingEmails, planEmails } from './internal-emails.ts'
import { type Automation, findAutomation, readAutomation, refuseStale } from './records.ts'
import { requestUrl } from './step-faults.ts'
import { type Reading, readDefinition, readSettings } from './validate.ts'

/** A complete replacement of a draft, not yet validated. Undefined settings or goals keep their stored value. */
export type DraftChange = {
  workflowId: string
  expectedUpdatedAt: string
  definition: unknown
  settings?: unknown
  successGoals?: unknown
  /** The path of the graph in the caller's input, which is put before the paths of its faults. */
  path?: string
}

/**
 * Replaces a draft as a whole: the graph, the internal email of each EMAIL step, and the settings and goals that came
 * with it. Publishes and sends nothing. Throws `INVALID_INPUT` with all faults, `NOT_FOUND` when missing ids are the
 * only faults, or `STALE_VERSION`.
 */
export async function saveDraft(call: Call, change: DraftChange): Promise<Workflow> {
  // The lock keeps segments and tags that the draft names from being deleted or renamed between the check and the commit.
  await lockSegments(call)
  const automation = await findAutomation(call, change.workflowId)
  refuseStale(automation, change.expectedUpdatedAt)
  const reading = readDefinition(change.definition)
  const settings = change.settings === undefined ? undefined : readSettings(change.settings)
  const emails = await planEmails(call, automation, reading.definition, reading.unreadable)
  // Goals that are left out stay as stored, but they must fit the new graph, so they are checked again.
  const wanted = change.successGoals === undefined ? automation.successGoals : change.successGoals
  const goals = readGoals(wanted, reading.definition.steps)
  const graphFaults = [
    ...reading.faults,
    ...emails.faults,
    ...(await namedFaults(call, reading)),
    ...goalStepFaults(reading.definition, reading.unreadable, goalIds(wanted)),
  ].map((fault) => within(change.path ?? '', fault))
  const faults = [
    ...graphFaults,
    ...(settings?.faults ?? []),
    ...goals.faults,
    ...(await goalReferenceFaults(call, goals.filters)),
  ]
  const missing = emails.missing.map((fault) => within(change.path ?? '', fault))
  if (faults.length > 0) refuseFaults([...faults, ...missing], 'The workflow')
  if (missing.length > 0) refuseMissing(missing)
  await writeEmails(call, automation.id, emails.plans)
  await writeDraft(call, automation, namingEmails(reading.definition, emails.plans), {
    settings: settings?.settings ?? automation.settings,
    goals: goals.goals,
  })
  return await readAutomation(call, automation.id)
}

/**
 * Returns a fault for each thing that the steps of a definition name and that does not exist, is of the wrong type or
 * cannot be reached. Tags need not exist, because publishing creates them.
 */
export async function namedFaults(
  call: Call,
  { definition, unreadable }: Pick<Reading, 'definition' | 'unreadable'>,
): Promise<Fault[]> {
  const readable = withoutUnreadable(definition, unreadable)
  const scope = { organizationId: call.organization.id }
  const missing = await referenceFaults(call.em, scope, filtersOf(readable), { tagsOnDemand: true })
  return [
    ...tagNameFaults(readable, filtersOf(readable)),
    ...missing,
    ...(await triggerFaults(call, readable)),
    ...(await fieldFaults(call, readable)),
    ...addressFaults(call, readable),
  ]
}

/** Does the same as `namedFaults` for the filters of goals. */
export async function goalReferenceFaults(call: Call, placed: readonly PlacedFilter[]): Promise<Fault[]> {
  const scope = { organizationId: call.organization.id }
  const missing = await referenceFaults(call.em, scope, placed, { tagsOnDemand: true })
  return [...tagNameFaults({ steps: [], edges: [] }, placed), ...missing]
}

async function writeDraft(
  { em, organization, actor }: Call,
  automation: Automation,
  definition: Definition,
  { settings, goals }: { settings: Settings; goals: readonly SuccessGoal[] },
): Promise<void> {
  await execute(
    em,
    sql`update automation set draft = ${json(definition)}, updated_by = ${actor.name},
        settings = ${json(settings)}, success_goals = ${json(goals)}
      where organization_id = ${organization.id} and id = ${automation.id}`,
  )
}

/**
 * Throws `NOT_FOUND` for ids that do not exist in this organization, as a tool does for its own missing ids. For drafts
 * without any other fault.
 */
export function refuseMissing(faults: readonly Fault[]): never {
  const [first] = faults
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more, see details)` : ''
  throw new Failure('NOT_FOUND', `At ${first?.path}, ${first?.message}${more}.`, { details: faults })
}

/** Checks the tag names in steps and filters, because publishing creates tags with these names. */
function tagNameFaults(definition: Definition, placed: readonly PlacedFilter[]): Fault[] {
  const inSteps = definition.steps.flatMap((step, position) => {
    const names = step.type !== 'EMAIL' && 'tagNames' in step.config ? step.config.tagNames : []
    return names.map((name, index) => ({
      stepId: step.id as string | undefined,
      name,
      path: `steps[${position}].config.tagNames[${index}]`,
    }))
  })
  const inFilters = placed.flatMap(({ filter, path, stepId }) =>
    placesOf([filter], '').flatMap(({ leaf, path: inner }) => {
      if (leaf.field !== 'tags' || !Array.isArray(leaf.value)) return []
      const at = joinPath(path + inner.slice(3), 'value')
      return leaf.value.map((name, index) => ({ stepId, name: String(name), path: joinPath(at, index) }))
    }),
  )
  return [...inSteps, ...inFilters].flatMap(({ stepId, name, path }) => {
    const message = tagNameFault(name)
    return message === null ? [] : [{ ...(stepId !== undefined && { stepId }), path, message }]
  })
}

function tagNameFault(name: string): string | null {
  if (name.trim() === '') return 'is blank; a tag name has 1 to 100 characters'
  if (name !== name.trim()) return 'begins or ends with a blank; remove it'
  return /\p{Cc}/u.test(name) ? 'holds a control character, such as a line break; write one line' : null
}

/** Returns a fault for each WEBHOOK step whose requests would all be refused. */
function addressFaults({ services }: Call, { steps }: Definition): Fault[] {
  return steps.flatMap(({ id, type, config }, position) => {
    const url = type === 'WEBHOOK' ? requestUrl(config.url) : null
    const message = url && services.web.faultOf(url)
    return message ? [{ stepId: id, path: `steps[${position}].config.url`, message }] : []
  })
}

/** Replaces each unreadable step by an empty EXIT step, so that positions stay and nothing in it is checked. */
function withoutUnreadable(definition: Definition, unreadable: ReadonlySet<number>): Definition {
  const steps = definition.steps.map((step, position) =>
    unreadable.has(position)
      ? { id: step.id, type: 'EXIT' as const, onError: 'FAIL' as const, config: {} }
      : step,
  )
  return { ...definition, steps }
}

/** Returns the fault with `base` put before its path. */
export function within(base: string, fault: Fault): Fault {
  if (base === '') return fault
  return { ...fault, path: fault.path === '' ? base : `${base}.${fault.path}` }
}
