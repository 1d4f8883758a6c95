import test from 'ava'

import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

type Page = { object: string; data: { id: string }[]; has_more: boolean }

async function pageOf(organization: TestOrganization, path: string): Promise<Page> {
  const { status, body } = await api.request('GET', `/api/v2${path}`, { token: organization.token })
  if (status !== 200) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`)
  return body
}

function withQuery(path: string, query: Record<string, string | number>): string {
  const text = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return `${path}${path.includes('?') ? '&' : '?'}${text.join('&')}`
}

async function post(organization: TestOrganization, path: string, body: unknown): Promise<string> {
  const answer = await api.request('POST', `/api/v2${path}`, { token: organization.token, body })
  if (answer.status >= 300) throw new Error(`${path} answered ${JSON.stringify(answer.body)}`)
  return answer.body.id
}

let made = 0

/** Every list of REST: its path, and how to add another record to it. */
const LISTS: Record<
  string,
  (organization: TestOrganization) => Promise<{ path: string; add: () => Promise<string> }>
> = {
  campaigns: async (organization) => ({
    path: '/campaigns',
    add: () => post(organization, '/campaigns', { subject: `Campaign ${(made += 1)}` }),
  }),
  tags: async (organization) => ({
    path: '/tags',
    add: () => post(organization, '/tags', { name: `tag ${(made += 1)}` }),
  }),
  subscribers: async (organization) => ({
    path: '/subscribers',
    add: () => post(organization, '/subscribers', { email: `reader${(made += 1)}@example.com` }),
  }),
  'subscribers of a tag': async (organization) => ({
    path: '/subscribers?tag=Walkers',
    add: () =>
      post(organization, '/subscribers', { email: `walker${(made += 1)}@example.com`, tags: ['walkers'] }),
  }),
  'subscribers by a part of the name or a tag': async (organization) => ({
    path: '/subscribers?query=needle',
    add: () =>
      post(organization, '/subscribers', {
        email: `${(made += 1)}@example.com`,
        ...(made % 2 ? { name: 'Needle' } : { tags: ['the needle'] }),
      }),
  }),
  'events of everybody': async (organization) => ({
    path: '/events?eventType=TOLD',
    async add() {
      const email = `told${(made += 1)}@example.com`
      await post(organization, '/subscribers', { email })
      return await post(organization, '/events', { email, eventType: 'TOLD' })
    },
  }),
  events: async (organization) => {
    const email = 'told@example.com'
    await post(organization, '/subscribers', { email })
    return {
      path: `/subscribers/${email}/events?eventType=TOLD`,
      add: () => post(organization, '/events', { email, eventType: 'TOLD' }),
    }
  },
  domains: async (organization) => ({
    path: '/domains',
    add: () => post(organization, '/domains', { domain: `d${(made += 1)}.example` }),
  }),
  emails: async (organization) => ({
    path: '/emails',
    add: () =>
      post(organization, '/emails', {
        from: `hello@${organization.domain}`,
        to: `to${(made += 1)}@example.com`,
        subject: 'Hi',
        markdown: 'Hi',
      }),
  }),
  tokens: async (organization) => ({
    path: '/tokens',
    add: () => post(organization, '/tokens', { name: `token ${(made += 1)}`, permissions: ['emails'] }),
  }),
  imports: async (organization) => ({
    path: '/imports',
    async add() {
      const { body } = await api.request('POST', '/api/v2/imports', {
        token: organization.token,
        raw: `email\n${(made += 1)}@import.example\n`,
        headers: { 'content-type': 'text/csv' },
      })
      return body.id
    },
  }),
}

for (const [name, open] of Object.entries(LISTS)) {
  test(`${name}: a walk meets everything once in both directions, whatever comes meanwhile`, async (t) => {
    const organization = await api.organization()
    const other = await api.organization()
    await (await open(other)).add()
    const { path, add } = await open(organization)
    const before = (await pageOf(organization, withQuery(path, { limit: 100 }))).data.map(({ id }) => id)
    const ids: string[] = []
    for (let count = 0; count < 7; count++) ids.unshift(await add())

    const met: string[] = []
    let page = await pageOf(organization, withQuery(path, { limit: 3 }))
    t.is(page.object, 'list')
    for (;;) {
      met.push(...page.data.map(({ id }) => id))
      const last = page.data.at(-1)
      if (!page.has_more || !last) break
      // A record that is added during a walk is not returned, and none is returned twice.
      await add()
      page = await pageOf(organization, withQuery(path, { limit: 3, after: last.id }))
    }
    t.deepEqual(met, [...ids, ...before])

    const back: string[] = []
    let [first] = met.slice(-1)
    for (;;) {
      t.truthy(first)
      page = await pageOf(organization, withQuery(path, { limit: 3, before: first ?? '' }))
      back.unshift(...page.data.map(({ id }) => id))
      if (!page.has_more) break
      first = page.data[0]?.id
    }
    const all = (await pageOf(organization, withQuery(path, { limit: 100 }))).data.map(({ id }) => id)
    t.deepEqual([...back, ...met.slice(-1)], all)
    t.is(new Set(all).size, all.length)
  })
}

test('a position is valid after its record is gone, and nothing is missed or met twice', async (t) => {
  const organization = await api.organization()
  const ids: string[] = []
  for (let count = 0; count < 6; count++) {
    ids.unshift(await post(organization, '/campaigns', { subject: `${count}` }))
  }
  const [, , third = '', fourth = ''] = ids
  for (const id of [third, fourth]) {
    await api.request('DELETE', `/api/v2/campaigns/${id}`, { token: organization.token })
  }
  const after = await pageOf(organization, `/campaigns?after=${third}`)
  t.deepEqual(
    after.data.map(({ id }) => id),
    ids.slice(4),
  )
  const back = await pageOf(organization, `/campaigns?before=${fourth}&limit=1`)
  t.deepEqual(
    back.data.map(({ id }) => id),
    [ids[1]],
  )
  t.true(back.has_more)
})

test('what is no page is refused by the name of its parameter', async (t) => {
  const organization = await api.organization()
  const id = await post(organization, '/tags', { name: 'one' })
  for (const [query, path] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['after=x', 'after'],
    ['after=', 'after'],
    ['before=cmp_01h00000000000000000000000', 'before'],
    [`after=${id}&before=${id}`, 'before'],
    ['page=2', 'page'],
    ['cursor=x', 'cursor'],
  ] as const) {
    const answer = await api.request('GET', `/api/v2/tags?${query}`, { token: organization.token })
    t.is(answer.status, 422, query)
    t.is(answer.body.name, 'invalid_parameter', query)
    t.is(answer.body.details[0].path, path, JSON.stringify(answer.body))
  }
})

test('lists without a limit have 20 records, of subscribers 50', async (t) => {
  const organization = await api.organization()
  const people = Array.from({ length: 51 }, (_, index) => ({ email: `${index}@example.com` }))
  await organization.data('import_subscribers', { subscribers: people })
  await organization.data('get_or_create_tags', { names: people.map(({ email }) => email).slice(0, 21) })
  const subscribers = await pageOf(organization, '/subscribers')
  t.deepEqual([subscribers.data.length, subscribers.has_more], [50, true])
  const tags = await pageOf(organization, '/tags')
  t.deepEqual([tags.data.length, tags.has_more], [20, true])
})
