import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'

import Type, { type TSchema } from 'typebox'

import { ROUTES } from '../../api/routes.ts'
import { isRecord } from '../../schema/json.ts'
import { describeTool } from '../../src/catalogue/describe-tool.ts'
import { findOperation, LISTED_TOOLS } from '../../src/catalogue/registry.ts'
import { bare, type Route } from '../../src/catalogue/route.ts'
import type { Tool } from '../../src/catalogue/tool.ts'
import { comment, identityOf, type Json, type NameOf, toType } from './to-type.ts'

const HEAD = `// Made by \`npm run sdk-types\` from the catalogue; a test compares it. Do not edit.
import type { List } from './result.ts'
`

/** The members of a REST list. Lists become `List<T>`, so only their records get a name. */
const LIST_MEMBERS = 'object,data,has_more'

const PROJECT = new URL('../../', import.meta.url)
const SCHEMAS = new URL('schema/', PROJECT)

/** Returns the text of `sdk/src/catalogue.ts`: the types of all inputs and outputs. */
export async function sdkTypes(): Promise<string> {
  const file = new TypeFile(await readVocabulary())
  const tools = LISTED_TOOLS.map((tool) => toolMember(file, tool))
  const routes = ROUTES.map((route) => routeMember(file, route))
  return formatted([
    HEAD,
    ...file.declarations(),
    `/** What each tool takes and gives, by its name. */\nexport type Tools = {\n${tools.join('')}}\n`,
    `/** What each address of REST takes and gives: the parameters of its path, its query or body, its answer. */\nexport type Routes = {\n${routes.join('')}}\n`,
    `/** What calling each tool may do; one that only reads can be called again. */\nexport const TOOL_EFFECTS = {\n${LISTED_TOOLS.map(effectMember).join('')}} as const satisfies Record<keyof Tools, 'read' | 'draft' | 'write' | 'impact'>\n`,
  ])
}

/** Formats the text as `npm run format` does. */
function formatted(parts: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(
    `${PROJECT.pathname}node_modules/.bin/oxfmt`,
    ['--stdin-filepath=catalogue.ts'],
    {
      input: parts.join('\n'),
      encoding: 'utf8',
      cwd: PROJECT,
    },
  )
  if (status !== 0) throw new Error(`oxfmt does not take the types: ${stderr}`)
  return stdout
}

/** Returns the names that schemas have in `schema/`, by the identity of the schema. */
async function readVocabulary(): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  for (const file of globSync('*.ts', { cwd: SCHEMAS.pathname }).toSorted()) {
    const found: Record<string, unknown> = await import(new URL(file, SCHEMAS).href)
    for (const [name, value] of Object.entries(found)) {
      if (isSchema(value) && isWorthAName(value)) names.set(identityOf(value), name)
    }
  }
  return names
}

/** Collects the declarations of one file. A named schema is declared when it is first used. */
class TypeFile {
  readonly #names: ReadonlyMap<string, string>
  readonly #declared = new Map<string, string>()

  constructor(vocabulary: ReadonlyMap<string, string>) {
    this.#names = vocabulary
  }

  declarations(): string[] {
    return [...this.#declared].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, text]) => text)
  }

  /** Returns the type of a schema: its name, or the type written inline. */
  typeOf(schema: object): string {
    return toType(schema, this.#nameOf)
  }

  /** Declares a schema under `name`, unless the vocabulary already has a name for it. Returns the name. */
  declare(name: string, schema: object, description?: string): string {
    const known = this.#nameOf(schema)
    if (known !== undefined) return known
    return this.#write(name, schema, description)
  }

  readonly #nameOf: NameOf = (schema) => {
    const list = listItem(schema)
    if (list) return `List<${this.typeOf(list)}>`
    const name = this.#names.get(identityOf(schema))
    if (name === undefined) return undefined
    return this.#declared.has(name) ? name : this.#write(name, schema)
  }

  #write(name: string, schema: object, description: unknown = Object(schema).description): string {
    // Registered before its text is made, so that a second use of the name does not declare it again.
    this.#declared.set(name, '')
    const text = toType(schema, (inner) => (inner === schema ? undefined : this.#nameOf(inner)))
    const declaration = `${comment(description)}export type ${name} = ${text}\n`
    if (this.#declared.get(name)) throw new Error(`two schemas of the SDK are called ${name}`)
    this.#declared.set(name, declaration)
    return name
  }
}

function toolMember(file: TypeFile, tool: Tool): string {
  const { name, inputSchema, description } = describeTool(tool)
  const words = pascal(name)
  const input = file.declare(`${words}Input`, inputSchema)
  const output = file.declare(`${words}Output`, tool.output)
  return `${comment(description)}${name}: { input: ${input}; output: ${output} }\n`
}

function routeMember(file: TypeFile, route: Route): string {
  const tool = findOperation(route.operation)
  const inPath = Array.from(route.path.matchAll(/:(\w+)/g), ([, name = '']) => name)
  const answer = (route.reply ?? bare).schema(tool.output)
  const path = inPath.map((name) => `${name}: string`).join(', ')
  const input = declareRequest(file, route, tool, inPath)
  const output =
    answer === tool.output ? file.declare(`${pascal(tool.name)}Output`, answer) : file.typeOf(answer)
  return `${comment(tool.description)}'${route.method.toUpperCase()} ${route.path}': { path: [${path}]; input: ${input}; output: ${output} }\n`
}

/** Returns the type of the query or the body of a route. */
function declareRequest(file: TypeFile, route: Route, tool: Tool, inPath: readonly string[]): string {
  const stands = new Set(inPath.flatMap((name) => route.input?.standsFor[name] ?? [name]))
  const rest = Object.entries(tool.input.properties).filter(([name]) => !stands.has(name))
  const words = pascal(tool.name)
  if (route.list !== undefined) {
    const list = rest.find(([name]) => name === route.list)?.[1]
    if (!list) throw new Error(`${tool.name} has no ${route.list}`)
    return file.typeOf(list)
  }
  if (rest.length === 0) return 'Record<string, never>'
  const schema = Type.Object(Object.fromEntries(rest), { additionalProperties: false })
  if (tool.listed && identityOf(schema) === identityOf(describeTool(tool).inputSchema)) return `${words}Input`
  const place = route.method === 'get' || route.file !== undefined ? 'Query' : 'Body'
  return file.declare(`${words}${place}`, schema)
}

function effectMember({ name, effect }: Tool): string {
  return `${name}: '${effect}',
`
}

/** Returns the schema of the records in a REST list, or undefined for any other schema. */
function listItem(schema: object): object | undefined {
  const { properties }: Json = Object(schema)
  if (!isRecord(properties) || Object.keys(properties).join() !== LIST_MEMBERS) return undefined
  const items: unknown = Object(properties['data']).items
  return isRecord(items) ? items : undefined
}

/**
 * Returns whether a schema deserves a name: objects with members, and long enums and unions. Others are written inline.
 */
function isWorthAName(schema: object): boolean {
  const { properties, enum: values, anyOf }: Json = Object(schema)
  if (isRecord(properties)) return Object.keys(properties).length > 0
  return (Array.isArray(values) && values.length > 3) || (Array.isArray(anyOf) && anyOf.length > 2)
}

function pascal(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function isSchema(value: unknown): value is TSchema {
  return isRecord(value) && ('type' in value || 'anyOf' in value || 'enum' in value)
}
