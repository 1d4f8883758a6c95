import test from 'ava'

import { LISTED_TOOLS } from '../src/catalogue/registry.ts'
import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { makeWorld } from './helpers/world.ts'

/**
 * S10: requests within the size limit that could be very expensive to process. Each must be refused with an answer no
 * larger than the request, and memory must stay low. A request that keeps the API busy for minutes fails by the timeout
 * of the test.
 */
let api: TestApi
let organization: TestOrganization

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `bombs-${process.pid}` })
  organization = await api.organization()
})
test.after.always(async () => {
  await api?.close()
})

const many = <Item>(length: number, item: Item): Item[] => Array.from({ length }, () => item)
const keys = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]))
const LONG_KEY = 'k'.repeat(400_000)
const CONTROLS = many(50_000, '\u0001')
const payment = { email: 'a@b.co', eventType: 'SUBSCRIBER_PAYMENT', amount: 1 }
const draft = { workflowId: 'wf_x', expectedUpdatedAt: 'x' }

const BOMBS: [name: string, tool: string, body: string][] = [
  ['open brackets', 'query_subscribers', '['.repeat(999_000)],
  ['nested lists', 'query_subscribers', `{"filters":${'['.repeat(490_000)}${']'.repeat(490_000)}}`],
  ['nested objects', 'create_event', `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`],
  [
    'nested filters',
    'query_subscribers',
    `{"filters":[${'{"not":'.repeat(100_000)}1${'}'.repeat(100_000)}]}`,
  ],
  ['the same key again and again', 'query_subscribers', `{${'"a":1,'.repeat(150_000)}"a":1}`],
  ['many unknown keys', 'list_tags', JSON.stringify(keys(20_000))],
  ['faults below a long key', 'query_subscribers', JSON.stringify({ [LONG_KEY]: CONTROLS })],
  [
    'long forbidden paths',
    'create_event',
    JSON.stringify({ ...payment, metadata: { [LONG_KEY]: many(9_000, { ['__proto__x'.slice(0, 9)]: 1 }) } }),
  ],
  ['a number of a megabyte', 'create_event', `{"amount":${'9'.repeat(900_000)}}`],
  ['a list of numbers for filters', 'query_subscribers', JSON.stringify({ filters: many(300_000, 1) })],
  ['a list of nothing for filters', 'count_subscribers', JSON.stringify({ filters: many(300_000, {}) })],
  [
    'a wide group of filters',
    'create_segment',
    JSON.stringify({ name: 'x', filters: [{ any: many(300_000, {}) }] }),
  ],
  [
    'long words in filters',
    'query_subscribers',
    JSON.stringify({ filters: many(30, { [LONG_KEY.slice(0, 9_000)]: 1, field: LONG_KEY.slice(0, 9_000) }) }),
  ],
  [
    'a list of steps',
    'update_workflow_draft',
    JSON.stringify({ ...draft, definition: { steps: many(300_000, 1), edges: [] } }),
  ],
  [
    'a list of edges',
    'update_workflow_draft',
    JSON.stringify({ ...draft, definition: { steps: [], edges: many(300_000, {}) } }),
  ],
  ['a list of rows', 'import_subscribers', JSON.stringify({ subscribers: many(1_000_000, 1) })],
  ['a list of ids', 'bulk_add_tags', JSON.stringify({ subscriberIds: many(200_000, 'x'), tagNames: ['x'] })],
  ['many custom fields', 'add_subscriber', JSON.stringify({ email: 'a@b.co', fields: keys(20_000) })],
  ['much metadata', 'create_event', JSON.stringify({ ...payment, metadata: keys(80_000) })],
  [
    'a list of nodes',
    'create_email_snippet',
    JSON.stringify({ name: 'x', content: { type: 'doc', content: many(1_500_000, 1) } }),
  ],
  ['a document as text', 'create_campaign', JSON.stringify({ subject: 'x', content: '['.repeat(4_000_000) })],
  [
    'faults in a document as text',
    'create_campaign',
    JSON.stringify({ subject: 'x', content: JSON.stringify({ [LONG_KEY]: CONTROLS }) }),
  ],
]

async function post(tool: string, body: string): Promise<{ status: number; length: number }> {
  const response = await fetch(`${api.url}/api/v2/tools/${tool}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${organization.token}`, 'content-type': 'application/json' },
    body,
  })
  return { status: response.status, length: (await response.text()).length }
}

