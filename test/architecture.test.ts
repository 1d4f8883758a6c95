import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

import test from 'ava'

type Import = { from: string; to: string; isTypeOnly: boolean }

const ROOT = join(import.meta.dirname, '..')
const ROOMS = ['schema', 'src', 'temporal', 'worker', 'api', 'smtp', 'mailbox', 'sdk/src', 'cli']
/** These rooms must also run where there is no Node. */
const WITHOUT_NODE = new Set(['schema', 'temporal', 'sdk/src'])
const COMPUTED = 'a computed name'
const EVERYTHING = 'everything'
/** Files whose exports are taken at run time: `schema/` gives its names to the types of the SDK. */
const LOADED_WHOLE = [
  'schema/',
  'src/migrations/',
  'bench/shared/bare-workflows.ts',
  'test/helpers/sdk-consumer.ts',
]
const FILES = ROOMS.flatMap((room) =>
  globSync(`${room}/**/*.ts`, { cwd: ROOT, exclude: ['**/node_modules'] }),
)

/**
 * What each room may import: project paths by prefix, packages by name. The entry with the longest matching room
 * applies.
 */
const MAY_IMPORT: Record<string, { own: string[]; packages?: string[] }> = {
  schema: { own: ['schema/'], packages: ['typebox'] },
  temporal: { own: ['temporal/'], packages: ['@temporalio/workflow', '@temporalio/common'] },
  src: { own: ['src/', 'schema/', 'temporal/contract.ts', 'temporal/graph.ts'] },
  'src/catalogue': {
    own: [
      'src/catalogue/',
      'src/tools/',
      'src/ports/',
      'src/database.ts',
      'src/ids.ts',
      'src/services.ts',
      'schema/',
    ],
    packages: ['kysely', 'typebox'],
  },
  'src/tools': {
    own: ['src/domain/', 'src/catalogue/', 'src/skills/', 'src/ids.ts', 'schema/'],
    packages: ['typebox'],
  },
  'src/domain': {
    own: [
      'src/domain/',
      'src/content/',
      'src/skills/',
      'src/catalogue/',
      'src/ports/dns.ts',
      'src/ports/page-charset.ts',
      'src/ports/page-reader.ts',
      'src/ports/web.ts',
      'src/ports/web-fault.ts',
      'src/database.ts',
      'src/ids.ts',
      'src/seal.ts',
      'src/services.ts',
      'schema/',
      'temporal/contract.ts',
      'temporal/graph.ts',
    ],
    packages: [
      'croner',
      'csv-parse',
      'csv-stringify',
      'file-type',
      'image-size',
      'kysely',
      'temporal-polyfill',
      'typebox',
    ],
  },
  'src/content': { own: ['src/content/', 'schema/'], packages: ['entities'] },
  'src/delivery': {
    own: [
      'src/delivery/',
      'src/domain/',
      'src/content/',
      'src/catalogue/',
      'src/ports/',
      'src/database.ts',
      'src/ids.ts',
      'src/log.ts',
      'src/services.ts',
      'schema/',
    ],
    packages: ['kysely'],
  },
  'src/public': {
    own: [
      'src/public/',
      'src/delivery/',
      'src/domain/',
      'src/content/',
      'src/catalogue/',
      'src/database.ts',
      'src/ids.ts',
      'src/log.ts',
      'src/services.ts',
      'schema/',
    ],
    packages: [],
  },
  'src/entities': { own: ['src/entities/', 'schema/'], packages: ['@mikro-orm/core'] },
  worker: {
    own: ['worker/', 'src/', 'schema/', 'temporal/'],
    packages: [
      '@temporalio/activity',
      '@temporalio/client',
      '@temporalio/common',
      '@temporalio/worker',
      'prom-client',
    ],
  },
  api: {
    own: [
      'api/',
      'src/catalogue/',
      'src/public/',
      'src/skills/',
      'src/services.ts',
      'src/config.ts',
      'src/log.ts',
      'src/database.ts',
      'src/throttle.ts',
    ],
    packages: [
      '@koa/router',
      '@modelcontextprotocol/node',
      '@modelcontextprotocol/server',
      'koa',
      'koa-helmet',
      'oidc-provider',
      'pino',
      'prom-client',
      'raw-body',
    ],
  },
  smtp: {
    own: [
      'smtp/',
      'src/delivery/return-path.ts',
      'src/delivery/tracking-token.ts',
      'src/config.ts',
      'src/log.ts',
      'src/throttle.ts',
      'schema/report.ts',
    ],
    packages: ['mailparser', 'pino', 'prom-client', 'smtp-server'],
  },
  mailbox: {
    own: ['mailbox/'],
    packages: ['@koa/router', 'koa', 'mailparser', 'pino', 'smtp-server'],
  },
  'sdk/src': { own: ['sdk/src/'], packages: [] },
  cli: { own: ['cli/'], packages: ['@clack/prompts', '@postloom/sdk', 'commander'] },
  'cli/local': {
    own: ['cli/local/', 'cli/failure.ts', 'src/', 'schema/', 'temporal/contract.ts'],
    packages: ['@temporalio/client', 'scripts/services'],
  },
}

