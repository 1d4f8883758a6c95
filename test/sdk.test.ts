import { readFileSync } from 'node:fs'

import test from 'ava'

import { ROUTES } from '../api/routes.ts'
import { toType } from '../scripts/sdk/to-type.ts'
import { sdkTypes } from '../scripts/sdk/types.ts'
import { Postloom } from '../sdk/src/index.ts'
import { LISTED_TOOLS } from '../src/catalogue/registry.ts'

/** Paths that do not answer with JSON and therefore are not in `Routes`. */
const OTHER_ADDRESSES = ['GET /imports/first/rejected']

/** Returns a client that only records the requests it would make. */
function recorder(): { client: Postloom; asked: string[] } {
  const asked: string[] = []
  const client = new Postloom('pl_key', {
    baseUrl: 'http://service.example/',
    fetch: (input, init) => {
      const { method, url } = new Request(input, init)
      asked.push(`${method} ${new URL(url).pathname.replace('/api/v2', '')}`)
      return Promise.resolve(Response.json({}))
    },
  })
  return { client, asked }
}

type Method = (...values: unknown[]) => Promise<unknown>

/** Returns every method of a resource and of its nested resources, except `each`, which uses `list`. */
function methodsOf(resource: object): Method[] {
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(resource))
    .filter((name) => name !== 'constructor' && name !== 'each')
    .map((name) => Reflect.get(resource, name).bind(resource))
  const inner = Object.values(resource).filter((value) => typeof value === 'object')
  return [...own, ...inner.flatMap(methodsOf)]
}

test('every address of REST has its method, and every method its address', async (t) => {
  const { client, asked } = recorder()
  const { tools: _tools, catalogue: _catalogue, ...resources } = client
  for (const method of Object.values(resources).flatMap(methodsOf)) await method('first', 'second')
  const values = ['first', 'second']
  const rows = ROUTES.map(({ method, path }) => {
    const left = [...values]
    return `${method.toUpperCase()} ${path.replaceAll(/:\w+/g, () => left.shift() ?? '')}`
  })
  t.deepEqual(asked.toSorted(), [...rows, ...OTHER_ADDRESSES].toSorted())
})

test('every tool has a method of its name, also one that is newer than the client', async (t) => {
  const { client, asked } = recorder()
  for (const { name } of [...LISTED_TOOLS, { name: 'tool_of_tomorrow' }]) {
    const method: Method = Reflect.get(client.tools, name)
    await method({})
    t.is(asked.at(-1), `POST /tools/${name}`)
  }
  t.deepEqual(
    Object.keys(client.tools),
    LISTED_TOOLS.map(({ name }) => name),
  )
  const calls = asked.length
  t.is(await Promise.resolve(client.tools), client.tools)
  JSON.stringify(client)
  t.is(asked.length, calls, 'no question of the runtime is a call of a tool')
})

test('a type has every character of a literal or of a name', (t) => {
  const value = 'a\\'
  const schema = { type: 'object', properties: { "it's": { const: value } }, required: ["it's"] }
  t.is(toType(schema, () => undefined).trim(), '{\n"it\'s": "a\\\\"\n}')
})

test('the types are those of the catalogue: npm run sdk-types', async (t) => {
  const committed = readFileSync(new URL('../sdk/src/catalogue.ts', import.meta.url), 'utf8')
  t.true((await sdkTypes()) === committed, 'the catalogue has changed: npm run sdk-types')
})
