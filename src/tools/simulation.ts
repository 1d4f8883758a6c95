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
    'Simulates a workflow for one person with a simulated clock, along every branch. Returns the path that would be taken by itself and the alternative paths, each step with its dates, email subjects and reasons for skipping, and dead ends. Nothing is stored or sent. Send exactly one of `workflowId` and `definition`, and exactly one of `subscriberId` and `sample`.',
  group: 'workflows',
  effect: 'read',
  permission: 'workflows',
  input: closed({
    workflowId: Type.Optional(
      Type.String({
        description:
          'The id of a workflow (`wf_…`), whose draft is simulated. Send this or `definition`, not both.',
      }),
    ),
    definition: Type.Optional(DefinitionInput),
    subscriberId: Type.Optional(
      Type.String({
        description:
          'The id of the subscriber to simulate for (`sub_…`), with their current data. Send this or `sample`, not both.',
      }),
    ),
    sample: Type.Optional(SamplePerson),
    from: Type.Optional(
      Type.String({
        description:
          'The time at which the person enters, ISO 8601. Without an offset, it is in the time zone of the organization. Defaults to now.',
      }),
    ),
  }),
  output: Simulation,
  bodyLimit: DOCUMENT_LIMITS.bytes,
  jsonDepth: DOCUMENT_LIMITS.jsonDepth + DEPTH_OF_CONTENT,
  handler: simulate,
})
