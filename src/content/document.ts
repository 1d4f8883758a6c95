import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { isRecord } from '../../schema/json.ts'

/** A fault in a document and its path. */
export type DocumentFault = { path: string; message: string }

/** A reference to a snippet in a document and its path. */
export type SnippetMention = { path: string; snippetId: unknown }

/** A node that an inspection has yet to read, and its place. */
type Visit = { node: unknown; path: string; depth: number }

/** The number of faults after which an inspection ends. */
export const FAULTS_SHOWN = 20
const MEMBERS: Record<string, (value: unknown) => boolean> = {
  attrs: isRecord,
  text: (value) => typeof value === 'string',
  marks: (value) => Array.isArray(value) && value.every((mark) => isRecord(mark) && isName(mark['type'])),
  content: (value) => Array.isArray(value),
}
const SHAPES: Record<string, string> = {
  attrs: 'must be an object',
  text: 'must be text',
  marks: 'must be a list of objects with a type',
  content: 'must be a list of nodes',
}

/**
 * Checks the shape of a MAILY document (TipTap JSON) and finds the snippets it refers to, without recursion. Node types
 * and attributes are not checked: the renderer skips those it does not know (decisions, section 4).
 */
export function inspectDocument(document: unknown): { faults: DocumentFault[]; snippets: SnippetMention[] } {
  const snippets: SnippetMention[] = []
  if (!isRecord(document) || document['type'] !== 'doc' || !Array.isArray(document['content'])) {
    const message = 'must be a document {"type": "doc", "content": […]}'
    return { faults: [{ path: '', message }], snippets }
  }
  const faults: DocumentFault[] = []
  const waiting: Visit[] = [{ node: document, path: '', depth: 1 }]
  for (let count = 1; waiting.length > 0 && faults.length < FAULTS_SHOWN; count++) {
    // The loop condition guarantees that `pop` returns a visit.
    const { node, path, depth } = waiting.pop() as Visit
    if (depth > DOCUMENT_LIMITS.depth) {
      return { faults: [{ path, message: `is nested deeper than ${DOCUMENT_LIMITS.depth} nodes` }], snippets }
    }
    if (!isRecord(node) || !isName(node['type'])) {
      faults.push({ path, message: 'must be a node: an object with a type' })
      continue
    }
    faults.push(...memberFaults(node, path))
    if (node['type'] === 'snippet') snippets.push(mentionOf(node, path))
    const children = visitsOf(node['content'], `${path}.content`, depth + 1)
    if (count + waiting.length + children.length > DOCUMENT_LIMITS.nodes) {
      return { faults: [{ path: '', message: `has more than ${DOCUMENT_LIMITS.nodes} nodes` }], snippets }
    }
    waiting.push(...children)
  }
  return { faults, snippets }
}

function memberFaults(node: Record<string, unknown>, path: string): DocumentFault[] {
  return Object.entries(MEMBERS)
    .filter(([member, isValid]) => node[member] !== undefined && !isValid(node[member]))
    .map(([member]) => ({ path: `${path}.${member}`, message: SHAPES[member] ?? 'is not valid' }))
}

function mentionOf({ attrs }: Record<string, unknown>, path: string): SnippetMention {
  return { path: `${path}.attrs.snippetId`, snippetId: isRecord(attrs) ? attrs['snippetId'] : undefined }
}

/**
 * Returns visits of the nodes in a list; none for a value that is not one. They are in reverse order: the loop pops the
 * last one first, and faults should come in reading order. The slice keeps at least one node beyond the limit, which is
 * enough to detect it.
 */
export function visitsOf(nodes: unknown, path: string, depth: number): Visit[] {
  if (!Array.isArray(nodes)) return []
  return nodes
    .slice(0, DOCUMENT_LIMITS.nodes)
    .map((node: unknown, index) => ({ node, path: `${path}[${index}]`, depth }))
    .toReversed()
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
