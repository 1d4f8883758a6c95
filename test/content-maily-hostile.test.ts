import test from 'ava'
import fc from 'fast-check'

import { type CompiledEmail, compileContent } from '../src/content/compile.ts'
import { fillContent, type FilledEmail } from '../src/content/fill.ts'
import { carrySnippets, type SnippetSources } from '../src/content/maily/snippets.ts'
import { lintEmail } from './helpers/email-lint.ts'

type Json = Record<string, unknown>

const SEED = 20_260_301
const URLS = { unsubscribe: 'https://mail.test/u/abc', online: 'https://mail.test/v/abc' }

function compile(
  document: unknown,
  snippets?: SnippetSources,
  contentType: 'MAILY' | 'PLATE' = 'MAILY',
): CompiledEmail {
  const source = snippets === undefined ? document : carrySnippets(Object(document), snippets)
  return compileContent({ contentType, source, subject: 'Hello', kind: 'marketing' })
}

function fill(compiled: CompiledEmail, variables: Json = {}): FilledEmail {
  return fillContent(compiled, { variables, urls: URLS })
}

function render(source: unknown, variables: Json = {}): FilledEmail {
  return fill(compile(source), variables)
}

const doc = (...content: unknown[]): Json => ({ type: 'doc', content })
const text = (words: unknown, ...marks: unknown[]): Json => ({ type: 'text', text: words, marks })
const paragraph = (...content: unknown[]): Json => ({ type: 'paragraph', content })

const TYPES = [
  'doc',
  'paragraph',
  'heading',
  'bulletList',
  'orderedList',
  'listItem',
  'blockquote',
  'horizontalRule',
  'spacer',
  'button',
  'image',
  'logo',
  'section',
  'columns',
  'column',
  'repeat',
  'for',
  'footer',
  'linkCard',
  'htmlCodeBlock',
  'snippet',
  'text',
  'variable',
  'hardBreak',
  'inlineImage',
  'unknown',
]
const MARKS = ['bold', 'italic', 'underline', 'strike', 'code', 'textStyle', 'link', 'highlight', 'unknown']
const ATTRIBUTES = [
  'id',
  'fallback',
  'level',
  'start',
  'height',
  'width',
  'text',
  'url',
  'src',
  'alt',
  'title',
  'href',
  'variant',
  'kind',
  'borderRadius',
  'buttonColor',
  'textColor',
  'backgroundColor',
  'color',
  'alignment',
  'align',
  'textAlign',
  'textDirection',
  'dir',
  'externalLink',
  'size',
  'paddingTop',
  'paddingLeft',
  'marginTop',
  'borderWidth',
  'borderColor',
  'borderStyle',
  'borderTopLeftRadius',
  'gap',
  'verticalAlign',
  'each',
  'link',
  'image',
  'badgeText',
  'snippetId',
  'showIfKey',
  'visibilityRule',
  'isUrlVariable',
  'isSrcVariable',
  'fontSize',
  'version',
]
const ODD = ['constructor', '__proto__', 'prototype', 'toString', 'hasOwnProperty', 'valueOf', '']

/** Values that try to escape from an attribute, a style, a comment or a table cell. */
const PAYLOADS = [
  '"><script>alert(1)</script>',
  "' onmouseover='alert(1)",
  '" style="position:fixed" x="',
  'red;background:url(//evil.test)',
  '#fff;position:fixed',
  'expression(alert(1))',
  '1px;}</style><script>',
  '--><script>alert(1)</script>',
  '<![endif]--><script>alert(1)</script>',
  ']]><b>',
  '</td></tr></table></div></p>',
  '<td><tr><table>',
  'javascript:alert(1)',
  'JaVa\tScRiPt:alert(1)',
  'data:text/html,<script>',
  'vbscript:x',
  '//evil.test/',
  'https://x.test/"><b>',
  '{{name}}',
  "{{name | '<b>'}}",
  '{{constructor}}',
  '\uFDD00\uFDD1',
  '\uFDD20(\uFDD3',
  '\uFDD40\uFDD5',
  '\uFDD4\uFDD5',
  '\uD800',
  '\0',
  '\u2028\u202E',
  'line\nbreak',
  '1e999',
  '-5',
  '99999999999',
  'NaN',
  '50%',
  '#abc',
  'rgba(1,2,3,.5)',
  'snp_1',
  'name',
  'center',
  'outline',
]

