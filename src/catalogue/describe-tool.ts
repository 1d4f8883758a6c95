import Type, { type TSchema } from 'typebox'

import type { Tool } from './tool.ts'

/** A tool as discovery publishes it (decisions, section 2). */
export type ToolDescription = {
  name: string
  description: string
  group: string
  inputSchema: TSchema
  outputSchema: TSchema
  annotations: {
    title: string
    readOnlyHint: boolean
    destructiveHint: boolean
    idempotentHint: boolean
    openWorldHint: boolean
  }
  requiresConfirmation: boolean
}

const CONFIRMATION_CODE = Type.String({
  pattern: '^[0-9]{5}$',
  description: 'The code of the confirmation challenge; repeat the same input with it.',
})

/** Returns the public description of a tool; its hints are derived from its effect. */
export function describeTool(tool: Tool): ToolDescription {
  const isImpact = tool.effect === 'impact'
  return {
    name: tool.name,
    description: tool.description,
    group: tool.group,
    inputSchema: isImpact ? withConfirmationCode(tool) : tool.input,
    outputSchema: tool.output,
    annotations: {
      title: tool.title,
      readOnlyHint: tool.effect === 'read',
      destructiveHint: isImpact,
      idempotentHint: tool.effect === 'read',
      openWorldHint: isImpact || tool.prepare !== undefined,
    },
    requiresConfirmation: isImpact,
  }
}

function withConfirmationCode(tool: Tool): TSchema {
  return Type.Object(
    { ...tool.input.properties, confirmationCode: Type.Optional(CONFIRMATION_CODE) },
    { additionalProperties: false },
  )
}
