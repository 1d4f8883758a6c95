// What it costs to make one person's email: filling a compiled 5 KB document against joining the same
// bytes from ready parts. Run alone: node bench/render.ts [--json FILE] [--people N]
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import type { CompiledEmail } from '../src/content/compile.ts'
import { compileContent } from '../src/content/compile.ts'
import type { FilledEmail, FillInput } from '../src/content/fill.ts'
import { fillContent } from '../src/content/fill.ts'

const { values: options } = parseArgs({
  options: { json: { type: 'string' }, people: { type: 'string', default: '20000' } },
})
const PEOPLE = Number(options.people)
const ROUNDS = 7

const SENTENCE =
  'The engine weaves algebraic patterns just as the loom weaves flowers and leaves, *one card after another*. '

function markdown(): string {
  const sections = Array.from({ length: 10 }, (_, index) => {
    const link = `[Read part ${index + 1}](https://example.com/articles/${index + 1}?from=mail)`
    return `## Part ${index + 1} for {{name | 'you'}}\n\n${SENTENCE.repeat(3)}\n\n- ${link}\n- In **{{city | 'your town'}}**`
  })
  return `# Hello {{name | 'friend'}}\n\n${SENTENCE.repeat(4)}\n\n${sections.join('\n\n')}\n\n![Loom](https://example.com/loom.png)\n`
}

function person(index: number): FillInput {
  return {
    variables: {
      name: index % 3 === 0 ? '' : `Reader ${index}`,
      email: `reader${index}@example.com`,
      city: index % 7 === 0 ? 'Saint-Étienne & Lyon' : 'Paris',
      'org-name': 'Analytical Engines',
    },
    urls: {
      unsubscribe: `https://mail.example.com/u/${index}`,
      online: `https://mail.example.com/v/${index}`,
    },
    tracking: {
      openUrl: `https://mail.example.com/o/${index}.gif`,
      clickUrl: (position) => `https://mail.example.com/c/${index}-${position}`,
    },
  }
}

/** The parts of one filled email between which its fixed texts stand. */
interface Ready {
  readonly expected: FilledEmail
  readonly html: readonly string[]
  readonly text: readonly string[]
}

/** Finds what each slot showed, by cutting the filled text at the fixed ones. */
function cut(filled: string, statics: readonly string[]): string[] {
  const shown: string[] = []
  let at = statics[0]?.length ?? 0
  for (const [index, fixed] of statics.slice(1).entries()) {
    const isLast = index === statics.length - 2
    const end = isLast ? filled.length - fixed.length : filled.indexOf(fixed, at)
    shown.push(filled.slice(at, end))
    at = end + fixed.length
  }
  return shown
}

function join(statics: readonly string[], shown: readonly string[]): string {
  let joined = statics[0] ?? ''
  for (let index = 0; index < shown.length; index += 1) {
    joined += shown[index] ?? ''
    joined += statics[index + 1] ?? ''
  }
  return joined
}

/** Reading a character makes the engine really join what it may have put off; encoding costs both alike. */
function flat(text: string): number {
  return text.charCodeAt(text.length - 1) + text.length
}

/** Microseconds for each item. */
function time(items: readonly unknown[], run: (index: number) => number): number {
  const start = process.hrtime.bigint()
  let bytes = 0
  for (let index = 0; index < items.length; index += 1) bytes += run(index)
  assert.ok(bytes > 0)
  return Number(process.hrtime.bigint() - start) / 1000 / items.length
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((first, second) => first - second)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

function prepare(compiled: CompiledEmail, people: readonly FillInput[]): Ready[] {
  return people.map((input) => {
    const expected = fillContent(compiled, input)
    return {
      expected,
      html: cut(expected.html, compiled.html.statics),
      text: cut(expected.text, compiled.text.statics),
    }
  })
}

function main(): void {
  const source = markdown()
  const email = { contentType: 'MARKDOWN', source, subject: 'News for {{name}}', kind: 'marketing' } as const
  const compiled = compileContent(email)
  // A pool that fits the processor's cache, as the recipients of one page do; walked over and over.
  const pool = Array.from({ length: 500 }, (_, index) => person(index))
  const ready = prepare(compiled, pool)
  for (const { expected, html, text } of ready) {
    assert.equal(join(compiled.html.statics, html), expected.html)
    assert.equal(join(compiled.text.statics, text), expected.text)
    assert.ok(expected.links.length === 10 && expected.html.includes('/c/'))
  }
  const people = Array.from({ length: PEOPLE }, (_, index) => pool[index % pool.length])
  const fill = (index: number): number => {
    const input = pool[index % pool.length]
    if (input === undefined) return 0
    const filled = fillContent(compiled, input)
    return flat(filled.html) + flat(filled.text) + filled.subject.length
  }
  const concatenate = (index: number): number => {
    const parts = ready[index % ready.length]
    if (parts === undefined) return 0
    const html = join(compiled.html.statics, parts.html)
    const text = join(compiled.text.statics, parts.text)
    return flat(html) + flat(text) + parts.expected.subject.length
  }
  time(people, concatenate)
  time(people, fill)
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = time(people, concatenate)
    const filled = time(people, fill)
    return { concatenate: (before + time(people, concatenate)) / 2, fill: filled }
  })
  const compile = median(
    Array.from({ length: 50 }, () => time([0], () => compileContent(email).html.statics.length)),
  )
  report(source, ready[1]?.expected, rounds, compile)
}

function report(
  source: string,
  sample: FilledEmail | undefined,
  rounds: readonly { concatenate: number; fill: number }[],
  compileMicroseconds: number,
): void {
  const concatenateMicroseconds = median(rounds.map((round) => round.concatenate))
  const fillMicroseconds = median(rounds.map((round) => round.fill))
  const result = {
    benchmark: 'render',
    machine: { cpu: cpus()[0]?.model, cores: cpus().length, memory: totalmem(), node: process.version },
    settings: { people: PEOPLE, rounds: ROUNDS, links: 10 },
    bytes: {
      source: Buffer.byteLength(source),
      html: Buffer.byteLength(sample?.html ?? ''),
      text: Buffer.byteLength(sample?.text ?? ''),
    },
    compileMicroseconds,
    concatenateMicroseconds,
    fillMicroseconds,
    ratio: median(rounds.map((round) => round.fill / round.concatenate)),
    must: 5,
    aim: 2,
  }
  console.log(`source ${result.bytes.source} B, html ${result.bytes.html} B, text ${result.bytes.text} B`)
  console.table({
    'compile once': { microseconds: compileMicroseconds.toFixed(1) },
    'join the same bytes': { microseconds: concatenateMicroseconds.toFixed(2) },
    'fill for one person': { microseconds: fillMicroseconds.toFixed(2), ratio: result.ratio.toFixed(2) },
  })
  const json = JSON.stringify(result, null, 2)
  if (options.json === undefined) console.log(json)
  else writeFileSync(options.json, `${json}\n`)
}

main()
