import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'

import test from 'ava'

type Import = { from: string; to: string; isTypeOnly: boolean }

const ROOT = join(import.meta.dirname, '..')
const ROOMS = ['schema', 'src', 'temporal', 'worker', 'api', 'smtp', 'mailbox']
const FILES = ROOMS.flatMap((room) => globSync(`${room}/**/*.ts`, { cwd: ROOT }))

/** What each room may import: our own paths by prefix, packages by name. The longest matching room decides. */
const MAY_IMPORT: Record<string, { own: string[]; packages?: string[] }> = {
  schema: { own: ['schema/'], packages: ['typebox'] },
  temporal: { own: ['temporal/'], packages: ['@temporalio/workflow', '@temporalio/common'] },
  src: { own: ['src/', 'schema/', 'temporal/contract.ts', 'temporal/graph.ts'] },
  'src/content': { own: ['src/content/', 'schema/'], packages: [] },
  'src/entities': { own: ['src/entities/', 'schema/'], packages: ['@mikro-orm/core'] },
  'src/domain': {
    own: [
      'src/domain/',
      'src/entities/',
      'src/content/',
      'src/delivery/',
      'src/ports/',
      'src/skills/',
      'src/catalogue/',
      'src/database.ts',
      'src/ids.ts',
      'src/services.ts',
      'schema/',
      'temporal/contract.ts',
      'temporal/graph.ts',
    ],
  },
  worker: { own: ['worker/', 'src/', 'schema/', 'temporal/'] },
  api: {
    own: [
      'api/',
      'src/catalogue/',
      'src/services.ts',
      'src/public/',
      'src/config.ts',
      'src/log.ts',
      'src/database.ts',
      'schema/',
    ],
  },
  smtp: { own: ['smtp/', 'schema/'] },
  mailbox: { own: ['mailbox/'] },
}

test('the import table of CONTRIBUTING holds', (t) => {
  const offences = allImports().filter((entry) => !isAllowed(entry))
  t.deepEqual(
    offences.map(({ from, to }) => `${from} must not import ${to}`),
    [],
  )
})

test('only the registry knows tools, and no tool knows another', (t) => {
  const offences = allImports().filter(
    ({ from, to }) => to.startsWith('src/tools/') && from !== 'src/catalogue/registry.ts',
  )
  t.deepEqual(offences, [])
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
  if (!rule) return false
  if (to.startsWith('node:')) return room !== 'temporal' && room !== 'schema'
  if (!FILES.includes(to))
    return (
      rule.packages === undefined || rule.packages.some((name) => to === name || to.startsWith(`${name}/`))
    )
  if (room === 'temporal' && to.startsWith('schema/')) return isTypeOnly
  return rule.own.some((prefix) => to.startsWith(prefix))
}

function allImports(): Import[] {
  return FILES.flatMap((from) =>
    [...read(from).matchAll(/^(import|export)\s+(type\s)?[^'"]*?from '([^']+)'|^import '([^']+)'/gm)].map(
      (match) => ({
        from,
        to: resolve(from, match[3] ?? match[4] ?? ''),
        isTypeOnly: match[2] !== undefined,
      }),
    ),
  )
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
