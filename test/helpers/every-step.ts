import { WAIT_MODES } from '../../schema/automation-steps.ts'
import { type Edge, type Step, STEP_TYPES } from '../../schema/automation.ts'
import { ports } from '../../temporal/graph.ts'

/** The kinds of steps, and the modes of waiting, that are not among these. */
export function missingKinds(steps: readonly Step[]): string[] {
  const present = new Set<string>(
    steps.flatMap(({ type, config }) => (type === 'WAIT_UNTIL' ? [type, config.mode] : [type])),
  )
  return [...STEP_TYPES, ...WAIT_MODES].filter((kind) => !present.has(kind))
}

/** Edges along these steps, each left by its usual port. */
export function alongPorts(steps: readonly Step[]): Edge[] {
  return steps.slice(1).map(({ id }, index) => {
    const from = steps[index]
    return { from: from?.id ?? '', port: (from && ports(from)[0]) ?? 'next', to: id }
  })
}
