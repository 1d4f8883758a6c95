import { globSync, readFileSync } from 'node:fs'

import anyTest, { type TestFn } from 'ava'

import { FIELDS, OPERATORS } from '../schema/audience.ts'
import { findTool } from '../src/catalogue/registry.ts'
import { SKILL_TYPES } from '../src/skills/skills.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { startWebServer, type WebServer } from './helpers/web-server.ts'

const test = anyTest as TestFn<{ api: TestApi; web: WebServer; own: TestOrganization }>

const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

test.before(async (t) => {
  const web = await startWebServer({ '/spring.png': { body: GIF } })
  const api = await startApi(web.allow)
  const own = await api.organization()
  // The custom fields and tags that the examples use without creating them.
  await own.data('add_subscriber', {
    email: 'ada@example.com',
    tags: ['customer', 'staff', 'newsletter'],
    fields: { plan: 'pro', birthday: '1990-12-10' },
  })
  t.context = { api, web, own }
})
test.after.always((t) => t.context.api?.close())
test.after.always((t) => t.context.web?.close())

/** Completes examples with values that their readers must fill in: ids of new records and a reachable URL. */
const FILLED: Record<string, (own: TestOrganization, input: object, web: WebServer) => Promise<object>> = {
  async configure_workflow_draft(own, input) {
    const { workflow } = await own.data('create_workflow', { name: 'From the skill' })
    return { ...input, workflowId: workflow.id, expectedUpdatedAt: workflow.updatedAt }
  },
  async edit_campaign(own, input) {
    const { campaigns } = await own.data('list_campaigns', { query: 'Open house' })
    return { ...input, id: campaigns[0].id }
  },
  // oxlint-disable-next-line typescript/require-await -- every filler is asynchronous
  upload_image: async (_own, input, web) => ({ ...input, url: `${web.url}/spring.png` }),
  async describe_image(own, input, web) {
    const { image } = await own.data('upload_image', { url: `${web.url}/spring.png` })
    return { ...input, imageId: image.id }
  },
}

for (const type of SKILL_TYPES.filter((name) => name !== 'docs')) {
  test(`the ${type} skill is served as written, and its examples run on the real tools`, async (t) => {
    const { own, web } = t.context
    const { skill } = await own.data('get_skill', { type })
    t.is(skill.markdown, readFileSync(new URL(`../src/skills/${type}.md`, import.meta.url), 'utf8'))
    t.deepEqual(skill.pages, [])
    const examples = [...String(skill.markdown).matchAll(/^```json (\w+)\n([^]+?)\n```$/gm)]
    t.true(examples.length > 0)
    t.is(examples.length, [...String(skill.markdown).matchAll(/^```json/gm)].length, 'each names its tool')
    for (const [, tool = '', json = ''] of examples) {
      const input: object = JSON.parse(json)
      const answer = await own.call(tool, (await FILLED[tool]?.(own, input, web)) ?? input)
      t.is(answer.status, 200, `${tool}: ${JSON.stringify(answer.body)}`)
    }
  })

  test(`what the ${type} skill says of tools is so`, (t) => {
    const markdown = readFileSync(new URL(`../src/skills/${type}.md`, import.meta.url), 'utf8')
    const calls = [...markdown.matchAll(/`([a-z]+(?:_[a-z]+)+) \{([^`]*)\}`/g)]
    t.true(calls.length > 0)
    for (const [text, name = '', members = ''] of calls) {
      const { properties } = findTool(name).input
      const named = members
        .replaceAll(/: *(\{[^}]*\}|\[[^\]]*\]|[^,]*)/g, '')
        .split(/[,|]/)
        .map((member) => member.trim().replace(/\?$/, ''))
      for (const member of named.filter((word) => word !== ''))
        t.true(member in properties, `${text}: ${member}`)
    }
  })
}

test('the examples of the workflow skill can be published as they stand', async (t) => {
  const { own } = t.context
  const { skill } = await own.data('get_skill', { type: 'workflow' })
  const examples = [...String(skill.markdown).matchAll(/```json configure_workflow_draft\n([^]+?)\n```/g)]
  t.true(examples.length > 1)
  for (const [, example = ''] of examples) {
    const { workflow } = await own.data('create_workflow', { name: 'To publish' })
    const graph = JSON.parse(example)
    const configured = await own.data('configure_workflow_draft', {
      ...graph,
      workflowId: workflow.id,
      expectedUpdatedAt: workflow.updatedAt,
    })
    t.is(configured.workflow.draft.steps.length, graph.steps.length)
    const answer = await own.confirmed('publish_workflow', { workflowId: workflow.id, activate: false })
    t.is(answer.status, 200, JSON.stringify(answer.body))
  }
})

test('the filters skill names every field and every operator, and no other', (t) => {
  const markdown = readFileSync(new URL('../src/skills/filters.md', import.meta.url), 'utf8')
  const table = markdown.split('\n').filter((line) => line.startsWith('| '))
  const words = new Set(table.join(' ').split(/[^\w.]+/))
  for (const field of Object.keys(FIELDS).filter((name) => !name.startsWith('customFields'))) {
    t.true(words.has(field), field)
  }
  for (const operator of new Set<string>(Object.values(OPERATORS).flat()))
    t.true(words.has(operator), operator)
  const known = new Set<string>(Object.values(OPERATORS).flat())
  t.deepEqual(
    [...words].filter((word) => word.includes('_') && !known.has(word)),
    [],
  )
})

test('get_skill lists the pages of docs, gives each, and refuses what there is not', async (t) => {
  const { own } = t.context
  const { skill } = await own.data('get_skill', { type: 'docs' })
  // README.md is the index, which `get_skill` returns without a page.
  const written = globSync('*.md', { cwd: new URL('../docs/', import.meta.url).pathname }).filter(
    (file) => file !== 'README.md',
  )
  t.deepEqual(
    skill.pages.map(({ slug }: { slug: string }) => `${slug}.md`).toSorted(),
    written.toSorted(),
    'every page of docs/ is listed',
  )
  for (const { slug } of skill.pages) {
    const page = (await own.data('get_skill', { type: 'docs', page: slug })).skill
    t.true(page.markdown.length > 500, slug)
    t.is(page.page, slug)
  }
  const unknown = await own.call('get_skill', { type: 'docs', page: 'nothing' })
  t.is(unknown.status, 404)
  t.true(unknown.body.error.includes('automations'))
  t.is((await own.call('get_skill', { type: 'poetry' })).status, 400)
  t.is((await own.call('get_skill', { type: 'workflow', page: 'x' })).status, 400)
})