for (const [name, tool, body] of BOMBS) {
  test.serial(`${name}: refused in few words, and the memory stays`, async (t) => {
    const before = process.memoryUsage().rss
    const { status, length } = await post(tool, body)
    t.true(status >= 400 && status < 500, `${status}`)
    t.true(length < 250_000, `an answer of ${length} bytes`)
    t.true(process.memoryUsage().rss - before < 500e6)
  })
}

test.serial('rows of unknown columns: each is refused in few words, and the memory stays', async (t) => {
  const before = process.memoryUsage().rss
  const { status, length } = await post(
    'import_subscribers',
    JSON.stringify({ subscribers: many(400, keys(500)) }),
  )
  t.is(status, 200)
  t.true(length < 250_000, `an answer of ${length} bytes`)
  t.true(process.memoryUsage().rss - before < 500e6)
})

test.serial('a list of steps or edges of a workflow that is there is refused by its length', async (t) => {
  const world = await makeWorld(api, organization)
  const { workflow } = await organization.data('get_workflow', { workflowId: world.wf })
  const at = { workflowId: world.wf, expectedUpdatedAt: workflow.updatedAt }
  const step = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
  const steps = await organization.call('configure_workflow_draft', {
    ...at,
    steps: many(201, step),
    edges: [],
  })
  t.regex(steps.body.details[0].message, /at most 200 steps/)
  const edges = await organization.call('configure_workflow_draft', {
    ...at,
    steps: [step],
    edges: many(1_001, { from: 'start', to: 'start' }),
  })
  t.true(JSON.stringify(edges.body.details).includes('at most 1000 edges'))
})

/** Inputs for which careless regular expressions backtrack: repeated characters followed by a mismatch. */
const TIRING = [' ', 'a', '.', '@', 'a.', '<', '"', '"\\', '{{', '-', '%', 'é', '\u200d']

for (const tool of LISTED_TOOLS) {
  const names = Object.entries(tool.input.properties).flatMap(([name, schema]) =>
    isText(schema) ? [name] : [],
  )
  if (names.length === 0) continue
  test.serial(`${tool.name}: no text keeps its parameters busy`, async (t) => {
    for (const part of TIRING) {
      const text = `${part.repeat(30_000 / part.length)}!\u00a0`
      for (const name of names) {
        const input = { ...least(tool.input.required), [name]: text }
        t.true((await post(tool.name, JSON.stringify(input))).status < 500)
      }
    }
  })
}

function isText(schema: object): boolean {
  const type: unknown = Reflect.get(schema, 'type')
  return (type === 'string' || type === undefined) && !('enum' in schema)
}

test.serial('no text keeps the frozen door busy', async (t) => {
  const email = { to: 'reader@reader.example', subject: 'Hi', content: 'Hi' }
  for (const part of TIRING) {
    const text = part.repeat(30_000 / part.length)
    for (const change of [
      { from: text },
      { from: `${text}<` },
      { from: `"${text}` },
      { from: `${text}<a@b.co>` },
      { to: text },
      { to: `a@${text}` },
      { subject: text },
      { replyTo: text },
      { content: text },
      { content: text, contentType: 'HTML' },
    ]) {
      const answer = await api.request('POST', '/api/v1/emails', {
        token: organization.token,
        body: { ...email, ...change },
      })
      t.true(answer.status < 500, JSON.stringify(answer.body).slice(0, 300))
    }
  }
})

test.serial(
  'from is taken apart as before: bare, in brackets, with a name, with a quoted name',
  async (t) => {
    const address = `hello@${organization.domain}`
    const send = async (from: string): Promise<number> =>
      (
        await api.request('POST', '/api/v1/emails', {
          token: organization.token,
          body: { to: 'reader@reader.example', subject: 'Hi', content: 'Hi', from },
        })
      ).status
    for (const from of [
      address,
      ` ${address} `,
      `<${address}>`,
      `Shop <${address}>`,
      `"Shop, \\"the\\" best" <${address}>`,
      `  Shop<${address}>`,
    ]) {
      t.is(await send(from), 200, from)
    }
    for (const from of [
      '',
      `Shop ${address}`,
      `Shop "x" <${address}>`,
      `<${address}`,
      `a<b> <${address}>`,
      `<a b@${organization.domain}>`,
      `Shop <>`,
    ]) {
      t.is(await send(from), 422, from)
    }
  },
)

/** Returns a value for each required parameter, so that the tested parameter is validated too. */
function least(required: readonly string[] | undefined): Record<string, unknown> {
  return Object.fromEntries([...new Set(required)].map((name) => [name, 'x']))
}
