import test from 'ava'
import { sql } from 'kysely'

import { execute, json, row } from '../src/database.ts'
import { decodeId, encodeId, newId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

const text = (words: string) => ({ type: 'paragraph', content: [{ type: 'text', text: words }] })
const holding = (...ids: string[]) => ({
  type: 'doc',
  content: [text('before'), ...ids.map((snippetId) => ({ type: 'snippet', attrs: { snippetId } }))],
})

async function make(organization: TestOrganization, name: string, ...held: string[]): Promise<string> {
  const { snippet } = await organization.data('create_email_snippet', { name, content: holding(...held) })
  return snippet.id
}

test('a snippet is made, read, renamed, rewritten, found, archived and brought back', async (t) => {
  const organization = await api.organization()
  const { snippet } = await organization.data('create_email_snippet', {
    name: ' Footer ',
    content: holding(),
  })
  t.regex(snippet.id, /^snp_/)
  t.like(snippet, { name: 'Footer', contentType: 'MAILY', archivedAt: null, content: holding() })
  t.deepEqual(snippet.usedIn, [])
  const markdown = await organization.data('create_email_snippet', {
    name: '100 % Müller_Bürgel',
    content: 'Best,\n**Ada**',
    contentType: 'MARKDOWN',
  })

  const listed = async (input: object) =>
    (await organization.data('get_email_snippets', input)).snippets.map(({ name }: { name: string }) => name)
  t.deepEqual(await listed({}), ['100 % Müller_Bürgel', 'Footer'])
  t.deepEqual(await listed({ query: 'FOOT' }), ['Footer'])
  t.deepEqual(await listed({ query: 'r_b' }), ['100 % Müller_Bürgel'])
  t.deepEqual(await listed({ query: '%o' }), [])

  await organization.data('update_email_snippet', { snippetId: snippet.id, name: 'Legal footer' })
  const content = { ...holding(), attrs: { version: 2 } }
  const { snippet: after } = await organization.data('update_email_snippet', {
    snippetId: snippet.id,
    content,
  })
  t.like(after, { name: 'Legal footer', content })
  t.true(after.updatedAt > snippet.updatedAt)

  const asked = await organization.call('archive_email_snippet', { snippetId: snippet.id })
  t.is(asked.status, 428)
  t.like(asked.body.summary, { target: 'the snippet "Legal footer"', warnings: [] })
  const archived = await organization.confirmed('archive_email_snippet', { snippetId: snippet.id })
  t.truthy(archived.body.data.snippet.archivedAt)
  t.deepEqual(await listed({}), ['100 % Müller_Bürgel'])
  t.deepEqual(await listed({ archived: true }), ['Legal footer'])
  const again = await organization.confirmed('archive_email_snippet', { snippetId: snippet.id })
  t.is(again.body.data.snippet.archivedAt, archived.body.data.snippet.archivedAt)
  await organization.data('unarchive_email_snippet', { snippetId: snippet.id })
  t.deepEqual(await listed({}), ['100 % Müller_Bürgel', 'Legal footer'])
  t.is(
    (
      await organization.call('update_email_snippet', {
        snippetId: markdown.snippet.id,
        content: holding(),
      })
    ).body.details[0].path,
    'content',
  )
})

test('a document that is none is refused with the path of each fault', async (t) => {
  const organization = await api.organization()
  let nested: unknown = text('deep')
  for (let depth = 0; depth < 29; depth++) nested = { type: 'section', content: [nested] }
  const create = (content: unknown) => organization.call('create_email_snippet', { name: 'x', content })
  t.is((await create({ type: 'doc', content: [nested] })).status, 200, 'a document of 32 levels is taken')

  for (const [path, content] of [
    ['content', 'text'],
    ['content', [text('x')]],
    ['content', { type: 'paragraph', content: [] }],
    ['content', { type: 'doc' }],
    ['content.content[1]', { type: 'doc', content: [text('x'), 'text'] }],
    ['content.content[0]', { type: 'doc', content: [{ text: 'x' }] }],
    ['content.content[0].marks', { type: 'doc', content: [{ type: 'text', text: 'x', marks: ['bold'] }] }],
    ['content.content[0].attrs', { type: 'doc', content: [{ type: 'spacer', attrs: [8] }] }],
    ['content.content[0].text', { type: 'doc', content: [{ type: 'text', text: 7 }] }],
    ['content', { type: 'doc', content: Array.from({ length: 5_001 }, () => ({ type: 'spacer' })) }],
    ['content', { type: 'doc', content: Array.from({ length: 900_000 }, () => 1) }],
  ] as const) {
    const answer = await create(content)
    t.is(answer.status, 400, path)
    t.is(answer.body.details[0].path, path)
  }
  const deep = await create({ type: 'doc', content: [{ type: 'section', content: [nested] }] })
  t.regex(deep.body.error, /nested deeper than 32 nodes/)
  const two = await create({ type: 'doc', content: [{}, { type: 'text', text: 'x' }, { marks: 1 }] })
  t.deepEqual(
    two.body.details.map(({ path }: { path: string }) => path),
    ['content.content[0]', 'content.content[2]'],
  )
  t.is((await create(undefined)).status, 400)
  t.is((await organization.call('create_email_snippet', { name: ' ', content: holding() })).status, 400)
  const plate = { name: 'x', content: [], contentType: 'PLATE' }
  t.is((await organization.call('create_email_snippet', plate)).status, 400)
  const markdown = { name: 'x', content: holding(), contentType: 'MARKDOWN' }
  t.is((await organization.call('create_email_snippet', markdown)).status, 400)
})

test('a document may be larger than other requests, up to five megabytes', async (t) => {
  const organization = await api.organization()
  const large = { type: 'doc', content: [text('x'.repeat(2_000_000))] }
  const { snippet } = await organization.data('create_email_snippet', { name: 'Large', content: large })
  t.is((await organization.data('get_email_snippet', { snippetId: snippet.id })).snippet.content.type, 'doc')
  const tooLarge = { type: 'doc', content: [text('x'.repeat(5_000_000))] }
  t.is((await organization.call('create_email_snippet', { name: 'x', content: tooLarge })).status, 413)
})

test('snippets stand inside one another up to five, and never in themselves', async (t) => {
  const organization = await api.organization()
  const fifth = await make(organization, 'fifth')
  const fourth = await make(organization, 'fourth', fifth)
  const third = await make(organization, 'third', fourth, fourth)
  const second = await make(organization, 'second', third)
  const first = await make(organization, 'first', second, fifth)

  const put = (snippetId: string, ...held: string[]) =>
    organization.call('update_email_snippet', { snippetId, content: holding(...held) })
  const sixth = await organization.call('create_email_snippet', { name: 'x', content: holding(first) })
  t.regex(sixth.body.error, /content\.content\[1\]\.attrs\.snippetId would nest more than 5/)
  const below = await make(organization, 'below')
  t.regex((await put(fifth, below)).body.error, /would nest more than 5/)
  t.regex((await put(fifth, fifth)).body.error, /cannot hold itself/)
  t.regex((await put(fifth, first)).body.error, /cannot hold itself/)
  t.regex((await put(fourth, fifth, second)).body.error, /content\.content\[2\].*cannot hold itself/)
  t.is((await put(first, below)).status, 200)
  t.is((await put(second, first)).status, 200, 'a circle that was opened may be closed elsewhere')
})

test('what two saves at once cannot do one after the other, they cannot do together', async (t) => {
  const organization = await api.organization()
  for (let round = 0; round < 10; round++) {
    const [one, other] = [await make(organization, 'one'), await make(organization, 'other')]
    const answers = await Promise.all([
      organization.call('update_email_snippet', { snippetId: one, content: holding(other) }),
      organization.call('update_email_snippet', { snippetId: other, content: holding(one) }),
    ])
    t.deepEqual(
      answers.map(({ status }) => status).toSorted((one, other) => one - other),
      [200, 400],
    )
  }
})

test('only snippets of the organization can be held, and a foreign one answers as a missing one', async (t) => {
  const [organization, other] = [await api.organization(), await api.organization()]
  const foreign = await make(other, 'foreign')
  const missing = encodeId('snp', newId())
  for (const id of [foreign, missing, 'snp_x', 7, undefined, null]) {
    const content = { type: 'doc', content: [{ type: 'snippet', attrs: { snippetId: id } }] }
    const answer = await organization.call('create_email_snippet', { name: 'x', content })
    t.is(answer.status, 400)
    t.is(answer.body.details[0].path, 'content.content[0].attrs.snippetId')
    t.true(answer.body.error.replace(String(id), '…').includes('there is no snippet'))
  }
  const bare = { type: 'doc', content: [{ type: 'snippet' }] }
  t.is((await organization.call('create_email_snippet', { name: 'x', content: bare })).status, 400)
  const many = holding(...Array.from({ length: 51 }, () => encodeId('snp', newId())))
  const answer = await organization.call('create_email_snippet', { name: 'x', content: many })
  t.regex(answer.body.error, /more than 50 different snippets/)
  for (const tool of ['get_email_snippet', 'update_email_snippet', 'unarchive_email_snippet']) {
    t.is((await organization.call(tool, { snippetId: foreign })).body.code, 'NOT_FOUND')
  }
  t.is((await organization.call('archive_email_snippet', { snippetId: foreign })).body.code, 'NOT_FOUND')
  t.deepEqual((await organization.data('get_email_snippets')).snippets, [])
})

test('where a snippet is used is told before it is archived', async (t) => {
  const organization = await api.organization()
  const snippetId = await make(organization, 'Signature')
  const holder = await make(organization, 'Footer', snippetId)
  const workflow = (await organization.data('create_workflow', { name: 'Welcome' })).workflow
  const campaignId = newId()
  const em = api.services.orm.em.fork()
  for (const [id, kind, name, automationId] of [
    [campaignId, 'BROADCAST', 'Spring', null],
    [newId(), 'WORKFLOW', 'Step', decodeId('wf', workflow.id)],
  ]) {
    await execute(
      em,
      sql`insert into campaign (id, organization_id, kind, name, automation_id, content, content_type)
        values (${id}, ${organization.id}, ${kind}, ${name}, ${automationId}, ${json(holding(snippetId))}, 'MAILY')`,
    )
  }
  const uses = [
    { kind: 'campaign', id: encodeId('cmp', campaignId), name: 'Spring' },
    { kind: 'snippet', id: holder, name: 'Footer' },
    { kind: 'workflow', id: workflow.id, name: 'Welcome' },
  ]
  t.deepEqual((await organization.data('get_email_snippet', { snippetId })).snippet.usedIn, uses)
  const asked = await organization.call('archive_email_snippet', { snippetId })
  t.is(asked.body.summary.warnings.length, 3)
  await organization.data('update_email_snippet', { snippetId: holder, content: holding() })
  t.deepEqual((await organization.data('get_email_snippet', { snippetId })).snippet.usedIn, [
    uses[0],
    uses[2],
  ])
})

test('a refused save leaves the snippet and its uses as they were', async (t) => {
  const organization = await api.organization()
  const inner = await make(organization, 'inner')
  const outer = await make(organization, 'outer', inner)
  const gone = encodeId('snp', newId())
  await organization.call('update_email_snippet', { snippetId: outer, name: 'new', content: holding(gone) })
  const { snippet } = await organization.data('get_email_snippet', { snippetId: outer })
  t.like(snippet, { name: 'outer', content: holding(inner) })
  const kept = await row<{ count: number }>(
    api.services.orm.em.fork(),
    sql`select count(*)::int as count from snippet_use where organization_id = ${organization.id}`,
  )
  t.is(kept?.count, 1)
})
