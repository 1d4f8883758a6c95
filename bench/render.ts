// Measures making one recipient's email: filling a compiled 5 KB document, MAILY and MARKDOWN, compared with joining
// the same bytes from prepared parts; then composing the whole message with its headers, encoding and signed links.
// Run alone: node bench/render.ts [--json FILE] [--people N]
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'

import { type CompiledEmail, compileContent, type ContentSource } from '../src/content/compile.ts'
import { fillContent, type FilledEmail, type FillInput } from '../src/content/fill.ts'
import { composeMail } from '../src/delivery/mime.ts'
import { quote, quoteEmail } from '../src/delivery/quoted-printable.ts'
import { MessageTokens } from '../src/delivery/tracking-token.ts'
import { encodeId, newId } from '../src/ids.ts'
import { median } from './shared/report.ts'

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

type Json = Record<string, unknown>

const text = (words: string, ...marks: Json[]): Json => ({ type: 'text', text: words, marks })

/** Returns a newsletter as the editor stores it: headings, text, sections, columns, a condition and ten links. */
function maily(): Json {
  const link = (index: number): Json => ({
    type: 'link',
    attrs: { href: `https://example.com/articles/${index}?from=mail` },
  })
  const column = (index: number): Json => ({
    type: 'column',
    content: [
      { type: 'heading', attrs: { level: 3 }, content: [text(`Part ${index} for {{name | 'you'}}`)] },
      { type: 'paragraph', content: [text(SENTENCE), text('Read it', link(index), { type: 'bold' })] },
    ],
  })
  const city = { type: 'variable', attrs: { id: 'city', fallback: 'your town' } }
  const rows = [1, 3, 5, 7].map((index) => ({
    type: 'columns',
    attrs: { gap: 16 },
    content: [column(index), column(index + 1)],
  }))
  return {
    type: 'doc',
    content: [
      { type: 'heading', attrs: { level: 1 }, content: [text("Hello {{name | 'friend'}}")] },
      { type: 'paragraph', content: [text(SENTENCE), text('In '), city, text('.')] },
      ...rows,
      {
        type: 'section',
        attrs: { paddingTop: 16, paddingRight: 16, paddingBottom: 16, paddingLeft: 16, showIfKey: 'city' },
        content: [
          { type: 'paragraph', content: [text('For {{city}}. '), text('Come', link(9))] },
          { type: 'button', attrs: { text: 'Sign up, {{name}}', url: 'https://example.com/sign-up' } },
        ],
      },
    ],
  }
}

function person(index: number): FillInput {
  return {
    variables: {
      name: index % 3 === 0 ? '' : `Reader ${index}`,
      email: `reader${index}@example.com`,
      city: index % 7 === 0 ? 'Saint-Étienne & Lyon' : index % 11 === 0 ? '' : 'Paris',
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

/** The dynamic parts of a filled email, which belong between its static texts. */
type Ready = {
  readonly expected: FilledEmail
  readonly html: readonly string[]
  readonly text: readonly string[]
}

/**
 * Returns the text of each slot, by cutting the filled text at the static texts. Parts that can be hidden are slots
 * too.
 */
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

/** Reads one character, which forces V8 to flatten a string that it may only have concatenated lazily. */
function flat(text: string): number {
  return text.charCodeAt(text.length - 1) + text.length
}

/**
 * Returns the microseconds of processor time per item, garbage collection included. Processor time is stable even on a
 * busy machine.
 */
function time(items: readonly unknown[], run: (index: number) => number): number {
  const start = process.cpuUsage()
  let bytes = 0
  for (let index = 0; index < items.length; index += 1) bytes += run(index)
  assert.ok(bytes > 0)
  const { user, system } = process.cpuUsage(start)
  return (user + system) / items.length
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

/** Returns a function that composes the complete message: signed addresses, both encoded parts and the headers. */
function composer(compiled: CompiledEmail, pool: readonly FillInput[]): (index: number) => number {
  const quoted = quoteEmail(compiled)
  const [organizationId, subscriberId] = [newId(), newId()]
  const ids = pool.map(() => newId())
  return (index) => {
    const messageId = ids[index % ids.length] ?? ''
    const tokens = new MessageTokens('the secret of a benchmark', { organizationId, messageId })
    const url = (door: string, token: string): string => `https://mail.example.com/${door}/${token}`
    const unsubscribe = url('u', tokens.unsubscribe(subscriberId))
    const input: FillInput = {
      variables: pool[index % pool.length]?.variables ?? {},
      urls: { unsubscribe, online: '' },
      tracking: {
        openUrl: url('o', `${tokens.open()}.gif`),
        clickUrl: (position) => url('c', tokens.click(position)),
      },
    }
    const { subject, html, text } = fillContent(quoted, input, quote)
    const { headers, body } = composeMail({
      messageId: `${encodeId('eml', messageId)}@shop.example`,
      date: new Date(),
      from: { name: 'Shop', email: 'hello@shop.example' },
      to: { name: 'Ada Lovelace', email: 'ada@reader.example' },
      replyTo: null,
      subject,
      html,
      text,
      unsubscribeUrl: unsubscribe,
    })
    return flat(`${headers}\r\n${body}`)
  }
}

type Measured = { concatenate: number; fill: number; compose: number }

function measure(
  email: ContentSource,
  sample: (first: FilledEmail) => void,
): { rounds: Measured[]; compile: number } {
  const compiled = compileContent(email)
  // The pool fits into the processor's cache, like the recipients of one page, and is used repeatedly.
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
  const compose = composer(compiled, pool)
  time(people, concatenate)
  time(people, fill)
  time(people, compose)
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = time(people, concatenate)
    const filled = time(people, fill)
    const composed = time(people, compose)
    return { concatenate: (before + time(people, concatenate)) / 2, fill: filled, compose: composed }
  })
  if (ready[1] !== undefined) sample(ready[1].expected)
  const compile = median(
    Array.from({ length: 50 }, () => time([0], () => compileContent(email).html.statics.length)),
  )
  return { rounds, compile }
}

function resultOf(email: ContentSource): Json & { ratio: number } {
  let bytes = {}
  const { rounds, compile } = measure(email, ({ html, text }) => {
    const source = typeof email.source === 'string' ? email.source : JSON.stringify(email.source)
    bytes = {
      source: Buffer.byteLength(source),
      html: Buffer.byteLength(html),
      text: Buffer.byteLength(text),
    }
  })
  return {
    bytes,
    compileMicroseconds: compile,
    concatenateMicroseconds: median(rounds.map((round) => round.concatenate)),
    fillMicroseconds: median(rounds.map((round) => round.fill)),
    composeMicroseconds: median(rounds.map((round) => round.compose)),
    ratio: median(rounds.map((round) => round.fill / round.concatenate)),
  }
}

function main(): void {
  const email = { subject: 'News for {{name}}', kind: 'marketing' } as const
  const results = {
    MAILY: resultOf({ ...email, contentType: 'MAILY', source: maily() }),
    MARKDOWN: resultOf({ ...email, contentType: 'MARKDOWN', source: markdown() }),
  }
  for (const [format, { bytes, ...numbers }] of Object.entries(results)) console.log(format, bytes, numbers)
  const result = {
    benchmark: 'render',
    machine: { cpu: cpus()[0]?.model, cores: cpus().length, memory: totalmem(), node: process.version },
    settings: { people: PEOPLE, rounds: ROUNDS, links: 10 },
    results,
    must: 5,
    aim: 2,
  }
  const json = JSON.stringify(result, null, 2)
  if (options.json === undefined) console.log(json)
  else writeFileSync(options.json, `${json}\n`)
}

main()
