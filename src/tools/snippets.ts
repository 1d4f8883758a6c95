import Type from 'typebox'

import { closed, defaulted, oneOf } from '../../schema/define.ts'
import { DOCUMENT_LIMITS } from '../../schema/document.ts'
import { Snippet, SNIPPET_CONTENT_TYPES, SNIPPET_LIMITS, SnippetSummary } from '../../schema/snippet.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  createSnippet,
  listSnippets,
  readSnippet,
  setArchived,
  summarizeArchival,
  updateSnippet,
} from '../domain/library/snippets.ts'

const snippetId = Type.String({ description: 'The id of a snippet (`snp_…`).' })
const carriesDocument = { bodyLimit: DOCUMENT_LIMITS.bytes, jsonDepth: DOCUMENT_LIMITS.jsonDepth }
const name = Type.String({ description: `The name of the snippet, up to ${SNIPPET_LIMITS.name} characters.` })

export const getEmailSnippets = defineTool({
  name: 'get_email_snippets',
  title: 'List email snippets',
  description:
    'Returns the snippets (reusable pieces of email content) in order of their names, without their content.',
  group: 'content',
  effect: 'read',
  permission: 'content',
  input: closed({
    query: Type.Optional(Type.String({ description: 'Text to find in the name.' })),
    archived: defaulted(
      Type.Boolean({ description: 'Whether to list archived snippets instead of the others.' }),
      false,
    ),
  }),
  output: closed({ snippets: Type.Array(SnippetSummary) }),
  handler: async (call, input) => ({ snippets: await listSnippets(call, input) }),
})

export const getEmailSnippet = defineTool({
  name: 'get_email_snippet',
  title: 'Get an email snippet',
  description: 'Returns a snippet with its content and the snippets, campaigns and workflows that use it.',
  group: 'content',
  effect: 'read',
  permission: 'content',
  input: closed({ snippetId }),
  output: closed({ snippet: Snippet }),
  handler: async (call, input) => ({ snippet: await readSnippet(call, input.snippetId) }),
})

export const createEmailSnippet = defineTool({
  name: 'create_email_snippet',
  title: 'Create an email snippet',
  description: `Creates a snippet, a reusable piece of email content, and returns it. A MAILY document can contain other snippets as nodes {"type": "snippet", "attrs": {"snippetId": "snp_…"}}, nested at most ${SNIPPET_LIMITS.nesting} deep.`,
  group: 'content',
  effect: 'draft',
  permission: 'content',
  ...carriesDocument,
  input: closed({
    name,
    content: Type.Unknown({
      description:
        'The content, in the form of `contentType`. MAILY: {"type": "doc", "content": […]}. MARKDOWN: text.',
    }),
    contentType: defaulted(oneOf(SNIPPET_CONTENT_TYPES), 'MAILY'),
  }),
  output: closed({ snippet: Snippet }),
  handler: async (call, input) => ({ snippet: await createSnippet(call, input) }),
})

export const updateEmailSnippet = defineTool({
  name: 'update_email_snippet',
  title: 'Update an email snippet',
  description:
    'Changes the name or the content of a snippet and returns it. The content type stays the same. Email that is composed from now on contains the new content.',
  group: 'content',
  effect: 'write',
  permission: 'content',
  ...carriesDocument,
  input: closed({
    snippetId,
    name: Type.Optional(name),
    content: Type.Optional(Type.Unknown({ description: 'The complete new content.' })),
  }),
  output: closed({ snippet: Snippet }),
  handler: async (call, input) => ({ snippet: await updateSnippet(call, input) }),
})

export const archiveEmailSnippet = defineTool({
  name: 'archive_email_snippet',
  title: 'Archive an email snippet',
  description:
    'Archives a snippet: it is no longer listed by default, but email that uses it still shows it. Requires a confirmation code.',
  group: 'content',
  effect: 'impact',
  permission: 'content',
  input: closed({ snippetId }),
  output: closed({ snippet: Snippet }),
  summarize: (call, input) => summarizeArchival(call, input.snippetId),
  handler: async (call, input) => ({ snippet: await setArchived(call, input.snippetId, true) }),
})

export const unarchiveEmailSnippet = defineTool({
  name: 'unarchive_email_snippet',
  title: 'Unarchive an email snippet',
  description: 'Restores an archived snippet to the list.',
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({ snippetId }),
  output: closed({ snippet: Snippet }),
  handler: async (call, input) => ({ snippet: await setArchived(call, input.snippetId, false) }),
})
