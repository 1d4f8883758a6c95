import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'

import test from 'ava'

import { FAILURES, type FailureCode, toolCode } from '../src/catalogue/failure.ts'
import { REQUESTS_PER_MINUTE } from '../src/catalogue/rate-limit.ts'
import { CATALOGUE } from '../src/catalogue/registry.ts'
import { JSON_DEPTH } from '../src/catalogue/tool.ts'
import { startApi, type TestApi } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi({ TEMPORAL_TASK_QUEUE: `examples-${process.pid}` })
})
test.after.always(async () => {
  await api?.close()
})

/** The pages whose commands can run as they are, and patterns that their output must match. */
const PAGES: Record<string, readonly RegExp[]> = {
  automations: [/"deadEnds": \[\]/, /"status": "ACTIVE"/],
  concepts: [/"permissions":\[/, /"total":1\b/, /"type":"TAG_ADDED"/],
  errors: [
    /"code":"INVALID_INPUT".*"path":"emial"/,
    /NOT_FOUND/,
    /TOOL_NOT_FOUND.*add_subscriber/,
    /"statusCode":422/,
  ],
  'http-api': [/"tag":\{[^]*"tags":\[\{[^]*"subscriberCount":0/],
  idempotency: [/^(\{"id":"eml_\w+"\})\n\1\n\{"name":"invalid_idempotent_request"/],
  limits: [/ratelimit-limit: 100\r?\nratelimit-remaining: \d+\r?\nratelimit-reset: \d+/],
  mcp: [/"structuredContent":\{"tags":\[/],
  'migrate-v1': [/\{"success":true,"message":"[^"]+","id":"eml_\w+"\}\n\{"id":"eml_\w+"\}/],
  pagination: [/"has_more":true[^]*"has_more":true[^]*"has_more":false/, /"nextCursor":null|"nextCursor":"/],
  start: [/"status":"DRAFT"/, /"status":"ACTIVE"/, /"run":\{/, /"message":"Email queued for delivery\."/],
}

for (const [page, patterns] of Object.entries(PAGES)) {
  test(`docs/${page}.md: the commands run as they are written`, async (t) => {
    const organization = await api.organization({ plan: 'FREE', customLimits: null })
    for (const name of ['Ada', 'Bob', 'Cy', 'Di', 'Eve']) {
      await organization.data('add_subscriber', { email: `${name}@reader.example`, name })
    }
    const blocks = [...readPage(page).matchAll(/^```sh\n([^]+?)\n```$/gm)].map(
      ([, commands = '']) => commands,
    )
    t.true(blocks.length > 0)
    // Skips `export` lines (the test sets the address and the token) and commands of other companies' clients.
    const commands = blocks.join('\n').replaceAll(/^(?:export|claude|code) .*$/gm, '')
    const { stdout } = await promisify(execFile)('bash', ['-c', `set -euo pipefail\n${commands}`], {
      env: {
        ...process.env,
        BASE: api.url,
        TOKEN: organization.token,
        POSTLOOM_BASE_URL: api.url,
        POSTLOOM_API_KEY: organization.token,
        FROM: `hello@${organization.domain}`,
      },
    })
    for (const pattern of patterns) t.regex(stdout, pattern)
  })
}

test('docs/errors.md has every refusal with the words and statuses of every door', (t) => {
  const expected = Object.entries(FAILURES).map(([code, { status, rest, smtp }]) =>
    // `Object.entries` is typed with string keys; these are the keys of the table.
    [toolCode(code as FailureCode), status, ...rest, smtp.join(' ')].map(String),
  )
  t.deepEqual(
    rowsOf('errors', 'The table').map((row) => row.slice(0, -1)),
    expected,
  )
})

test('docs/limits.md has the limits that hold', (t) => {
  const tools = [...CATALOGUE.values()]
  const size = (value: number) => value.toLocaleString('en-US')
  t.deepEqual(
    rowsOf('limits', 'Requests').map(([plan = '', most]) => [plan.toUpperCase(), most]),
    Object.entries(REQUESTS_PER_MINUTE).map(([plan, most]) => [plan, size(most)]),
  )
  t.deepEqual(
    rowsOf('limits', 'Size of a request'),
    tools
      .filter(({ bodyLimit, jsonDepth }) => bodyLimit !== 1_000_000 || jsonDepth !== JSON_DEPTH)
      .map(({ name, bodyLimit, jsonDepth }) => [name, size(bodyLimit), size(jsonDepth)]),
  )
  t.deepEqual(
    rowsOf('limits', 'Lists'),
    tools.flatMap(({ name, input }) => {
      const { default: usual, maximum } = Object(input.properties['limit'])
      return maximum === undefined ? [] : [[name, usual === undefined ? 'all' : size(usual), size(maximum)]]
    }),
  )
  t.deepEqual(
    rowsOf('limits', 'How many in one call'),
    tools.flatMap(({ name, input }) =>
      Object.entries(input.properties).flatMap(([member, schema]) => {
        const { maxItems } = Object(schema)
        return maxItems === undefined ? [] : [[name, member, size(maxItems)]]
      }),
    ),
  )
})

function readPage(page: string): string {
  return readFileSync(new URL(`../docs/${page}.md`, import.meta.url), 'utf8')
}

/** Returns the rows of the table in a section of a page, without the header. */
function rowsOf(page: string, section: string): string[][] {
  const [, rest = ''] = readPage(page).split(`\n## ${section}\n`)
  const [body = ''] = rest.split('\n## ')
  const lines = body.split('\n').filter((line) => line.startsWith('| '))
  return lines.slice(2).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}
