/* oxlint-disable no-control-regex -- control characters are what this is about */
import test from 'ava'
import fc from 'fast-check'

import { type CompiledEmail, type ContentSource, compileContent } from '../src/content/compile.ts'
import { type FilledEmail, fillContent } from '../src/content/fill.ts'
import { scanHtml } from '../src/content/html-scan.ts'

const SEED = 20_260_301
const URLS = { unsubscribe: 'https://mail.test/u/abc', online: 'https://mail.test/v/abc' }

function compile(source: string, more: Partial<ContentSource> = {}): CompiledEmail {
  return compileContent({ contentType: 'MARKDOWN', source, subject: 'Hello', kind: 'marketing', ...more })
}

function fill(
  compiled: CompiledEmail,
  variables: Readonly<Record<string, unknown>>,
  tracked = false,
): FilledEmail {
  const tracking = {
    openUrl: 'https://mail.test/o/1.gif',
    clickUrl: (at: number) => `https://mail.test/c/${at}`,
  }
  return fillContent(compiled, { variables, urls: URLS, ...(tracked ? { tracking } : {}) })
}

/** One tag as a browser sees it. */
type Tag = {
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
}

const REFERENCES: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
}

function decode(text: string): string {
  return text.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (reference) => REFERENCES[reference] ?? '')
}

