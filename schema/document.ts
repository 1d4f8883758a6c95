/**
 * Bounds of a rich-text document (decisions, sections 1 and 4): bytes of the request that carries it, nodes inside one
 * another (the document is the first), nodes in all, and how deep that makes its JSON: two levels a node, then marks.
 */
export const DOCUMENT_LIMITS = { bytes: 5_000_000, depth: 32, nodes: 5_000, jsonDepth: 70 } as const
