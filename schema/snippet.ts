import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The formats of snippets. PLATE documents cannot contain snippets. */
export const SNIPPET_CONTENT_TYPES = ['MAILY', 'MARKDOWN'] as const
export type SnippetContentType = (typeof SNIPPET_CONTENT_TYPES)[number]

/**
 * Limits of snippets. `nesting` is the depth of snippets within snippets, `uses` the number of snippets that one
 * snippet may contain.
 */
export const SNIPPET_LIMITS = { name: 100, nesting: 5, uses: 50, perOrganization: 1_000 } as const

/** A snippet without its content, for lists. */
export const SnippetSummary = closed({
  id: Type.String(),
  name: Type.String(),
  contentType: oneOf(SNIPPET_CONTENT_TYPES),
  archivedAt: nullable(Type.String()),
  createdAt: Type.String(),
  updatedAt: Type.String(),
})
export type SnippetSummary = Static<typeof SnippetSummary>

/** A user of a snippet: another snippet, a campaign, or a workflow through one of its emails. */
export const SnippetUse = closed({
  kind: oneOf(['snippet', 'campaign', 'workflow']),
  id: Type.String(),
  name: Type.String(),
})
export type SnippetUse = Static<typeof SnippetUse>

/** A snippet on the wire. */
export const Snippet = closed({
  ...SnippetSummary.properties,
  content: Type.Unknown({ description: 'The content: a MAILY document, or Markdown text.' }),
  usedIn: Type.Array(SnippetUse, {
    description: 'The snippets, campaigns and workflows that use this snippet, at most 100.',
  }),
})
export type Snippet = Static<typeof Snippet>
