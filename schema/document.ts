/**
 * Limits of a rich-text document (decisions, sections 1 and 4): `bytes` of the request that carries it, `depth` of
 * nested nodes (the document itself is the first), `nodes` in total, and `jsonDepth`, which allows for two JSON levels
 * per node and for marks.
 */
export const DOCUMENT_LIMITS = { bytes: 5_000_000, depth: 32, nodes: 5_000, jsonDepth: 70 } as const
