import Type, { type Static } from 'typebox'

import { closed, nullable } from './define.ts'
import { PublishedVersion } from './workflow.ts'

/** A version in a list, with its number of steps and of active runs. */
export const WorkflowVersion = closed({
  ...PublishedVersion.properties,
  isCurrent: Type.Boolean({ description: 'Whether this is the published version, on which new runs start.' }),
  steps: Type.Integer(),
  activeRuns: Type.Integer(),
})
export type WorkflowVersion = Static<typeof WorkflowVersion>

const before = Type.Unknown({ description: 'The earlier value. Absent if there was none.' })
const after = Type.Unknown({ description: 'The later value. Absent if there is none.' })

/** One member that differs. `path` is a JSON path inside the step, the settings or the goal. */
export const Difference = closed({
  path: Type.String(),
  before: Type.Optional(before),
  after: Type.Optional(after),
})
export type Difference = Static<typeof Difference>

const named = { id: Type.String(), type: nullable(Type.String()), name: nullable(Type.String()) }

/**
 * The differences between two versions of a workflow. Paths that begin with `email.` refer to the email that a step
 * sends.
 */
export const VersionComparison = closed({
  from: closed({ number: Type.Integer() }),
  to: closed({
    number: nullable(Type.Integer({ description: 'The number of the version. Null for the draft.' })),
  }),
  identical: Type.Boolean(),
  added: Type.Array(closed(named)),
  removed: Type.Array(closed(named)),
  changed: Type.Array(closed({ ...named, changes: Type.Array(Difference) })),
  edges: closed({
    added: Type.Array(closed({ from: Type.String(), to: Type.String(), port: Type.String() })),
    removed: Type.Array(closed({ from: Type.String(), to: Type.String(), port: Type.String() })),
  }),
  settings: Type.Array(Difference),
  goals: Type.Array(Difference),
})
export type VersionComparison = Static<typeof VersionComparison>
