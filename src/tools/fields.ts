import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { FieldVariable, Variable } from '../../schema/organization.ts'
import { CustomField } from '../../schema/subscriber.ts'
import { defineTool } from '../catalogue/tool.ts'
import { listVariables } from '../domain/library/variables.ts'
import { listFields } from '../domain/subscribers/fields.ts'

export const getCustomFields = defineTool({
  name: 'get_custom_fields',
  title: 'Get custom fields',
  description:
    'Returns the custom fields of subscribers with their types. To create a field, send a value for it to `add_subscriber`.',
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
    "Returns the variables that email content, subjects and previews can contain in double braces: built-in variables, those of the organization, and custom fields. Each can have a fallback: {{name | 'there'}}.",
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