const payload = fc.constantFrom(...PAYLOADS)
const scalar = fc.oneof(
  { weight: 4, arbitrary: payload },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(null, true, false, 0, -1, 3.7, 1e21, Infinity, NaN) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>([], {}, { toString: 1 }, [[]], { type: 'text' }) },
)
const rule = fc.record({
  action: fc.constantFrom('show', 'hide', 'none', 'x'),
  variable: fc.constantFrom('name', '{{name}}', 'constructor', ''),
  operator: fc.constantFrom('is_true', 'equals', 'contains', 'greater_than', 'toString'),
  value: scalar,
})
const attrs = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.dictionary(fc.constantFrom(...ATTRIBUTES, ...ODD), fc.oneof(scalar, rule), { maxKeys: 6 }),
  },
  { weight: 1, arbitrary: scalar },
)
const type = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...TYPES) },
  { weight: 1, arbitrary: fc.constantFrom(...ODD) },
  { weight: 1, arbitrary: scalar },
)
const mark = fc.oneof(fc.record({ type: fc.constantFrom(...MARKS, ...ODD), attrs }), scalar)
const { node } = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.record({ type: fc.constant('text'), text: scalar, marks: fc.array(mark, { maxLength: 3 }) }),
    fc.record(
      {
        type,
        attrs,
        content: fc.oneof(fc.array(tie('node'), { maxLength: 4 }), scalar),
        marks: fc.oneof(fc.array(mark), scalar),
        text: scalar,
      },
      { requiredKeys: ['type'] },
    ),
    scalar,
  ),
}))
const hostileDocument = fc.record({ type: fc.constant('doc'), content: fc.array(node, { maxLength: 5 }) })

