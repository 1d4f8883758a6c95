import { DOCUMENT_LIMITS } from '../../../schema/document.ts'
import { isRecord } from '../../../schema/json.ts'
import type { ContentType } from '../../../schema/values.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import { didYouMean } from '../../catalogue/schema-faults.ts'
import {
  childrenOf,
  type Dialect,
  DIALECTS,
  type DocumentNode,
  openDocument,
  type Place,
  placesFrom,
} from './dialects.ts'
import type { Operation, Replacement, Target } from './operations.ts'
import { rewrite } from './rewrite.ts'

/** How many node types the error for a missing type suggests. */
const MOST_TYPES = 20

/**
 * Applies operations in order to a copy of the content. Returns the new content and the number of matches of each
 * operation. An operation that matches nothing refuses the whole call, and the error names its index.
 */
export function applyOperations(
  contentType: ContentType,
  content: unknown,
  given: readonly Operation[],
): { content: unknown; matched: number[] } {
  // Inserted nodes become part of the document and later operations change them, so the input is copied.
  const operations = structuredClone(given)
  const budget = { left: DOCUMENT_LIMITS.bytes }
  if (contentType === 'MARKDOWN') {
    let text = typeof content === 'string' ? content : ''
    const matched = operations.map((operation, index) => {
      if (operation.type !== 'replace_text') throw new Error(`${operation.type} replaces no text`)
      const at = `operations[${index}]`
      const result = replaceIn([text], operation, at, budget)
      text = result.pieces.join('')
      return counted(result.matched, operation, at)
    })
    return { content: text, matched }
  }
  const { root, contentOf } = openDocument(content)
  const editor = new DocumentEditor(DIALECTS[contentType], root, budget)
  const matched = operations.map((operation, index) => editor.apply(operation, `operations[${index}]`))
  return { content: contentOf(root), matched }
}

/** Edits one document. `at` is the path of the operation in error messages. */
class DocumentEditor {
  readonly #dialect: Dialect
  readonly #root: DocumentNode
  readonly #budget: { left: number }

  constructor(dialect: Dialect, root: DocumentNode, budget: { left: number }) {
    this.#dialect = dialect
    this.#root = root
    this.#budget = budget
  }

  apply(operation: Operation, at: string): number {
    switch (operation.type) {
      case 'replace_text':
        return counted(this.#replaceText(operation, at), operation, at)
      case 'insert_node':
        if ('at' in operation) this.#insertAt(operation.at, operation.node, at)
        else this.#insertBeside(operation.beside, operation.side, operation.node, at)
        return 1
      case 'append_node':
      case 'prepend_node': {
        const parent = operation.parent ? this.#find(operation.parent, `${at}.parent`).node : this.#root
        const children = this.#childrenOf(parent, `${at}.parent`)
        children.splice(operation.type === 'append_node' ? children.length : 0, 0, operation.node)
        return 1
      }
      case 'remove_node': {
        const { siblings, index } = this.#findInside(operation.target, `${at}.target`)
        siblings.splice(index, 1)
        return 1
      }
      case 'replace_node': {
        const { siblings, index } = this.#findInside(operation.target, `${at}.target`)
        siblings.splice(index, 1, operation.node)
        return 1
      }
    }
  }

  #insertAt(path: readonly number[], node: DocumentNode, at: string): void {
    const above = path.slice(0, -1)
    const parent = above.length === 0 ? this.#root : this.#find({ path: above }, `${at}.at`).node
    const children = this.#childrenOf(parent, `${at}.at`)
    const index = path.at(-1) ?? 0
    if (index > children.length) {
      refuse(
        `${at}.at`,
        `leads past the end: there are ${children.length} nodes at ${shown({ path: above })}.`,
      )
    }
    children.splice(index, 0, node)
  }

