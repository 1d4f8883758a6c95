import Type from 'typebox'

import { closed, nullable } from '../../schema/define.ts'
import {
  ConfirmationEmail,
  ORGANIZATION_LIMITS,
  OrganizationSettings,
  WritingStyle,
} from '../../schema/organization.ts'
import { defineTool } from '../catalogue/tool.ts'
import { changeSettings, changeWritingStyle, readWritingStyle } from '../domain/organizations/settings.ts'

const style = (description: string) =>
  Type.Optional(
    Type.String({
      description: `${description} Up to ${ORGANIZATION_LIMITS.writingStyle} characters. An empty string clears it.`,
    }),
  )

export const updateOrganizationSettings = defineTool({
  name: 'update_organization_settings',
  title: 'Update organization settings',
  description:
    'Changes the name, the time zone, double opt-in and the confirmation email of the organization, and returns these settings. Omitted settings keep their values; `confirmationEmail: null` restores the standard email. Call it without any to read them.',
  group: 'organization',
  effect: 'write',
  permission: 'organization',
  input: closed({
    name: Type.Optional(
      Type.String({
        description: `The name of the organization, shown by {{org-name}}, up to ${ORGANIZATION_LIMITS.name} characters.`,
      }),
    ),
    timezone: Type.Optional(
      Type.String({
        description:
          'The IANA time zone, such as Europe/Paris. Dates without an offset are in this time zone.',
      }),
    ),
    doubleOptIn: Type.Optional(
      Type.Boolean({ description: 'Whether new subscribers must first confirm through a link in an email.' }),
    ),
    confirmationEmail: Type.Optional(nullable(ConfirmationEmail)),
  }),
  output: closed({ organization: OrganizationSettings }),
  handler: async (call, input) => ({ organization: await changeSettings(call, input) }),
})

export const getWritingStyle = defineTool({
  name: 'get_writing_style',
  title: 'Get the writing style',
  description:
    'Returns the writing style of the organization: persona, audience and vocabulary. Call it before writing email content.',
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
  description:
    'Changes the writing style of the organization and returns it. Omitted parts keep their values.',
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({
    persona: style('The voice of the organization: who speaks, and in which tone.'),
    audience: style('The readers.'),
    vocabulary: style('The words to use and to avoid.'),
  }),
  output: closed({ writingStyle: WritingStyle }),
  handler: async (call, input) => ({ writingStyle: await changeWritingStyle(call, input) }),
})
