import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { isRecord } from '../../schema/json.ts'
import { type DocumentFault, FAULTS_SHOWN, visitsOf } from './document.ts'

/**
 * Checks the shape of a PLATE document (Slate JSON: a list of elements, or an object with `children`), without
 * recursion and with the same limits as for a MAILY document. Types are not checked, because the renderer skips those
 * it does not know.
 */
export function inspectSlate(document: unknown): DocumentFault[] {
  const top: unknown = isRecord(document) ? document['children'] : document
  if (!Array.isArray(top)) {
    return [{ path: '', message: 'must be a list of elements, or an object {"children": […]}' }]
  }
  const faults: DocumentFault[] = []
  const waiting = visitsOf(top, isRecord(document) ? '.children' : '', 2)
  for (let count = 1; faults.length < FAULTS_SHOWN; count++) {
    if (count + waiting.length > DOCUMENT_LIMITS.nodes) {
      return [{ path: '', message: `has more than ${DOCUMENT_LIMITS.nodes} nodes` }]
    }
    const visit = waiting.pop()
    if (!visit) break
    const { node, path, depth } = visit
    if (depth > DOCUMENT_LIMITS.depth) {
      return [{ path, message: `is nested deeper than ${DOCUMENT_LIMITS.depth} nodes` }]
    }
    const children = isRecord(node) ? node['children'] : undefined
    if (Array.isArray(children)) waiting.push(...visitsOf(children, `${path}.children`, depth + 1))
    else if (!isRecord(node) || typeof node['text'] !== 'string') {
      faults.push({ path, message: 'must be an element with a list of children, or a text {"text": "…"}' })
    }
  }
  return faults
}
