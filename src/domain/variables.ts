import type { FieldVariable, Variable } from '../../schema/organization.ts'
import type { Call } from '../catalogue/tool.ts'
import { BUILT_IN_VARIABLES } from '../content/variables.ts'
import { listFields } from './fields.ts'

/** What email content can say of its recipient. */
type Person = {
  fields: Readonly<Record<string, unknown>>
  name: string | null
  email: string
  phone: string | null
}

const ORGANIZATION_PREFIX = 'org-'

/** What email content can name: variables of every email, of the organization, and of its custom fields. */
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

/** The values by variable name for one person: custom fields, whose names can be none of the built-in ones. */
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

/** The values that need no person; without one, fallbacks show for the rest. */
export function organizationVariables(organizationName: string): Record<string, unknown> {
  return { 'org-name': organizationName }
}

function syntaxOf(name: string): string {
  return `{{${name}}}`
}