  #insertBeside(target: Target, side: 'before' | 'after', node: DocumentNode, at: string): void {
    const { siblings, index } = this.#findInside(target, `${at}.${side}`)
    siblings.splice(side === 'before' ? index : index + 1, 0, node)
  }

  #replaceText(operation: Replacement, at: string): number {
    const { isText, attributesOf, readable } = this.#dialect
    const { target } = operation
    const start = target ? this.#find(target, `${at}.target`) : { node: this.#root, parent: null, index: 0 }
    const places = this.#placesFrom(start, at)
    const within = new Set(places.map(({ node }) => node))
    const emptied = new Set<DocumentNode>()
    let matched = 0
    for (const place of places) {
      const { node, parent, index } = place
      const siblings = this.#listOf(parent)
      if (isText(node)) {
        const before = siblings[index - 1]
        if (isRecord(before) && isText(before) && within.has(before)) continue
        const run = runFrom(siblings.slice(index), (one) => isText(one) && within.has(one))
        const result = this.#rewriteRun(run, operation, matched, at)
        matched += result.matched
        for (const one of result.emptied) emptied.add(one)
      } else {
        const attributes = attributesOf(node)
        const names = readable.get(node['type']) ?? []
        if (isRecord(attributes)) matched += this.#rewriteMembers(attributes, names, operation, matched, at)
      }
      if (operation.occurrence === 'first' && matched > 0) break
    }
    if (this.#dialect.keepsEmptyText) return matched
    const emptying = places.flatMap(({ node, parent }) => (parent && emptied.has(node) ? [parent] : []))
    for (const parent of new Set(emptying)) {
      const left = this.#listOf(parent).filter((child) => !isRecord(child) || !emptied.has(child))
      parent[this.#dialect.children] = left
    }
    return matched
  }

  #rewriteRun(
    run: readonly DocumentNode[],
    operation: Replacement,
    already: number,
    at: string,
  ): { matched: number; emptied: DocumentNode[] } {
    const texts = run.map(({ text }) => (typeof text === 'string' ? text : ''))
    const { pieces, matched } = replaceIn(texts, operation, at, this.#budget, already)
    run.forEach((node, position) => {
      node['text'] = pieces[position] ?? ''
    })
    return { matched, emptied: matched === 0 ? [] : run.filter(({ text }) => text === '') }
  }

  #rewriteMembers(
    attributes: Record<string, unknown>,
    names: readonly string[],
    operation: Replacement,
    already: number,
    at: string,
  ): number {
    let matched = 0
    for (const name of names) {
      const value = attributes[name]
      const flag = this.#dialect.flags.get(name)
      if (typeof value !== 'string' || (flag !== undefined && attributes[flag] === true)) continue
      const result = replaceIn([value], operation, at, this.#budget, already + matched)
      attributes[name] = result.pieces.join('')
      matched += result.matched
    }
    return matched
  }

  #find(target: Target, at: string): Place {
    const root = { node: this.#root, parent: null, index: 0 }
    if ('path' in target) return this.#follow(target.path, root, at)
    const all = this.#placesFrom(root, at)
    if ('nodeId' in target) {
      const { attributesOf, hasId } = this.#dialect
      const found = all.filter(({ node }) => {
        const attributes = attributesOf(node)
        return hasId(node) && isRecord(attributes) && attributes['id'] === target.nodeId
      })
      if (found.length === 1 && found[0]) return found[0]
      refuse(
        at,
        found.length === 0
          ? `finds no node with the id ${JSON.stringify(target.nodeId.slice(0, 80))}; get_campaign shows the document.`
          : `finds ${found.length} nodes with that id; name the one that is meant by its path.`,
      )
    }
    const found = all.filter(({ node }) => node['type'] === target.type)
    if (found.length === 0) {
      const others = all.filter(({ node, parent }) => parent !== null && node['type'] !== 'text')
      const types = [...new Set(others.map(({ node }) => String(node['type'])))]
      refuse(at, `finds no ${target.type}; ${didYouMean(target.type, types.slice(0, MOST_TYPES))}`)
    }
    return (
      found[target.index] ??
      refuse(at, `finds no ${shown(target)}; the document has ${found.length} of that type, from index 0.`)
    )
  }

  #follow(path: readonly number[], root: Place, at: string): Place {
    return path.reduce<Place>((place, index, depth) => {
      const node = this.#listOf(place.node)[index]
      if (isRecord(node)) return { node, parent: place.node, index }
      const count = this.#listOf(place.node).length
      return refuse(
        at,
        `leads nowhere: there are ${count} nodes at ${shown({ path: path.slice(0, depth) })}, from index 0.`,
      )
    }, root)
  }

  #findInside(target: Target, at: string): { siblings: unknown[]; index: number } {
    const { parent, index } = this.#find(target, at)
    if (parent === null) refuse(at, 'is the document itself; name a node inside, or send the whole content.')
    return { siblings: this.#listOf(parent), index }
  }

  #placesFrom(start: Place, at: string): Place[] {
    const places = placesFrom(this.#dialect, start, DOCUMENT_LIMITS.nodes)
    if (places.length <= DOCUMENT_LIMITS.nodes) return places
    return refuse(at, `cannot be applied: the document would have more than ${DOCUMENT_LIMITS.nodes} nodes.`)
  }

  #listOf(node: DocumentNode | null): unknown[] {
    return childrenOf(this.#dialect, node)
  }

  #childrenOf(node: DocumentNode, at: string): unknown[] {
    if (this.#dialect.isText(node)) refuse(at, 'is a text, which holds no other nodes.')
    const children = this.#listOf(node)
    node[this.#dialect.children] = children
    return children
  }
}

function runFrom(siblings: readonly unknown[], belongs: (node: DocumentNode) => boolean): DocumentNode[] {
  const end = siblings.findIndex((node) => !isRecord(node) || !belongs(node))
  // Everything before `end` is a record, or it would be the end.
  return siblings.slice(0, end === -1 ? siblings.length : end) as DocumentNode[]
}

/** Replaces text within the number of characters a call may add, so that short texts cannot grow without limit. */
function replaceIn(
  pieces: readonly string[],
  { find, replace, occurrence }: Replacement,
  at: string,
  budget: { left: number },
  already = 0,
): { pieces: string[]; matched: number } {
  const affordable = Math.floor(budget.left / Math.max(1, replace.length))
  const wanted = occurrence === 'first' ? Math.max(0, 1 - already) : Number.POSITIVE_INFINITY
  const result = rewrite(pieces, find, replace, Math.min(wanted, affordable + 1))
  if (result.matched > affordable) {
    throw new Failure(
      'TOO_LARGE',
      `${at} would add more than ${DOCUMENT_LIMITS.bytes} characters; replace less text, or with a shorter one.`,
    )
  }
  budget.left -= result.matched * replace.length
  return result
}

function counted(matched: number, { find }: Replacement, at: string): number {
  if (matched > 0) return matched
  const what = JSON.stringify(find.slice(0, 80))
  return refuse(at, `matches nothing: ${what} is not there. No operation was applied.`)
}

function shown(target: Target): string {
  if ('path' in target) return target.path.length === 0 ? 'the top' : `[${target.path.join(', ')}]`
  return 'nodeId' in target ? target.nodeId : `${target.type} with index ${target.index}`
}