/** Returns the attributes in the source of a tag. Independent of the product's own scanner. */
function attributesOf(source: string): Map<string, string> {
  const attributes = new Map<string, string>()
  const pattern = /([^\s=/>"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g
  for (const [, name = '', double, single, bare] of source.matchAll(pattern)) {
    attributes.set(name.toLowerCase(), decode(double ?? single ?? bare ?? ''))
  }
  return attributes
}

/**
 * Returns the tags of a document in order. Comments, and scripts and styles with their contents, count as one tag each.
 */
function tagsOf(html: string): Tag[] {
  const pattern =
    /<!--[^]*?-->|<(script|style)\b[^>]*>[^]*?<\/\1>|<(\/?[A-Za-z][^\s/>]*)((?:"[^"]*"|'[^']*'|[^>"'])*)>/gi
  return [...html.matchAll(pattern)].map(([whole, raw, name, rest]) => {
    const kind = name ?? raw ?? (whole.startsWith('<!--') ? '!--' : '?')
    return { name: kind.toLowerCase(), attributes: attributesOf(rest ?? '') }
  })
}

const ADDRESSES = new Set(['href', 'src'])

/**
 * Returns the shape of a document: tag and attribute names. URL attributes are ignored, because unsafe ones are
 * removed.
 */
function shapeOf(html: string): string[] {
  return tagsOf(html).map(({ name, attributes }) => {
    const names = [...attributes.keys()].filter((attribute) => !ADDRESSES.has(attribute))
    return [name, ...names].join(' ')
  })
}

/** Returns the scheme of a URL as a browser determines it: control characters and spaces are ignored. */
function schemeOf(url: string): string {
  return url
    .replaceAll(/[\0-\u0020]/g, '')
    .replace(/:[^]*/, '')
    .toLowerCase()
}

const FRAGMENTS = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '" onclick="x',
  '</title><svg/onload=1>',
  '</td></tr></table>',
  '--><b>',
  '<!--',
  ']]>',
  '</style><script>',
  'expression(alert(1))',
  'red;background:url(//evil.test)',
  '\\',
  '`',
  '&lt;script&gt;',
  '&#x3c;',
  '&quot;',
  `&#${'1'.repeat(400)};`,
  `&#x${'f'.repeat(400)}`,
  '&#xFDD0;',
  'javascript:alert(1)',
  'jAvA\tscript:alert(1)',
  '\u0001javascript:alert(1)',
  'data:text/html,<b>',
  'vbscript:x',
  '//evil.test',
  '@evil.test/',
  '.evil.test',
  'https://ok.test/"><b>',
  "https://ok.test/' x='",
  '../../',
  '..',
  '?a=b&c=d#e',
  '%0d%0aBcc: x',
  '\r\nBcc: evil@x.test',
  '\n\n--\n',
  '\0',
  '\u2028',
  '\u202E',
  '\uD800',
  '\uFDD00\uFDD1',
  '\uFDD20(\uFDD3',
  '{{email}}',
  "{{x | '<b>'}}",
  '[x](javascript:1)',
  '**b**',
  ' ',
  'Ada',
  '😀',
]

const value = fc.oneof(
  fc.constantFrom(...FRAGMENTS),
  fc.array(fc.constantFrom(...FRAGMENTS), { minLength: 2, maxLength: 4 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 20 }),
)

const EVERY_PLACE = `# {{v}} title

Text {{v}} **{{v}}** [{{v}}](https://x.test/{{v}}/a?b={{v}}#{{v}} "{{v}}") <{{v}}> \`{{v}}\`

- https://x.test/{{v}} and [whole]({{v}}) and [host](https://{{v}}.x.test/) and [end](https://x.test{{v}})
- ![{{v}}](https://x.test/{{v}}.png) ![whole]({{v}}) [mail](mailto:{{v}}) [tel](tel:{{v}})

> {{w | '{{v}}'}} {{w | '<b>"'}} | {{v}} | [odd](java{{v}}) [odd](https://{{v}})

\`\`\`
{{v}}
\`\`\`
`

const EVERY_HTML_PLACE = `<html><head><title>{{v}}</title><style>p{color:{{v}}}</style></head>
<body data-x="{{v}}" class='{{v}}' id={{v}} style="color:{{v}}"><!-- {{v}} -->
<!--[if mso]><v:rect href="https://x.test/{{v}}" alt="{{v}}">{{v}}</v:rect><![endif]-->
<p title='{{v}} "' onclick="f('{{v}}')">{{v}}</p><a href="{{v}}">{{v}}</a><a href='https://x.test/?q={{v}}'>x</a>
<a href={{v}}>x</a><img src="{{v}}" alt="{{v}}"><img src='https://x.test/{{v}}' alt='{{v}}'>
<textarea>{{v}}</textarea><script>var a = '{{v}}'</script></body></html>`

const FOR_MARKDOWN = compile(EVERY_PLACE, { subject: 'S {{v}}', preview: 'P {{v}}' })
const FOR_HTML = compile(EVERY_HTML_PLACE, { contentType: 'HTML', subject: 'S {{v}}', preview: 'P {{v}}' })

for (const [name, compiled] of [
  ['Markdown', FOR_MARKDOWN],
  ["a user's HTML", FOR_HTML],
] as const) {
  test(`no value breaks out of its place in ${name}`, (t) => {
    const shape = shapeOf(fill(compiled, { v: 'Ada' }).html)
    const holds = (v: string, tracked: boolean): void => {
      const filled = fill(compiled, { v }, tracked)
      const tags = shapeOf(filled.html)
      if (tracked) tags.splice(tags.lastIndexOf('img width height alt style'), 1)
      t.deepEqual(tags, shape)
      for (const { attributes } of tagsOf(filled.html)) {
        for (const address of ['href', 'src']) {
          const url = attributes.get(address)
          if (url !== undefined) t.true(['http', 'https', 'mailto', 'tel'].includes(schemeOf(url)), url)
        }
        t.notRegex(attributes.get('style') ?? '', /url\(|expression\(/)
      }
      t.notRegex(`${filled.html}${filled.text}`, /[\uFDD0-\uFDD3]|undefined/)
    }
    fc.assert(fc.property(value, fc.boolean(), holds), { numRuns: 1500, seed: SEED })
  })

  test(`no value adds a line to a header or to the text part of ${name}`, (t) => {
    const lines = fill(compiled, { v: 'Ada' }).text.split('\n').length
    const holds = (v: string): void => {
      const filled = fill(compiled, { v })
      t.notRegex(
        `${filled.subject}${filled.preheader}`,
        /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/,
      )
      t.true(filled.subject.isWellFormed() && filled.html.isWellFormed() && filled.text.isWellFormed())
      t.is(filled.text.split('\n').length, lines)
      t.notRegex(filled.text, /[\u0000-\u0009\u000b-\u001f\u2028-\u202e]/)
    }
    fc.assert(fc.property(value, holds), { numRuns: 1500, seed: SEED })
  })

  test(`every link of ${name} leads to an allowed scheme, and no host grows`, (t) => {
    const holds = (v: string): void => {
      for (const link of fill(compiled, { v }).links) {
        if (link === '') continue
        t.regex(link, /^(?:https?:\/\/[^/?#\s]|mailto:.|tel:.)/i)
        t.notRegex(link.replace(/^https?:\/\/[^/?#]*/i, ''), /[\s"<>\\^`{|}\u0080-\uFFFF]/)
        if (!link.startsWith('https://x.test')) continue
        t.true(URL.canParse(link) && new URL(link).host === 'x.test', link)
      }
    }
    fc.assert(fc.property(value, holds), { numRuns: 1500, seed: SEED })
  })
}

test('a host that ends in fixed text still ends in it', (t) => {
  const compiled = compile('[a](https://{{v}}.x.test/) [b](https://a.{{v}}.x.test:8080/)')
  const holds = (v: string): void => {
    for (const link of fill(compiled, { v }).links) {
      if (URL.canParse(link)) t.regex(new URL(link).hostname, /(?:^|\.)x\.test$/)
    }
  }
  fc.assert(fc.property(value, holds), { numRuns: 1000, seed: SEED })
  t.pass()
})

test('filling twice gives the same, and a filled email compiled again is not filled again', (t) => {
  const holds = (v: string): void => {
    const first = fill(FOR_MARKDOWN, { v, email: 'secret' })
    t.deepEqual(fill(FOR_MARKDOWN, { v, email: 'secret' }), first)
    t.false(
      first.html.includes('secret') || first.text.includes('secret') || first.subject.includes('secret'),
    )
  }
  fc.assert(fc.property(value, holds), { numRuns: 300, seed: SEED })
})

// Split at ¦, which has no meaning in any syntax.
const SYNTAX = (
  '*¦**¦_¦~~¦`¦[¦]¦(¦)¦![¦](¦<¦>¦&¦\\¦#¦-¦+¦1.¦|¦=¦:¦\n¦\n\n¦  \n¦ ¦    ¦\t¦> ¦- ¦```¦---¦https://x.test/¦javascript:¦www.x.test¦' +
  "{{¦}}¦{{v}}¦{{v | 'f'}}¦<!--¦-->¦<script>¦</script>¦<a href=\"¦\"¦'¦<p ¦<li>¦</ul>¦<blockquote>¦&amp;¦&#xfdd0;¦\uFDD0¦\uFDD10\uFDD1¦\uD800¦\0¦word¦é¦😀"
).split('¦')
const soup = fc.array(fc.constantFrom(...SYNTAX), { maxLength: 40 }).map((parts) => parts.join(''))

const OWN_TAGS =
  /^(?:!--|html|head|meta|title|style|body|div|span|table|tr|td|p|h[123]|strong|em|s|a|img|ul|ol|li|blockquote|br)$/

test('no Markdown source throws, writes a tag of its own, or leaves one open', (t) => {
  const holds = (source: string): void => {
    const { html } = fill(compile(source, { subject: source, preview: source }), { v: '<"v">' })
    const open: string[] = []
    for (const { name, attributes } of tagsOf(html)) {
      t.regex(name.replace('/', ''), OWN_TAGS)
      for (const attribute of attributes.keys()) t.notRegex(attribute, /^on/)
      if (['!--', 'style', 'meta', 'img', 'br'].includes(name)) continue
      if (name.startsWith('/')) t.is(open.pop(), name.slice(1))
      else open.push(name)
      for (const address of ['href', 'src']) {
        const url = attributes.get(address)
        if (url !== undefined) t.regex(url, /^(?:https?:\/\/|mailto:|tel:)/)
      }
    }
    t.deepEqual(open, [])
  }
  fc.assert(fc.property(soup, holds), { numRuns: 2000, seed: SEED })
})

const inlineSoup = fc
  .array(fc.constantFrom('*', '**', '_', '~~', '[', '![', '](https://x.test/)', 'a', ' ', 'b '), {
    maxLength: 14,
  })
  .map((parts) => parts.join(''))

test('emphasis and links never cross', (t) => {
  const holds = (source: string): void => {
    const open: string[] = []
    for (const { name } of tagsOf(fill(compile(source), {}).html)) {
      if (!/^\/?(?:em|strong|s|a|p)$/.test(name)) continue
      if (name.startsWith('/')) t.is(open.pop(), name.slice(1))
      else t.false(name === 'a' && open.includes('a'), 'a link in a link')
      if (!name.startsWith('/')) open.push(name)
    }
    t.deepEqual(open, [])
  }
  fc.assert(fc.property(inlineSoup, holds), { numRuns: 3000, seed: SEED })
})

test('no HTML source throws, and its pieces together are the source', (t) => {
  const holds = (source: string): void => {
    t.is(
      scanHtml(source)
        .map((token) => token.raw)
        .join(''),
      source,
    )
    const filled = fill(compile(source, { contentType: 'HTML' }), { v: '<"v">' })
    t.notRegex(`${filled.html}${filled.text}`, /[\uFDD0-\uFDD3]/)
    if (!/\{\{|[\uFDD0-\uFDD3\0\uD800]|href/.test(source)) t.is(filled.html, source)
  }
  fc.assert(fc.property(soup, holds), { numRuns: 2000, seed: SEED })
})

const REPEATED = (
  '[¦![¦](¦[a](¦[a](b "¦[a](b \'¦[a](<¦[a](http://x.y)¦[[]¦[[[[[a](b)¦![![![a](b)](b)¦*¦_¦~¦~~¦***¦**a ¦*a _b ¦a **b* ¦*a**¦*_¦**_*¦a_¦`¦`` ` ¦\\¦&¦!¦' +
  '> ¦>¦- ¦1. ¦> - ¦* a\n¦- a\n  ¦  - a\n¦-\n¦>\n¦>> a\n- b\n¦1. a\n\n¦# ¦\t¦\n\n¦```\n¦|---|\n¦=\n¦| a |\n¦' +
  "{{¦}}¦{{a¦{{a|'¦{{a}}¦\\{{a}}¦[a]({{a}})¦[{{a}}](https://x/{{a}}{{a}})¦http://¦http://a.¦http://.¦http://a)¦www.¦www.a.b)¦a@¦<http://¦<a@¦<a:¦" +
  '<¦<a ¦</¦<!--¦<!--[if mso]>¦<script>¦<style>x¦<a href="¦<a href=http://x>¦<ul><li>¦<blockquote>¦<div style="display:none">¦<b> </b>¦<td title={{a}}>¦<pre>\n'
).split('¦')

// Small by default; HOSTILE_BYTES=1000000 tests a megabyte, the most that the API accepts.
const HOSTILE_BYTES = Number(process.env['HOSTILE_BYTES'] ?? 250_000)

test('any mark, repeated without end, is read in linear time, and nothing throws', (t) => {
  t.timeout(300_000)
  for (const contentType of ['MARKDOWN', 'HTML'] as const) {
    for (const mark of REPEATED) {
      const source = mark.repeat(Math.ceil(HOSTILE_BYTES / mark.length))
      const { user: before } = process.cpuUsage()
      fill(compile(source, { contentType }), { a: '<x>' }, true)
      const seconds = (process.cpuUsage().user - before) / 1_000_000
      // Quadratic work would take minutes; the margin is for busy machines.
      t.true(seconds < 15, `${contentType} ${JSON.stringify(mark)} took ${seconds} s`)
    }
  }
})

test('quotes and lists nested ten thousand deep are flattened', (t) => {
  const deep = [
    `${'> '.repeat(10_000)}end`,
    `${'>'.repeat(10_000)}end`,
    `${'- '.repeat(10_000)}* end`,
    `${'1. '.repeat(10_000)}end`,
    Array.from({ length: 1000 }, (_, depth) => `${'  '.repeat(depth)}- item`).join('\n'),
    `${'<blockquote>'.repeat(10_000)}end`,
    `${'<ul><li>'.repeat(10_000)}end`,
  ]
  for (const source of deep) {
    for (const contentType of ['MARKDOWN', 'HTML'] as const) {
      const filled = fill(compile(source, { contentType }), {})
      t.regex(filled.text, /end|item/)
      if (contentType === 'MARKDOWN') t.true((filled.html.match(/<(?:blockquote|ul|ol)/g)?.length ?? 0) <= 12)
    }
  }
})

test('emphasis nested ten thousand deep, and a URL of a megabyte, stay small', (t) => {
  const emphasis = fill(compile(`${'*a '.repeat(10_000)}${'b* '.repeat(10_000)}`), {}).html
  t.true((emphasis.match(/<em>/g)?.length ?? 0) <= 16)
  const long = 'a'.repeat(1_000_000)
  t.false(fill(compile(`[x](https://x.test/${long})`), {}).html.includes(long))
  t.false(
    fill(compile(`[x](${'{{a}}'.repeat(100_000)})`), { a: 'https://x.test' }).html.includes(
      'href="https://x.test',
    ),
  )
})
