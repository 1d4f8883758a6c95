import type { OperationType, WireOperation } from '../../../schema/campaign-edit.ts'
import type { ContentType } from '../../../schema/values.ts'
import { type Fault, refuseFaults } from '../../catalogue/failure.ts'
import { inspectDocument } from '../../content/document.ts'
import { inspectSlate } from '../../content/slate.ts'
import type { DocumentNode, DocumentType } from './dialects.ts'

/** Selects a node of a document. */
export type Target = { nodeId: string } | { path: readonly number[] } | { type: string; index: number }

/** Replaces exact text inside `target`, or in the whole document when it is null. */
export type Replacement = {
  type: 'replace_text'
  find: string
  replace: string
  occurrence: 'first' | 'all'
  target: Target | null
}

/** A validated operation: each variant has exactly the members that belong together. */
export type Operation =
  | Replacement
  | { type: 'insert_node'; node: DocumentNode; beside: Target; side: 'before' | 'after' }
  | { type: 'insert_node'; node: DocumentNode; at: readonly number[] }
  | { type: 'append_node' | 'prepend_node'; node: DocumentNode; parent: Target | null }
  | { type: 'remove_node'; target: Target }
  | { type: 'replace_node'; target: Target; node: DocumentNode }

type Member = Exclude<keyof WireOperation, 'type'>
type WireTarget = NonNullable<WireOperation['target']>

const PLACES = ['before', 'after', 'at'] as const
const MEMBERS: Readonly<Record<OperationType, { needed: readonly Member[]; possible: readonly Member[] }>> = {
  replace_text: { needed: ['find', 'replace'], possible: ['occurrence', 'target'] },
  insert_node: { needed: ['node'], possible: PLACES },
  append_node: { needed: ['node'], possible: ['parent'] },
  prepend_node: { needed: ['node'], possible: ['parent'] },
  remove_node: { needed: ['target'], possible: [] },
  replace_node: { needed: ['target', 'node'], possible: [] },
}

/** Validates operations for a content type. Throws `INVALID_INPUT` with every fault of every operation. */
export function readOperations(contentType: ContentType, given: readonly WireOperation[]): Operation[] {
  const faults = given.flatMap((operation, index) =>
    faultsOf(contentType, operation).map(({ path, message }) => ({
      path: `operations[${index}]${path}`,
      message,
    })),
  )
  if (faults.length > 0) refuseFaults(faults)
  return given.map(operationOf)
}

function faultsOf(contentType: ContentType, operation: WireOperation): Fault[] {
  const { type, node } = operation
  const { needed, possible } = MEMBERS[type]
  // The schema allows no other members, so the keys are members of `WireOperation`.
  const given = Object.keys(operation).filter((name) => name !== 'type') as Member[]
  const faults: Fault[] = [
    ...needed
      .filter((name) => operation[name] === undefined)
      .map((name) => ({ path: `.${name}`, message: `is missing; ${type} needs ${needed.join(' and ')}` })),
    ...given
      .filter((name) => !needed.includes(name) && !possible.includes(name))
      .map((name) => ({ path: `.${name}`, message: `does not go with ${type}; leave it out` })),
  ]
  if (type === 'insert_node' && PLACES.filter((name) => operation[name] !== undefined).length !== 1) {
    faults.push({ path: '', message: 'needs exactly one of before, after and at' })
  }
  for (const name of ['target', 'before', 'after', 'parent'] as const) {
    const fault = operation[name] && targetFault(operation[name])
    if (fault) faults.push({ path: `.${name}`, message: fault })
  }
  if (contentType === 'MARKDOWN') return [...faults, ...markdownFaults(operation)]
  return node === undefined ? faults : [...faults, ...nodeFaults(contentType, node)]
}

function targetFault({ nodeId, path, type, index }: WireTarget): string | null {
  const forms = [nodeId !== undefined, path !== undefined, type !== undefined || index !== undefined]
  const isPair = type !== undefined && index !== undefined
  if (forms.filter(Boolean).length === 1 && (nodeId ?? path ?? (isPair || undefined)) !== undefined)
    return null
  return 'must be {nodeId}, {path} or {type, index}'
}

function markdownFaults({ type, target }: WireOperation): Fault[] {
  if (type !== 'replace_text') {
    const message =
      'works on a document; content in MARKDOWN takes replace_text only, or send the whole content'
    return [{ path: '.type', message }]
  }
  return target
    ? [{ path: '.target', message: 'names a node; content in MARKDOWN has none, leave it out' }]
    : []
}

function nodeFaults(contentType: DocumentType, node: DocumentNode): Fault[] {
  const faults =
    contentType === 'MAILY' ? inspectDocument({ type: 'doc', content: [node] }).faults : inspectSlate([node])
  return faults.map(({ path, message }) => ({
    path: `.node${path.replace(/^(\.content)?\[0\]/, '')}`,
    message,
  }))
}

/** Converts an operation that `faultsOf` accepted, so the default values for missing members are never used. */
function operationOf(wire: WireOperation): Operation {
  const { type, find = '', replace = '', occurrence = 'all', node = {}, before, after, at = [] } = wire
  const target = wire.target ? targetOf(wire.target) : null
  switch (type) {
    case 'replace_text':
      return { type, find, replace, occurrence, target }
    case 'insert_node':
      if (before) return { type, node, beside: targetOf(before), side: 'before' }
      return after ? { type, node, beside: targetOf(after), side: 'after' } : { type, node, at }
    case 'append_node':
    case 'prepend_node':
      return { type, node, parent: wire.parent ? targetOf(wire.parent) : null }
    case 'remove_node':
      return { type, target: target ?? { path: [] } }
    case 'replace_node':
      return { type, target: target ?? { path: [] }, node }
  }
}

function targetOf({ nodeId, path, type = '', index = 0 }: WireTarget): Target {
  if (nodeId !== undefined) return { nodeId }
  return path === undefined ? { type, index } : { path }
}
