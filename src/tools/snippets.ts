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
} from '../domain/snippets.ts'

const snippetId = Type.String({ description: 'The id of a snippet, snp_….' })
const carriesDocument = { bodyLimit: DOCUMENT_LIMITS.bytes, jsonDepth: DOCUMENT_LIMITS.jsonDepth }
const name = Type.String({ description: `What it is found by, up to ${SNIPPET_LIMITS.name} characters.` })

export const getEmailSnippets = defineTool({
  name: 'get_email_snippets',
  title: 'List email snippets',
  description: 'Lists the reusable pieces of email content by name, without their content.',
  group: 'content',
  effect: 'read',
  permission: 'content',
  input: closed({
    query: Type.Optional(Type.String({ description: 'A part of the name.' })),
    archived: defaulted(Type.Boolean({ description: 'True lists the archived ones instead.' }), false),
  }),
  output: closed({ snippets: Type.Array(SnippetSummary) }),
  handler: async (call, input) => ({ snippets: await listSnippets(call, input) }),
})

export const getEmailSnippet = defineTool({
  name: 'get_email_snippet',
  title: 'Get an email snippet',
  description: 'Reads a snippet: its content, and which snippets, campaigns and workflows use it.',
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
  description: `Makes a reusable piece of content. A MAILY document may hold other snippets by nodes {"type": "snippet", "attrs": {"snippetId": "snp_…"}}, at most ${SNIPPET_LIMITS.nesting} inside one another.`,
  group: 'content',
  effect: 'draft',
  permission: 'content',
  ...carriesDocument,
  input: closed({
    name,
    content: Type.Unknown({
      description: 'MAILY: {"type": "doc", "content": […]}. MARKDOWN: text.',
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
    'Changes the name or the content of a snippet, in the content type it has. Email that is composed from now on shows the new content.',
  group: 'content',
  effect: 'write',
  permission: 'content',
  ...carriesDocument,
  input: closed({
    snippetId,
    name: Type.Optional(name),
    content: Type.Optional(Type.Unknown({ description: 'The whole new content.' })),
  }),
  output: closed({ snippet: Snippet }),
  handler: async (call, input) => ({ snippet: await updateSnippet(call, input) }),
})

export const archiveEmailSnippet = defineTool({
  name: 'archive_email_snippet',
  title: 'Archive an email snippet',
  description:
    'Takes a snippet from the list. Where it is used it goes on showing. Asks for a confirmation code.',
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
  description: 'Brings an archived snippet back into the list.',
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({ snippetId }),
  output: closed({ snippet: Snippet }),
  handler: async (call, input) => ({ snippet: await setArchived(call, input.snippetId, false) }),
})
