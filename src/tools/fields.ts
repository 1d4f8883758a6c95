import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { FieldVariable, Variable } from '../../schema/organization.ts'
import { CustomField } from '../../schema/subscriber.ts'
import { defineTool } from '../catalogue/tool.ts'
import { listFields } from '../domain/fields.ts'
import { listVariables } from '../domain/variables.ts'

export const getCustomFields = defineTool({
  name: 'get_custom_fields',
  title: 'Get custom fields',
  description:
    'Lists the custom fields of subscribers with their types. add_subscriber makes new ones by using them.',
  group: 'subscribers',
  effect: 'read',
  permission: 'subscribers',
  input: closed({}),
  output: closed({ customFields: Type.Array(CustomField) }),
  handler: async (call) => ({ customFields: await listFields(call) }),
})

export const getAvailableVariables = defineTool({
  name: 'get_available_variables',
  title: 'Get available variables',
  description:
    "Lists what email content, subjects and previews can name in double braces: built-in variables, the organization's, and custom fields. Any of them takes a fallback: {{name | 'there'}}.",
  group: 'content',
  effect: 'read',
  permission: 'content',
  input: closed({}),
  output: closed({
    builtIn: Type.Array(Variable),
    organization: Type.Array(Variable),
    customFields: Type.Array(FieldVariable),
  }),
  handler: (call) => listVariables(call),
})
