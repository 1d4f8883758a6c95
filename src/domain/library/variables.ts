import type { FieldVariable, Variable } from '../../../schema/organization.ts'
import type { Call } from '../../catalogue/tool.ts'
import { BUILT_IN_VARIABLES } from '../../content/variables.ts'
import { listFields } from '../subscribers/fields.ts'

/** The recipient's data that content can use. */
type Person = {
  fields: Readonly<Record<string, unknown>>
  name: string | null
  email: string
  phone: string | null
}

const ORGANIZATION_PREFIX = 'org-'

/** Lists the variables of content: built-in ones, those of the organization, and custom fields. */
export async function listVariables(
  call: Call,
): Promise<{ builtIn: Variable[]; organization: Variable[]; customFields: FieldVariable[] }> {
  const all = BUILT_IN_VARIABLES.map((variable) => ({ ...variable, syntax: syntaxOf(variable.name) }))
  const fields = await listFields(call)
  return {
    builtIn: all.filter(({ name }) => !name.startsWith(ORGANIZATION_PREFIX)),
    organization: all
      .filter(({ name }) => name.startsWith(ORGANIZATION_PREFIX))
      .map((variable) =>
        variable.name === 'org-name' ? { ...variable, example: call.organization.name } : variable,
      ),
    customFields: fields.map(({ name, type }) => ({ name, type, syntax: syntaxOf(name) })),
  }
}

/** Returns a person's values by variable name. Custom fields cannot have the names of built-in variables. */
export function personVariables(
  { fields, name, email, phone }: Person,
  organizationName: string,
): Record<string, unknown> {
  return {
    ...fields,
    name: name ?? '',
    email,
    phone: phone ?? '',
    ...organizationVariables(organizationName),
  }
}

/** Returns the values that depend only on the organization. */
export function organizationVariables(organizationName: string): Record<string, unknown> {
  return { 'org-name': organizationName }
}

function syntaxOf(name: string): string {
  return `{{${name}}}`
}