/** Contrast depends on the author's colors, so it is ignored here. */
function faultsOf(html: string): string[] {
  return lintEmail(html).filter((fault) => !/ is #\w+ on #\w+$/.test(fault))
}

test('no document throws, escapes its place, or leaves an element open, for Outlook or for others', (t) => {
  t.timeout(300_000)
  const snippets: SnippetSources = new Map([
    ['snp_1', { name: '<b>', contentType: 'MAILY', content: doc(paragraph(text('in'))), isArchived: false }],
  ])
  const holds = (source: unknown, value: unknown): void => {
    const compiled = compile(source, snippets)
    const all = fillContent(compiled, { variables: { name: value }, urls: URLS, showAll: true })
    for (const { html, text } of [fill(compiled, { name: value }), all]) {
      t.deepEqual(faultsOf(html), [])
      t.notRegex(html + text, /[\uFDD0-\uFDD5\0]|\[object|undefined/)
      t.true(html.isWellFormed() && text.isWellFormed())
    }
  }
  fc.assert(fc.property(hostileDocument, payload, holds), { numRuns: 1500, seed: SEED })
})

test('any JSON at all is a document, an empty one, or a warning', (t) => {
  const holds = (source: unknown): void => {
    t.deepEqual(faultsOf(render(source).html), [])
  }
  fc.assert(fc.property(fc.oneof(fc.jsonValue({ maxDepth: 6 }), node), holds), { numRuns: 1000, seed: SEED })
  for (const source of [
    undefined,
    null,
    '',
    '{"type":"doc"}',
    [],
    {},
    7,
    { type: 'doc' },
    { type: 'doc', content: {} },
  ]) {
    t.notThrows(() => render(source))
  }
  t.deepEqual(
    compile('text').warnings.map(({ code }) => code),
    ['INVALID_DOCUMENT'],
  )
})

const ELEMENTS = [
  'p',
  'h1',
  'h2',
  'h3',
  'h4',
  'h6',
  'blockquote',
  'hr',
  'a',
  'img',
  'code_block',
  'code_line',
  'ul',
  'ol',
  'li',
  'lic',
  'table',
  'tr',
  'th',
  'td',
  'column_group',
  'column',
  'callout',
  'mention',
  'unknown',
]
const MEMBERS = [
  'bold',
  'code',
  'highlight',
  'subscript',
  'color',
  'backgroundColor',
  'fontSize',
  'url',
  'alt',
  'caption',
  'width',
  'align',
  'indent',
  'listStyleType',
  'listStart',
  'checked',
  'start',
  'colSpan',
  'background',
  'icon',
  'value',
  'verticalAlign',
]
const members = fc.dictionary(
  fc.constantFrom(...MEMBERS, ...ODD),
  fc.oneof(scalar, fc.constantFrom(true, 3, 'disc', 'decimal')),
  {
    maxKeys: 5,
  },
)
const element = fc.letrec<{ element: unknown }>((tie) => ({
  element: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.tuple(members, scalar).map(([more, text]) => ({ ...more, text })),
    fc
      .tuple(
        members,
        fc.oneof(fc.constantFrom<unknown>(...ELEMENTS), type),
        fc.array(tie('element'), { maxLength: 4 }),
      )
      .map(([more, name, children]) => ({ ...more, type: name, children })),
    scalar,
  ),
})).element

test('no Slate document throws, escapes its place, or leaves an element open', (t) => {
  t.timeout(300_000)
  const holds = (source: unknown, value: unknown): void => {
    const { html, text } = fill(compile(source, undefined, 'PLATE'), { name: value })
    t.deepEqual(faultsOf(html), [])
    t.notRegex(html + text, /[\uFDD0-\uFDD5\0]|\[object|undefined/)
  }
  const documents = fc.array(element, { maxLength: 6 })
  fc.assert(fc.property(documents, payload, holds), { numRuns: 1500, seed: SEED })
  fc.assert(fc.property(fc.oneof(fc.jsonValue({ maxDepth: 6 }), element), payload, holds), {
    numRuns: 500,
    seed: SEED,
  })
})

test('Slate documents that are too deep, too wide or hold themselves cost little and say so', (t) => {
  let deep: Json = { text: 'bottom' }
  for (let depth = 0; depth < 10_000; depth += 1) deep = { type: 'blockquote', children: [deep] }
  const circle: Json = { type: 'callout' }
  circle['children'] = [circle, circle, circle]
  const cell: Json = { type: 'td' }
  cell['children'] = [{ type: 'table', children: [{ type: 'tr', children: [cell, cell] }] }]
  const item = (indent: number): Json => ({
    type: 'p',
    indent,
    listStyleType: 'disc',
    children: [{ text: 'x' }],
  })
  const sources: [string, unknown][] = [
    ['deep', [deep]],
    ['circle', [circle]],
    ['tables in themselves', [{ type: 'table', children: [{ type: 'tr', children: [cell] }] }]],
    ['wide', Array.from({ length: 100_000 }, () => ({ type: 'p', children: [{ text: 'x' }] }))],
    ['indented', Array.from({ length: 100_000 }, (_, index) => item(index % 50))],
  ]
  for (const [name, source] of sources) {
    const seconds = cost(() => {
      const compiled = compile(source, undefined, 'PLATE')
      t.true(
        compiled.warnings.some(({ code }) => code === 'TOO_LARGE'),
        name,
      )
      t.true(fill(compiled).html.length < 5_000_000, name)
    })
    t.true(seconds < 10, `${name} took ${seconds} s`)
  }
})

test('types and attributes that objects have by themselves mean nothing', (t) => {
  const attributes = JSON.parse(
    '{"__proto__": {"url": "https://evil.test"}, "constructor": {"text": "evil"}}',
  ) as Json
  const source = doc(
    ...ODD.map((type) => ({ type, content: [text('kept')] })),
    { type: 'button', attrs: { ...attributes, text: 'Go', url: 'https://x.test/' } },
    paragraph(text('x', ...ODD.map((type) => ({ type })))),
  )
  const filled = render(source)
  t.is(filled.text.match(/kept/g)?.length, ODD.length)
  t.notRegex(filled.html, /evil/)
})

test('no address leads anywhere but to the web, mail and telephones, whatever attribute it stands in', (t) => {
  const addresses = [
    'javascript:alert(1)',
    ' jAvAsCrIpT:alert(1)',
    'java\nscript:x',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    '/relative',
    'https:\\\\evil.test',
  ]
  for (const url of addresses) {
    const source = doc(
      { type: 'button', attrs: { text: 'a', url } },
      { type: 'image', attrs: { src: url, externalLink: url, alt: 'b' } },
      { type: 'logo', attrs: { src: url, alt: 'c' } },
      { type: 'linkCard', attrs: { title: 'd', link: url, image: url, linkTitle: 'e' } },
      paragraph(text('f', { type: 'link', attrs: { href: url } }), {
        type: 'inlineImage',
        attrs: { src: url, externalLink: url, alt: 'g' },
      }),
      { type: 'htmlCodeBlock', content: [text(`<a href="${url}">h</a><img src="${url}" alt="i">`)] },
      { type: 'button', attrs: { text: 'j', url: 'site', isUrlVariable: true } },
      { type: 'htmlCodeBlock', content: [text('<a href="{{site}}">k</a><img src="{{site}}" alt="l">')] },
    )
    const { html, links } = render(source, { site: url })
    for (const word of ['a', 'b', 'c', 'd', 'fg', 'h', 'j', 'k'])
      t.true(html.includes(`>${word}<`) || html.includes(`"${word}"`), `${word} ${url}`)
    const own = html.slice(html.indexOf('class="pl-card"'), html.indexOf('class="pl-foot"'))
    const kept = url.startsWith('/') || url.startsWith('https:') || url.startsWith('file:') ? 2 : 0
    t.true((own.match(/(?:href|src)=/g)?.length ?? 0) <= kept, own)
    t.notRegex(own, /(?:href|src)="\s*(?:javascript|data|vbscript)/i)
    t.true(links.every((link) => link === ''))
  }
})

test("no address that runs code is left in an author's HTML, however it is written", (t) => {
  const addresses = [
    'javascript&colon;alert(1)',
    'java&Tab;script:alert(1)',
    'java&NewLine;script:alert(1)',
    'java&#115cript:alert(1)',
    'javascript&#58alert(1)',
    '&#0000000106;avascript:alert(1)',
    '&#x000000006A;avascript:alert(1)',
    '&#1;javascript:alert(1)',
    'java&#13;script:alert(1)',
    'data&colon;text/html,x',
  ]
  for (const url of addresses) {
    const source = doc({ type: 'htmlCodeBlock', content: [text(`<a href="${url}">a</a><img src='${url}'>`)] })
    const own = /<td class="pl-own"[^]*?<\/td>/.exec(render(source, {}).html)?.[0] ?? ''
    t.regex(own, />a<\/a><img *>/, url)
    t.notRegex(own, /href=|src=/, url)
  }
})

/** Returns the seconds of processor time that `run` takes. */
function cost(run: () => void): number {
  const { user: before } = process.cpuUsage()
  run()
  return (process.cpuUsage().user - before) / 1_000_000
}

test('documents that are too deep, too wide or hold themselves cost little and say so', (t) => {
  let deep: Json = paragraph(text('bottom'))
  for (let depth = 0; depth < 10_000; depth += 1) deep = { type: 'blockquote', content: [deep] }
  const circle: Json = { type: 'section', attrs: {} }
  circle['content'] = [circle, circle, circle]
  const line: Json = { type: 'emoji' }
  line['content'] = [text('x'), line, line]
  const columns = {
    type: 'columns',
    content: Array.from({ length: 1_000 }, () => ({ type: 'column', content: [paragraph(text('x'))] })),
  }
  const shared = Array.from({ length: 5_000 }, () => paragraph(text('x')))
  const sources: [string, unknown][] = [
    ['deep', doc(deep)],
    ['circle', doc(circle)],
    ['circle in a line', doc(paragraph(line))],
    ['columns', doc(columns)],
    ['wide', doc(...Array.from({ length: 100_000 }, () => paragraph(text('x'))))],
    [
      'wide lists',
      doc({ type: 'bulletList', content: shared.map((item) => ({ type: 'listItem', content: [item] })) }),
    ],
    [
      'lists of itself',
      doc({
        type: 'section',
        content: Array.from({ length: 1_000 }, () => ({ type: 'section', content: shared })),
      }),
    ],
  ]
  for (const [name, source] of sources) {
    const seconds = cost(() => {
      const compiled = compile(source)
      t.true(
        compiled.warnings.some(({ code }) => code === 'TOO_LARGE'),
        name,
      )
      t.true(fill(compiled).html.length < 5_000_000, name)
    })
    t.true(seconds < 10, `${name} took ${seconds} s`)
  }
})

test('megabytes of text, of marks and of braces are read in linear time', (t) => {
  t.timeout(300_000)
  const many = 400_000
  const sources: [string, unknown][] = [
    ['text', doc(paragraph(text('word '.repeat(many))))],
    ['line breaks', doc(paragraph(text('a\n'.repeat(many))))],
    ['open braces', doc(paragraph(text('{{'.repeat(many))))],
    ['variables', doc(paragraph(text('{{a}}'.repeat(many / 4))))],
    ['marks', doc(paragraph(text('x', ...Array.from({ length: many / 4 }, () => ({ type: 'bold' })))))],
    ['a color', doc(paragraph(text('x', { type: 'textStyle', attrs: { color: 'rgb('.repeat(many) } })))],
    ['an address', doc({ type: 'button', attrs: { text: 'x', url: `https://x.test/${'a'.repeat(many)}` } })],
    ['html', doc({ type: 'htmlCodeBlock', content: [text('<b><i></u>'.repeat(many / 20))] })],
    [
      'a condition',
      doc({ type: 'paragraph', attrs: { showIfKey: '{{'.repeat(many) }, content: [text('x')] }),
    ],
    ['a type', doc({ type: 'x'.repeat(many), content: [text('x')] })],
  ]
  for (const [name, source] of sources) {
    const seconds = cost(() => render(source, { a: '<b>' }))
    t.true(seconds < 15, `${name} took ${seconds} s`)
  }
})

test('snippets that hold much, many times, are bounded together', (t) => {
  const holder = (id: string) =>
    doc(...Array.from({ length: 50 }, () => ({ type: 'snippet', attrs: { snippetId: id } })))
  const snippets: SnippetSources = new Map([
    ['snp_1', { name: '1', contentType: 'MAILY', content: holder('snp_2'), isArchived: false }],
    ['snp_2', { name: '2', contentType: 'MAILY', content: holder('snp_3'), isArchived: false }],
    ['snp_3', { name: '3', contentType: 'MARKDOWN', content: 'word '.repeat(200_000), isArchived: false }],
  ])
  const compiled = compile(holder('snp_1'), snippets)
  t.true(compiled.warnings.some(({ code }) => code === 'TOO_LARGE'))
  t.true(fill(compiled).html.length < 12_000_000)
})

test('lists with many items, in one another, are cut off', (t) => {
  const inner = Array.from({ length: 1_000 }, (_, index) => ({ n: index }))
  const source = doc({
    type: 'repeat',
    attrs: { each: 'outer' },
    content: [
      {
        type: 'repeat',
        attrs: { each: 'inner' },
        content: [paragraph(text('{{n}}', { type: 'link', attrs: { href: 'https://x.test/{{n}}' } }))],
      },
    ],
  })
  const filled = render(source, { outer: inner.map(() => ({ inner })) })
  t.true(filled.links.length <= 1_000 && filled.links.length > 100)
})
