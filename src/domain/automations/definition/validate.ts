import { AUTOMATION_LIMITS } from '../../../../schema/automation-parts.ts'
import { type Definition, Edge, NEXT_PORT, Settings } from '../../../../schema/automation.ts'
import { isRecord } from '../../../../schema/json.ts'
import { validateGraph } from '../../../../temporal/graph.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { didYouMean, joinPath, kindOf, schemaFaults, withDefaults } from '../../../catalogue/schema-faults.ts'
import { emailStepIds, readStep, type StepReading } from './read-step.ts'
import { settingFaults } from './setting-faults.ts'

/** A definition with its defaults filled in, and every fault. It may be stored if there are no faults. */
export type Reading = {
  definition: Definition
  faults: Fault[]
  /** The positions of steps with faults, in whose place the definition has stand-ins. */
  unreadable: ReadonlySet<number>
}
/** Settings with their defaults filled in, and every fault. With faults, the settings are the defaults. */
export type SettingsReading = { settings: Settings; faults: Fault[] }

/**
 * Reads a raw `{steps, edges}`. Faults are ordered: unknown members, each step, each edge, then the graph as a whole.
 * With `publishing`, completeness is checked as well.
 */
export function readDefinition(raw: unknown, { publishing = false } = {}): Reading {
  if (!isRecord(raw)) return unreadable('', `must be a graph {steps, edges}, not ${kindOf(raw)}`)
  const faults = Object.keys(raw)
    .filter((key) => key !== 'steps' && key !== 'edges')
    .map((key) => ({
      path: key,
      message: `"${key}" is not known here; ${didYouMean(key, ['steps', 'edges'])}`,
    }))
  const steps = readList(raw, 'steps', faults)
  const edges = readList(raw, 'edges', faults)
  const context = { entry: true, emailSteps: emailStepIds(steps) }
  const readings = steps.map((step, index) => readStep(step, joinPath('steps', index), context))
  const edgeReadings = edges.map((edge, index) => readEdge(edge, joinPath('edges', index)))
  const definition: Definition = {
    steps: readings.map(({ step }) => step),
    edges: edgeReadings.map(({ edge }) => edge),
  }
  faults.push(
    ...readings.flatMap((reading) => reading.faults),
    ...edgeReadings.flatMap((reading) => reading.faults),
  )
  const unread = {
    steps: new Set(readings.flatMap(({ readable }, index) => (readable ? [] : [index]))),
    edges: new Set(edgeReadings.flatMap((reading, index) => (reading.faults.length === 0 ? [] : [index]))),
  }
  faults.push(...validateGraph(definition, { publishing, unreadable: unread }))
  if (publishing) faults.push(...emptyPathFaults(readings))
  return { definition, faults, unreadable: unread.steps }
}

/** Reads raw settings; undefined stands for the defaults. */
export function readSettings(raw: unknown, path = 'settings'): SettingsReading {
  const preset: Settings = { exitOnUnsubscribe: true, priority: 50 }
  if (raw === undefined) return { settings: preset, faults: [] }
  if (!isRecord(raw))
    return { settings: preset, faults: [{ path, message: `must be an object, not ${kindOf(raw)}` }] }
  const faults = [...schemaFaults(Settings, raw, { path }), ...settingFaults(raw, path)]
  // The cast is safe: without faults, the schema has accepted the settings.
  return { settings: faults.length > 0 ? preset : (withDefaults(Settings, raw) as Settings), faults }
}

function readList(raw: Record<string, unknown>, name: 'steps' | 'edges', faults: Fault[]): unknown[] {
  const list = raw[name]
  // One item over the limit is enough to refuse the list. Reading a million of them would block the process.
  if (Array.isArray(list)) return list.slice(0, AUTOMATION_LIMITS[name] + 1)
  faults.push({
    path: name,
    message: list === undefined ? `"${name}" is missing` : `must be a list, not ${kindOf(list)}`,
  })
  return []
}

function readEdge(raw: unknown, path: string): { edge: Edge; faults: Fault[] } {
  const faults = schemaFaults(Edge, raw, { path })
  if (faults.length > 0) {
    const from = isRecord(raw) && typeof raw.from === 'string' ? { stepId: raw.from.slice(0, 64) } : {}
    const blank = { from: '', to: '', port: NEXT_PORT }
    return { edge: blank, faults: faults.map((fault) => ({ ...from, ...fault })) }
  }
  // The cast is safe: the schema has accepted the edge.
  return { edge: withDefaults(Edge, raw) as Edge, faults }
}

function emptyPathFaults(readings: readonly StepReading[]): Fault[] {
  return readings.flatMap(({ step, readable }, position) => {
    if (!readable || step.type !== 'BRANCH') return []
    return step.config.paths.flatMap(({ filters }, index) => {
      if (filters.length > 0) return []
      const path = `steps[${position}].config.paths[${index}].filters`
      const message = 'the path has no filters and would take everyone; give it one, or use the port else'
      return [{ stepId: step.id, path, message }]
    })
  })
}

function unreadable(path: string, message: string): Reading {
  return { definition: { steps: [], edges: [] }, faults: [{ path, message }], unreadable: new Set() }
}