test('the import table of CONTRIBUTING holds', (t) => {
  const offences = allImports().filter((entry) => !isAllowed(entry))
  t.deepEqual(
    offences.map(({ from, to }) => `${from} must not import ${to}`),
    [],
  )
})

test('SQL is written where the rules are, and by what every call goes through', (t) => {
  const rooms = ['src/domain/', 'src/delivery/', 'src/catalogue/', 'src/migrations/']
  const writing = allImports().flatMap(({ from, to }) => (to === 'kysely' ? [from] : []))
  t.deepEqual(writing.filter((file) => !rooms.some((room) => file.startsWith(room))).toSorted(), [
    'src/database.ts',
    'src/development.ts',
  ])
})

test('only the registry knows tools, and no tool knows another', (t) => {
  const offences = allImports().filter(
    ({ from, to }) => to.startsWith('src/tools/') && from !== 'src/catalogue/registry.ts',
  )
  t.deepEqual(offences, [])
})

test('a file of tools holds no more than eight', (t) => {
  const tools = (file: string) => read(file).split(/= define(?:Admin)?Tool\(/).length - 1
  const groups = FILES.filter((file) => file.startsWith('src/tools/'))
  t.true(groups.some((file) => tools(file) > 1))
  t.deepEqual(
    groups.filter((file) => tools(file) > 8),
    [],
  )
})

test('what of the command line works on the installation is reached by one file, and only when it is needed', (t) => {
  const offences = allImports().filter(
    ({ from, to }) =>
      to.startsWith('cli/local/') && !from.startsWith('cli/local/') && from !== 'cli/installation.ts',
  )
  t.deepEqual(offences, [])
  t.notRegex(read('cli/installation.ts'), /^(?:import|export)[^(]*from '\.\/local/m)
})

test('the deterministic zone takes only types from the schema', (t) => {
  const offences = allImports().filter(
    ({ from, to, isTypeOnly }) => from.startsWith('temporal/') && to.startsWith('schema/') && !isTypeOnly,
  )
  t.deepEqual(offences, [])
})

test('no file imports itself through others', (t) => {
  const graph = new Map<string, string[]>(FILES.map((file) => [file, []]))
  for (const { from, to, isTypeOnly } of allImports()) {
    if (!isTypeOnly) graph.get(from)?.push(to)
  }
  t.deepEqual(findCycle(graph), [])
})

test('an import() is read like any other import', (t) => {
  const text = "const a = await import('./a.ts')\nconst b = import(name)\n"
  t.deepEqual(importsIn(text), [
    { specifier: './a.ts', isTypeOnly: false },
    { specifier: COMPUTED, isTypeOnly: false },
  ])
})

test('every relative link of the documentation leads somewhere', (t) => {
  const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: ROOT })]
  const dead = pages.flatMap((page) =>
    [...withoutCode(read(page)).matchAll(/\]\(([^)\s#]*)(?:#[^)\s]*)?(?:\s[^)]*)?\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => target !== '' && !/^[a-z]+:/.test(target))
      .filter((target) => !existsSync(join(ROOT, dirname(page), decodeURI(target))))
      .map((target) => `${page} links to ${target}, which does not exist`),
  )
  t.deepEqual(dead, [])
})

test('the entity manager is forked in few places: a unit of work, what crosses organizations, and set-up', (t) => {
  const forking = FILES.filter((file) => /\bem\.fork\(/.test(readFileSync(join(ROOT, file), 'utf8')))
  t.deepEqual(forking.toSorted(), [
    'src/catalogue/unit-of-work.ts',
    'src/database.ts',
    'src/development.ts',
    'src/ports/doorbell.ts',
    'src/ports/storage.ts',
  ])
})

test('each advisory lock has a number of its own', (t) => {
  const numbers = FILES.flatMap((file) =>
    Array.from(read(file).matchAll(/LOCK = ([\d_]+)$/gm), ([, number]) => number),
  )
  t.true(numbers.length > 0)
  t.deepEqual(numbers, [...new Set(numbers)])
})

test('every experiment has its line in the documentation', (t) => {
  const known = globSync('faults/*.ts', { cwd: ROOT }).flatMap(
    (file) => /^ {2}id: '(\w+)',$/m.exec(read(file))?.[1] ?? [],
  )
  const described = new Set(
    Array.from(read('docs/reliability.md').matchAll(/^\| (\w+) /gm), ([, id = '']) => id),
  )
  t.true(known.length > 0)
  t.deepEqual(
    known.filter((id) => !described.has(id)),
    [],
  )
})

test('what a file exports, another one imports', (t) => {
  const files = globSync(
    '{schema,src,temporal,worker,api,smtp,mailbox,sdk,cli,scripts,bench,faults,test}/**/*.ts',
    { cwd: ROOT, exclude: ['**/node_modules'] },
  )
  const taken = new Set(files.flatMap((file) => namesTaken(file)))
  const judged = files.filter((file) => !LOADED_WHOLE.some((whole) => file.startsWith(whole)))
  const idle = judged.flatMap((file) =>
    [...read(file).matchAll(/^export (?:async )?(?:const|function|class) ([\w$]+)/gm)]
      .map(([, name = '']) => `${file} exports ${name}`)
      .filter((line) => !taken.has(line) && !taken.has(`${file} exports ${EVERYTHING}`)),
  )
  t.true(taken.size > 1_000)
  t.deepEqual(idle, [])
})

test('nothing is exported by default', (t) => {
  t.deepEqual(
    FILES.filter((file) => /^export default /m.test(read(file))),
    [],
  )
})

function isAllowed({ from, to, isTypeOnly }: Import): boolean {
  const room = Object.keys(MAY_IMPORT)
    .filter((name) => from.startsWith(`${name}/`))
    .sort((one, other) => other.length - one.length)[0]
  const rule = room === undefined ? undefined : MAY_IMPORT[room]
  if (!rule || to === COMPUTED) return false
  if (to.startsWith('node:')) return !WITHOUT_NODE.has(room ?? '')
  if (!FILES.includes(to))
    return (
      rule.packages === undefined || rule.packages.some((name) => to === name || to.startsWith(`${name}/`))
    )
  if (room === 'temporal' && to.startsWith('schema/')) return isTypeOnly
  return rule.own.some((prefix) => to.startsWith(prefix))
}

function allImports(): Import[] {
  return FILES.flatMap((from) =>
    importsIn(read(from)).map(({ specifier, isTypeOnly }) => ({
      from,
      to: resolve(from, specifier),
      isTypeOnly,
    })),
  )
}

/** Returns every import and re-export, including `import()` anywhere in the text. */
function importsIn(text: string): { specifier: string; isTypeOnly: boolean }[] {
  const pattern =
    /^(?:import|export)\s+(type\s)?[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\(\s*(?:['"]([^'"]+)['"]|[^)\s])/gm
  return [...text.matchAll(pattern)].map(([, type, named, bare, dynamic]) => ({
    specifier: named ?? bare ?? dynamic ?? COMPUTED,
    isTypeOnly: type !== undefined,
  }))
}

/** Returns a line for each export of another file that a file imports, or re-exports, by name. */
function namesTaken(file: string): string[] {
  const text = read(file)
  const named = /^(?:import|export)\s+(?:type\s+)?(?:\*|\{([^}]*)\})[^'"]*?from '([^']+)'/gm
  const whole = /\bimport\('([^']+)'\)/g
  return [
    ...[...text.matchAll(named)].flatMap(([, names = EVERYTHING, from = '']) =>
      names.split(',').map((name) => ({ from, name: name.trim().replace(/^type\s+|\s+as\s[^]*$/g, '') })),
    ),
    ...Array.from(text.matchAll(whole), ([, from = '']) => ({ from, name: EVERYTHING })),
  ].flatMap(({ from, name }) => {
    if (from === '@postloom/sdk') return [`sdk/src/index.ts exports ${name}`]
    return from.startsWith('.') ? [`${normalize(join(dirname(file), from))} exports ${name}`] : []
  })
}

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^```[^]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '')
}

function resolve(from: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier
  const path = normalize(join(dirname(from), specifier))
  if (!existsSync(join(ROOT, path))) throw new Error(`${from} imports ${specifier}, which does not exist`)
  return relative(ROOT, join(ROOT, path))
}

function findCycle(graph: Map<string, string[]>): string[] {
  const done = new Set<string>()
  function visit(file: string, trail: string[]): string[] {
    const seen = trail.indexOf(file)
    if (seen >= 0) return [...trail.slice(seen), file]
    if (done.has(file)) return []
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...trail, file])
      if (cycle.length > 0) return cycle
    }
    done.add(file)
    return []
  }
  for (const file of graph.keys()) {
    const cycle = visit(file, [])
    if (cycle.length > 0) return cycle
  }
  return []
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}
