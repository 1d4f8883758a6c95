import Type from 'typebox'

import { DefinitionInput } from '../../schema/automation.ts'
import { closed } from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { SamplePerson, Simulation } from '../../schema/simulation.ts'
import { defineTool } from '../catalogue/tool.ts'
import { simulate } from '../domain/automations/simulation/simulate.ts'

/** Members around the content of an email in a definition: definition, steps, step, config. */
const DEPTH_OF_CONTENT = 4

export const simulateWorkflow = defineTool({
  name: 'simulate_workflow',
  title: 'Simulate a workflow',
  description:
    'Walks a workflow for one person with a simulated clock, through every branch: what happens by itself, and what would happen elsewhere, each step with its dates, the subject lines, who is skipped and why, and dead ends. Nothing is written or sent.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    workflowId: Type.Optional(
      Type.String({ description: 'Simulates the draft of this workflow (wf_…). Or send definition.' }),
    ),
    definition: Type.Optional(DefinitionInput),
    subscriberId: Type.Optional(
      Type.String({ description: 'For this person, as they are now (sub_…). Or send sample.' }),
    ),
    sample: Type.Optional(SamplePerson),
    from: Type.Optional(
      Type.String({
        description: 'When they enter: ISO 8601, local to the organization without an offset; now without.',
      }),
    ),
  }),
  output: Simulation,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  jsonDepth: DOCUMENT_LIMITS.jsonDepth + DEPTH_OF_CONTENT,
  handler: simulate,
})
