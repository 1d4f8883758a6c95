import type { ToolDescription } from '@postloom/sdk'

import { bold } from './output.ts'

/** The parts of a JSON Schema that are used here. */
type Schema = {
  type?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  minimum?: number
  maximum?: number
  maxItems?: number
}

type Parameter = { path: string; kind: string; description: string }

/** How many levels of nested parameters are shown. */
const DEPTH = 2
const INDENT = 4

/** Returns the help of a tool for a person who wants to run it. */
export function toolHelp(tool: ToolDescription, width: number): string {
  // Omitted because `run` repeats the call with the confirmation code by itself.
  const input: Schema = tool.inputSchema
  const { confirmationCode: _, ...properties } = input.properties ?? {}
  const schema = { ...input, properties }
  const parameters = parametersOf(schema, '', DEPTH)
  const shown = parameters.flatMap(({ path, kind, description }) => [
    `  ${bold(path)}  ${kind}`,
    ...(description ? [wrap(description, width, INDENT)] : []),
  ])
  return [
    `${bold(tool.name)}: ${tool.annotations.title}`,
    wrap(tool.description, width),
    '',
    ...(shown.length > 0 ? [bold('Parameters'), ...shown] : ['It has no parameters.']),
    '',
    ...(tool.requiresConfirmation
      ? [wrap('Asks for a confirmation: without --confirm, what would happen is shown first.', width)]
      : []),
    `${bold('Usage')}: ${usageOf(tool.name, schema)}`,
  ].join('\n')
}

/** The description of a nullable parameter is in a branch of its `anyOf`. */
function descriptionOf({ description, anyOf = [] }: Schema): string {
  return description ?? anyOf.find((one) => one.description)?.description ?? ''
}

/** Returns a sample command with the required parameters. */
function usageOf(name: string, { properties = {}, required = [] }: Schema): string {
  const sample = required.map((key) => [key, sampleOf(properties[key] ?? {})])
  if (sample.length === 0) return `postloom run ${name} [--input JSON|@file|-]`
  return `postloom run ${name} --input '${JSON.stringify(Object.fromEntries(sample))}'`
}

function sampleOf(schema: Schema): unknown {
  if (schema.enum) return schema.enum[0]
  if (schema.const !== undefined) return schema.const
  if (schema.anyOf) return sampleOf(schema.anyOf[0] ?? {})
  if (schema.type === 'array') return []
  if (schema.type === 'object') return {}
  if (schema.type === 'boolean') return true
  return schema.type === 'integer' || schema.type === 'number' ? 1 : '…'
}

function parametersOf(schema: Schema, prefix: string, depth: number): Parameter[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, own]) => {
    const path = `${prefix}${name}`
    const remark = schema.required?.includes(name) ? 'required' : defaultOf(own)
    const inner = own.type === 'array' ? own.items : own
    return [
      {
        path,
        kind: [kindOf(own), remark].filter(Boolean).join(', '),
        description: descriptionOf(own),
      },
      ...(depth > 1 && inner
        ? parametersOf(inner, own.type === 'array' ? `${path}[].` : `${path}.`, depth - 1)
        : []),
    ]
  })
}

function defaultOf({ default: preset }: Schema): string {
  return preset === undefined ? '' : `default ${JSON.stringify(preset)}`
}

function kindOf(schema: Schema): string {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.anyOf) return schema.anyOf.map(kindOf).join(' | ')
  if (schema.type === 'array') {
    const of = schema.items ? kindOf(schema.items) : 'anything'
    return `list of ${of.includes(' ') ? `(${of})` : of}${schema.maxItems ? `, at most ${schema.maxItems}` : ''}`
  }
  const { minimum, maximum } = schema
  const bounds = minimum !== undefined && maximum !== undefined ? ` from ${minimum} to ${maximum}` : ''
  return `${schema.type ?? 'anything'}${bounds}`
}

function wrap(text: string, width: number, indent = 0): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    if (line && indent + line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line ? `${line} ${word}` : word
  }
  return [...lines, line].map((each) => ' '.repeat(indent) + each).join('\n')
}
