import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import {
  ConfirmationEmail,
  ORGANIZATION_LIMITS,
  OrganizationSettings,
  WritingStyle,
} from '../../schema/organization.ts'
import { defineTool } from '../catalogue/tool.ts'
import { changeSettings, changeWritingStyle, readWritingStyle } from '../domain/organization-settings.ts'

const style = (description: string) =>
  Type.Optional(
    Type.String({
      description: `${description} Up to ${ORGANIZATION_LIMITS.writingStyle} characters; "" clears it.`,
    }),
  )

export const updateOrganizationSettings = defineTool({
  name: 'update_organization_settings',
  title: 'Update organization settings',
  description:
    'Changes the name, the time zone, double opt-in and the confirmation email of the organization. What is left out stays; without any, the answer shows how they are.',
  group: 'organization',
  effect: 'write',
  permission: 'organization',
  input: closed({
    name: Type.Optional(
      Type.String({ description: `What {{org-name}} shows, up to ${ORGANIZATION_LIMITS.name} characters.` }),
    ),
    timezone: Type.Optional(
      Type.String({
        description: 'An IANA name such as Europe/Paris; dates without an offset are read in it.',
      }),
    ),
    doubleOptIn: Type.Optional(
      Type.Boolean({ description: 'Whether new subscribers confirm by a link in an email first.' }),
    ),
    confirmationEmail: Type.Optional(ConfirmationEmail),
  }),
  output: closed({ organization: OrganizationSettings }),
  handler: async (call, input) => ({ organization: await changeSettings(call, input) }),
})

export const getWritingStyle = defineTool({
  name: 'get_writing_style',
  title: 'Get the writing style',
  description: 'Reads how the organization writes: read it before writing content for its email.',
  group: 'content',
  effect: 'read',
  permission: 'content',
  input: closed({}),
  output: closed({ writingStyle: WritingStyle }),
  handler: async (call) => ({ writingStyle: await readWritingStyle(call) }),
})

export const updateWritingStyle = defineTool({
  name: 'update_writing_style',
  title: 'Update the writing style',
  description: 'Changes how the organization writes. What is left out stays.',
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({
    persona: style('Who speaks, and in what tone.'),
    audience: style('Who reads.'),
    vocabulary: style('Words to use and to avoid.'),
  }),
  output: closed({ writingStyle: WritingStyle }),
  handler: async (call, input) => ({ writingStyle: await changeWritingStyle(call, input) }),
})
