import { createHash } from 'node:crypto'

import test from 'ava'
import fc from 'fast-check'
import { Marked } from 'marked'

import { type CompiledEmail, type ContentSource, compileContent } from '../src/content/compile.ts'
import { type FilledEmail, type FillInput, fillContent } from '../src/content/fill.ts'
import { type Block, parseBlocks } from '../src/content/markdown-blocks.ts'
import { parseInline } from '../src/content/markdown-inline.ts'
import { BUILT_IN_VARIABLES } from '../src/content/variables.ts'
import { PAGE_SECURITY_POLICY } from '../src/public/page-frame.ts'
import * as pages from '../src/public/pages.ts'

const URLS = { unsubscribe: 'https://mail.test/u/abc', online: 'https://mail.test/v/abc' }
const TRACKING = {
  openUrl: 'https://mail.test/o/abc.gif',
  clickUrl: (position: number) => `https://mail.test/c/abc${position}`,
}
const ADA = { name: 'Ada', email: 'ada+mail@example.com', phone: '+33 6 12', 'org-name': 'Engines & Co' }

function compile(source: string, more: Partial<ContentSource> = {}): CompiledEmail {
  return compileContent({ contentType: 'MARKDOWN', source, subject: 'Hello', kind: 'transactional', ...more })
}

function fill(compiled: CompiledEmail, more: Partial<FillInput> = {}): FilledEmail {
  return fillContent(compiled, { variables: ADA, urls: URLS, ...more })
}

/** Returns the HTML inside the card. */
function body(filled: FilledEmail): string {
  const from = filled.html.indexOf('>', filled.html.indexOf('class="pl-card"')) + 1
  return filled.html.slice(from, filled.html.indexOf('</td></tr>', from)).trim()
}

/** Returns the HTML inside the card without styles and classes. */
function bare(filled: FilledEmail): string {
  return body(filled).replaceAll(/ (?:style|class)="[^"]*"/g, '')
}

function show(source: string, more: Partial<FillInput> = {}): string {
  return bare(fill(compile(source), more))
}

test('the whole subset of Markdown becomes HTML', (t) => {
  const source = `# One
## Two
### Three

**bold** *italic* ~~struck~~ and ***both***

- first
- second
  1. inner

> quoted
> on

---

[link](https://example.com/a "title") https://example.com/raw. ![pic](https://example.com/p.png)`
  t.is(
    show(source),
    `<h1>One</h1>
<h2>Two</h2>
<h3>Three</h3>
<p><strong>bold</strong> <em>italic</em> <s>struck</s> and <em><strong>both</strong></em></p>
<ul>
<li>first</li>
<li>second<ol>
<li>inner</li>
</ol>
</li>
</ul>
<blockquote>
<p>quoted
on</p>
</blockquote>
<div role="separator">&nbsp;</div>
<p><a href="https://example.com/a">link</a> <a href="https://example.com/raw">https://example.com/raw</a>. <img src="https://example.com/p.png" alt="pic"></p>`,
  )
})

test('the text part reads well by itself', (t) => {
  const source = `# Welcome

Thanks for joining us; here is a sentence that is long enough to be wrapped at the usual width of a line.

- Read [the guide](https://example.com/guide)
- Write to [us](mailto:help@example.com)
  - nested

3. three
4. four

> A quoted sentence that is long enough to be wrapped too, so that each line has its mark.
>
> Again.

---

![Our logo](https://example.com/logo.png)

[Start now](https://example.com/start)

See https://example.com/a/very/long/address/that/does/not/fit/into/one/line/but/is/never/broken/in/two.

Best,\\
Ada`
  t.is(
    fill(compile(source)).text,
    `Welcome
=======

Thanks for joining us; here is a sentence that is long enough to be wrapped at
the usual width of a line.

- Read the guide (https://example.com/guide)
- Write to us (help@example.com)
  - nested

3. three
4. four

> A quoted sentence that is long enough to be wrapped too, so that each line
> has its mark.
>
> Again.

------------------------

[Our logo]

Start now: https://example.com/start

See https://example.com/a/very/long/address/that/does/not/fit/into/one/line/but/is/never/broken/in/two.

Best,
Ada

--
Engines & Co
Unsubscribe: https://mail.test/u/abc
`,
  )
})

test('what begins with a letter that is read from the right stands on the right', (t) => {
  const source =
    "# שלום\n\n{{name | 'friend'}}, שלום newsletter.\n\n- אחת\n- Two\n\n> ציטוט\n\n#### קטן\n\nHello שלום"
  const { html } = fill(compile(source))
  const turned = html.matchAll(/<(\w+)[^>]*text-align:right;direction:rtl[^>]*>/g)
  t.deepEqual(
    [...turned].map(([, tag]) => tag),
    ['h1', 'p', 'ul', 'blockquote', 'p', 'p'],
  )
})

test('raw HTML is shown as text', (t) => {
  t.is(
    show('<b>x</b> <script>alert(1)</script>'),
    '<p>&lt;b&gt;x&lt;/b&gt; &lt;script&gt;alert(1)&lt;/script&gt;</p>',
  )
  t.is(show('<div onclick="x">\ny'), '<p>&lt;div onclick=&quot;x&quot;&gt;\ny</p>')
})

test('what Markdown has beyond the subset degrades to text', (t) => {
  t.is(show('#### Four'), '<p><strong>Four</strong></p>')
  t.is(show('Use `a*b*c` now'), '<p>Use a*b*c now</p>')
  t.is(show('```js\nlet a = "<b>"\n\n  *x*\n```'), '<p>let a = &quot;&lt;b&gt;&quot;<br>\n<br>\n  *x*</p>')
  t.is(show('| a | b |\n|---|---|\n| 1 | 2 |'), '<p>| a | b |<br>\n| 1 | 2 |</p>')
  t.is(
    show('[a][b]\n\n[b]: https://example.com'),
    '<p>[a][b]</p>\n<p>[b]: <a href="https://example.com">https://example.com</a></p>',
  )
  t.is(show('    indented'), '<p>indented</p>')
})

const WORDS = [
  'a',
  'b c',
  '*x*',
  '**y**',
  '_z_',
  '~~s~~',
  '***bi***',
  '**a *b* c**',
  '[l](https://e.com)',
  '![i](https://e.com/i.png)',
  'https://e.com/p?q=1',
  'snake_case_x',
  '`co*de*`',
  '\\*n\\*',
  '<b>',
  'x & y',
  '**a',
  'b**',
  '*',
  '_',
  'a_b_',
  '**"q"**',
  'é',
  'a*b*c',
]

function escapeText(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

const MARK_TAGS = { strong: 'strong', emphasis: 'em', strike: 'del' } as const

function inlineHtml(source: string): string {
  const tokens = parseInline(source, () => false)
  return tokens
    .map((token) => {
      if (token.type === 'text') return escapeText(token.text)
      if (token.type === 'open') return `<${MARK_TAGS[token.mark]}>`
      if (token.type === 'close') return `</${MARK_TAGS[token.mark]}>`
      if (token.type === 'linkOpen') return `<a href="${token.url}">`
      if (token.type === 'linkClose') return '</a>'
      if (token.type === 'url') return `<a href="${token.url}">${escapeText(token.text)}</a>`
      return token.type === 'image' ? `<img src="${token.url}" alt="${token.alt}">` : '<br>'
    })
    .join('')
}

function blockHtml(block: Block, tight = false): string {
  if (block.type === 'heading') return `<h${block.level}>${inlineHtml(block.source)}</h${block.level}>`
  if (block.type === 'paragraph')
    return tight ? inlineHtml(block.source) : `<p>${inlineHtml(block.source)}</p>`
  if (block.type === 'literal') return block.lines.join('\n')
  if (block.type === 'rule') return '<hr>'
  if (block.type === 'quote')
    return `<blockquote>${block.children.map((child) => blockHtml(child)).join('')}</blockquote>`
  const tag = block.start === null ? 'ul' : 'ol'
  const start = block.start === null || block.start === 1 ? '' : ` start="${block.start}"`
  const items = block.items.map(
    (item) => `<li>${item.map((child) => blockHtml(child, block.tight)).join('')}</li>`,
  )
  return `<${tag}${start}>${items.join('')}</${tag}>`
}

const nothing = (): undefined => undefined
const marked = new Marked({
  tokenizer: { html: nothing, tag: nothing, table: nothing, def: nothing, reflink: nothing, code: nothing },
  renderer: { codespan: ({ text }) => escapeText(text) },
})

function sameForm(html: string): string {
  return html
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/ ?(<[^>]*>) ?/g, '$1')
    .replaceAll('&#39;', "'")
    .trim()
}

function meansTheSame(source: string): boolean {
  const ours = parseBlocks(source)
    .map((block) => blockHtml(block))
    .join('')
  return sameForm(ours) === sameForm(marked.parse(source, { async: false }))
}

test('sentences mean what they mean to other Markdown programs', (t) => {
  const words = fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 5 })
  const sentence = words.map((list) => `s ${list.join(' ')}`)
  fc.assert(fc.property(sentence, meansTheSame), { numRuns: 2000, seed: 3 })
  t.pass()
})

test('blocks mean what they mean to other Markdown programs', (t) => {
  const documents = [
    'a\nb\n\nc',
    '# a #\n## b\ntext\n### c',
    'a\n===\n\nb\n---\n\nc',
    '- a\n- b\n\n  c\n- d',
    '- a\n\n- b',
    '- a\n  - b\n    - c\n- d',
    '* a\n* b\n+ c\n+ d',
    '1. a\n2. b\n\n7) c',
    '3. a\n   - b\n\n     c\n4. d',
    'text\n- a\n- b',
    'text\n2. not a list',
    '> a\nlazy\n\n> b\n> > c\n>\n> d',
    '> - a\n> - b\n\n- > c\n  > d',
    '- a\nlazy\n- b\n\ntext',
    '---\n***\n* * *\n_ _ _',
    '-\n- a\n-',
    '- a\n  - b\n\n  para',
    '1. a\n\n   > b\n\n2. c',
    'a  \nb\\\nc',
    '- # a\n- ---\n- b',
  ]
  for (const source of documents) t.true(meansTheSame(source), JSON.stringify(source))
})

test('a variable shows its value, an empty one its fallback', (t) => {
  const source = "Hi {{name | 'there'}}, {{ name|\"x\" }} {{city | 'it\\'s | fine'}} {{city}}."
  t.is(show(source), '<p>Hi Ada, Ada it&#39;s | fine .</p>')
  for (const empty of [null, undefined, '', '  ', '\t\n', Number.NaN, {}]) {
    t.is(show("Hi {{name | 'there'}}", { variables: { name: empty } }), '<p>Hi there</p>')
  }
  t.is(show("Hi {{name | 'there'}}", { variables: {} }), '<p>Hi there</p>')
})

test('numbers, booleans and dates are written plainly', (t) => {
  const at = '2026-03-01T14:30:00.000Z'
  const variables = { n: 12.5, z: 0, b: false, d: '2026-03-01', at, list: ['a', 2] }
  t.is(
    show('{{n}} {{z}} {{b}} {{d}} {{at}} {{list}}', { variables }),
    '<p>12.5 0 false 2026-03-01 2026-03-01 14:30 UTC a, 2</p>',
  )
  t.is(
    show('[When](https://x.test/?at={{at}})', { variables }),
    '<p><a href="https://x.test/?at=2026-03-01T14%3A30%3A00.000Z">When</a></p>',
  )
})

test('a value that looks like a variable or like Markdown is not expanded', (t) => {
  const variables = { name: '{{email}} **b** [x](https://evil.test)', email: 'secret@example.com' }
  const filled = fill(compile('{{name}}', { subject: '{{name}}' }), { variables })
  t.is(bare(filled), '<p>{{email}} **b** [x](https://evil.test)</p>')
  t.is(filled.subject, '{{email}} **b** [x](https://evil.test)')
})

test('names of object methods are not variables that anyone has', (t) => {
  t.is(show("{{constructor | 'none'}}{{toString}}{{hasOwnProperty}}"), '<p>none</p>')
})

test('a backslash keeps braces as text, and what is no variable stays and is a warning', (t) => {
  const compiled = compile('\\{{name}} {{not a name}} {{name | fallback}} {{}}')
  t.is(bare(fill(compiled)), '<p>{{name}} {{not a name}} {{name | fallback}} {{}}</p>')
  t.deepEqual(
    compiled.warnings.map((warning) => warning.code),
    ['MALFORMED_VARIABLE', 'MALFORMED_VARIABLE', 'MALFORMED_VARIABLE'],
  )
})

test('variables work in headings, emphasis, lists, link texts, table rows and alternative texts', (t) => {
  const source = `# {{name}}

**{{name}}** _{{name}}_ | {{city | 'a|b'}}
- [{{name}}](https://example.com/)

![{{name}}](https://example.com/i.png)`
  t.is(
    show(source),
    `<h1>Ada</h1>
<p><strong>Ada</strong> <em>Ada</em> | a|b</p>
<ul>
<li><a href="https://example.com/">Ada</a></li>
</ul>
<p><img src="https://example.com/i.png" alt="Ada"></p>`,
  )
})

test('a variable inside a URL is percent-encoded for its place', (t) => {
  const variables = { q: 'a b&c=/../"<é', host: 'shop.example.com', mail: 'a+b@x.com', tel: '+33 (6) 12' }
  const hrefs = (source: string) =>
    fill(compile(source), { variables })
      .html.match(/href="[^"]*"/g)
      ?.slice(0, -1)
  t.deepEqual(hrefs('[x](https://example.com/{{q}}?q={{q}}#{{q}})'), [
    'href="https://example.com/a%20b%26c%3D%2F..%2F%22%3C%C3%A9?q=a%20b%26c%3D%2F..%2F%22%3C%C3%A9#a%20b%26c%3D%2F..%2F%22%3C%C3%A9"',
  ])
  t.deepEqual(hrefs('[x](https://{{host}}/a)'), ['href="https://shop.example.com/a"'])
  t.deepEqual(hrefs('[x](mailto:{{mail}}?subject={{q}})'), [
    'href="mailto:a+b@x.com?subject=a%20b%26c%3D%2F..%2F%22%3C%C3%A9"',
  ])
  t.deepEqual(hrefs('[x](tel:{{tel}})'), ['href="tel:+33(6)12"'])
  t.deepEqual(hrefs("[x](https://example.com/{{gone | 'fall back'}})"), [
    'href="https://example.com/fall%20back"',
  ])
  t.deepEqual(hrefs('see https://example.com/{{host}}/x.'), ['href="https://example.com/shop.example.com/x"'])
})

test('a variable cannot lengthen the host or climb out of the path before it', (t) => {
  const target = (source: string, x: string) => fill(compile(`[l](${source})`), { variables: { x } }).links[0]
  t.is(target('https://good.test{{x}}', '.evil.test'), 'https://good.test/.evil.test')
  t.is(target('https://good.test{{x}}', '@evil.test'), 'https://good.test/%40evil.test')
  t.is(target('https://{{x}}.good.test/', 'evil.test/'), 'https://evil.test.good.test/')
  t.is(target('https://good.test/a/{{x}}/b', '..'), 'https://good.test/a//b')
  t.is(target('https://good.test:{{x}}/', '80@evil.test'), 'https://good.test:80evil.test/')
})

test('a scheme before a variable that is the rest of the URL gives way to the scheme of its value', (t) => {
  const target = (source: string, x: string) => fill(compile(`[l](${source})`), { variables: { x } }).links[0]
  t.is(target('https://{{x}}', 'https://ada.test/shop?a=1'), 'https://ada.test/shop?a=1')
  t.is(target('https://{{x}}', 'HTTP://ada.test'), 'HTTP://ada.test')
  t.is(target('http://{{x}}', 'ada.test/shop#top'), 'http://ada.test/shop#top')
  t.is(target('//{{x}}', 'ada.test'), 'https://ada.test')
  t.is(target('https://{{x}}/prices', 'https://ada.test/'), 'https://ada.test/prices')
  for (const bad of ['javascript:alert(1)', '/path', '', 'https://', '//']) {
    t.notRegex(target('https://{{x}}', bad) ?? '', /script:|^https:\/\/(?:\/|$)/, bad)
  }
  for (const scheme of ['https://', 'http://', '//']) {
    const compiled = compile(`[Bye](${scheme}{{unsubscribeUrl}})`)
    t.true(compiled.hasUnsubscribeLink, scheme)
    const filled = fill(compiled, { tracking: TRACKING })
    t.regex(filled.html, /<a href="https:\/\/mail\.test\/u\/abc"/)
    t.deepEqual(filled.links, [])
  }
})

test('a variable that is the whole URL is taken as one when its scheme is allowed', (t) => {
  const target = (site: unknown) => fill(compile('[l]({{site}})'), { variables: { site } }).links[0]
  t.is(target('https://example.com/a?b=c&d=e%20f'), 'https://example.com/a?b=c&d=e%20f')
  t.is(target('HTTP://example.com'), 'HTTP://example.com')
  t.is(target('example.com/a b'), 'https://example.com/a%20b')
  t.is(target('//example.com'), 'https://example.com')
  t.is(target('mailto:a@b.test'), 'mailto:a@b.test')
  for (const bad of [
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    '/path',
    'x',
    '',
    'https://',
  ]) {
    t.is(target(bad), '', bad)
  }
})

test('other schemes are dropped however they are written', (t) => {
  const written = [
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java&#115;cript:alert(1)',
    'javascript&colon;alert(1)',
    '&#1;javascript:alert(1)',
    'java\\script:alert(1)',
    '<java script:alert(1)>',
    'javascript%3Aalert(1)',
    '%6Aavascript:alert(1)',
    'vbscript:x',
    'data:text/html;base64,PHNjcmlwdD4=',
    'https:\\\\evil.test',
    'view-source:https://x.test',
    'blob:https://x.test',
    '{{a}}script:alert(1)',
    'java{{a}}:alert(1)',
    'javascript:{{a}}',
    '/relative',
    'relative',
  ]
  for (const url of written) {
    const compiled = compile(`[text](${url}) ![alt](${url})`)
    const filled = fill(compiled, { variables: { a: 'java', 'org-name': 'x' } })
    t.notRegex(body(filled), /(?:href|src)=/, url)
    t.regex(body(filled), />text/, url)
    t.true(compiled.warnings.every((warning) => warning.code === 'UNSAFE_URL'))
  }
})

test('a dropped link leaves its text, in both parts', (t) => {
  const filled = fill(compile('[bad](javascript:x) and [site]({{site}}) end'), {
    variables: { site: 'javascript:x' },
  })
  t.is(bare(filled), '<p>bad and <a>site</a> end</p>')
  t.regex(filled.text, /^bad and site {2}end\n/)
})

test('each link has a position of its own, and the resolved target stands there', (t) => {
  const source =
    '[a](https://x.test/1) [b](https://x.test/1) [c](https://x.test/{{name}}) https://x.test/4 [m](mailto:a@b.test) [t](tel:123) [u]({{unsubscribeUrl}}) [o]({{onlineUrl}})'
  const compiled = compile(source)
  const filled = fill(compiled, { tracking: TRACKING })
  t.deepEqual(filled.links, [
    'https://x.test/1',
    'https://x.test/1',
    'https://x.test/Ada',
    'https://x.test/4',
  ])
  t.deepEqual(compiled.links, [
    { position: 0, url: 'https://x.test/1' },
    { position: 1, url: 'https://x.test/1' },
    { position: 2, url: null },
    { position: 3, url: 'https://x.test/4' },
  ])
  t.deepEqual(
    body(filled)
      .match(/href="[^"]*"/g)
      ?.map((href) => href.slice(6, -1)),
    [
      'https://mail.test/c/abc0',
      'https://mail.test/c/abc1',
      'https://mail.test/c/abc2',
      'https://mail.test/c/abc3',
      'mailto:a@b.test',
      'tel:123',
      URLS.unsubscribe,
      URLS.online,
    ],
  )
  for (const position of [0, 1, 2, 3]) t.true(filled.text.includes(`https://mail.test/c/abc${position}`))
  t.false(filled.text.includes('x.test'))
})

test('without tracking nothing is wrapped and there is no pixel', (t) => {
  const compiled = compile('[a](https://x.test/1)')
  t.false(fill(compiled).html.includes('<img'))
  t.true(fill(compiled).html.includes('href="https://x.test/1"'))
  const tracked = fill(compiled, { tracking: TRACKING }).html
  t.regex(tracked, /<img src="https:\/\/mail\.test\/o\/abc\.gif" width="1" height="1" alt=""[^>]*><\/body>/)
})

test('a variable that becomes a mail address is not wrapped', (t) => {
  const filled = fill(compile('[a]({{site}})'), {
    variables: { site: 'mailto:a@b.test' },
    tracking: TRACKING,
  })
  t.regex(body(filled), /href="mailto:a@b.test"/)
})

test('an unsubscribe link is added where there is none, and only there', (t) => {
  const without = compile('Hello')
  t.false(without.hasUnsubscribeLink)
  t.true(without.unsubscribeLinkAdded)
  t.regex(fill(without).html, /href="https:\/\/mail\.test\/u\/abc"[^>]*><span lang="en">Unsubscribe</)
  for (const source of [
    '[Bye]({{unsubscribeUrl}})',
    'Bye: {{unsubscribeUrl}}',
    '<a> [x]({{unsubscribeUrl}}?why=1)',
  ]) {
    const compiled = compile(source)
    t.true(compiled.hasUnsubscribeLink, source)
    t.false(compiled.unsubscribeLinkAdded, source)
    t.false(fill(compiled).html.includes('class="pl-foot"'), source)
    t.is(fill(compiled).html.split('mail.test/u/abc').length, source.startsWith('Bye') ? 3 : 2)
  }
})

test('a link of which nothing is seen is none, and the footer has the unsubscribe link', (t) => {
  for (const inside of ['', ' ', '\u200b', '&nbsp;', '\\\n']) {
    const compiled = compile(`Hello [${inside}]({{unsubscribeUrl}}) you`)
    t.false(compiled.hasUnsubscribeLink, JSON.stringify(inside))
    t.true(compiled.unsubscribeLinkAdded)
    t.is(fill(compiled).html.match(/<a /g)?.length, 1)
  }
  t.deepEqual(compile('[](https://x.test) [ok](https://y.test)').links, [
    { position: 0, url: 'https://y.test' },
  ])
  t.true(compile('[![](https://x.test/bye.png)]({{unsubscribeUrl}})').hasUnsubscribeLink)
  t.true(compile('[![Bye](data:image/png,x)]({{unsubscribeUrl}})').hasUnsubscribeLink)
  t.false(compile('[![](data:image/png,x)]({{unsubscribeUrl}})').hasUnsubscribeLink)
})

test('marketing mail says who sends it, and has one unsubscribe link', (t) => {
  const own = fill(compile('[Bye]({{unsubscribeUrl}})', { kind: 'marketing' }))
  t.regex(own.html, /class="pl-foot"[^>]*>Engines &amp; Co<\/td>/)
  t.is(own.html.match(/mail\.test\/u\//g)?.length, 1)
  t.regex(own.text, /\n--\nEngines & Co\n$/)
})

test('a variable for the unsubscribe address in a link of another kind does not count as an unsubscribe link', (t) => {
  t.false(compile('[x](https://x.test/?u={{unsubscribeUrl}})').hasUnsubscribeLink)
})

test('the document is fit for mail programs, phones and dark mode', (t) => {
  const { html } = fill(compile('Hello', { subject: 'Hi <{{name}}>', preview: 'Peek {{name}}' }))
  t.regex(html, /^<!doctype html>\n<html dir="ltr"/)
  t.regex(html, /<meta name="viewport" content="width=device-width, initial-scale=1">/)
  t.regex(html, /<meta name="color-scheme" content="light dark">/)
  t.regex(html, /<title>Hi &lt;Ada&gt;<\/title>/)
  t.regex(html, /<div style="display:none[^"]*">Peek Ada(?:&#847;&zwnj;&nbsp;)+<\/div>/)
  t.regex(html, /max-width:600px/)
  t.regex(html, /<!--\[if mso\]><table role="presentation" width="600"/)
  t.notRegex(html, /<(?:script|link|iframe|form)|@import|url\(/)
  t.false(fill(compile('x')).html.includes('display:none'))
})

test('an email declares no language, except for the English word of our own unsubscribe link', (t) => {
  const { html } = fill(compile('Bonjour', { subject: 'Bonjour' }))
  t.deepEqual(html.match(/<[^>]* lang=[^>]*>[^<]*/g), ['<span lang="en">Unsubscribe'])
})

test('subject and preview are one line, whatever stands in them or in their values', (t) => {
  const compiled = compile('x', { subject: 'Hi\r\nBcc: {{name}}', preview: 'a\0b {{name}}' })
  const filled = fill(compiled, { variables: { name: 'A\r\nBcc: evil@x.test\0\u2028\u202Eb\u0085' } })
  t.is(filled.subject, 'Hi Bcc: A Bcc: evil@x.test b')
  t.is(filled.preheader, 'a b A Bcc: evil@x.test b')
})

test('the text part keeps each value on its line', (t) => {
  const { text } = fill(compile('> {{name}}\n\n- {{name}}'), { variables: { name: 'a\n\nb\r\n--\nc' } })
  t.true(text.startsWith('> a b -- c\n\n- a b -- c\n'))
})

test('unknown variables without a fallback are warnings when the known ones are given', (t) => {
  const source = "{{name}} {{city}} {{ctiy}} {{Org_Name}} {{x | 'f'}}"
  const compiled = compile(source, { knownVariables: ['city'], subject: '{{other}}' })
  t.deepEqual(
    compiled.references.slice(0, 6).map(({ name }) => name),
    ['other', 'name', 'city', 'ctiy', 'Org_Name', 'x'],
  )
  t.deepEqual(
    compiled.warnings.map((warning) => warning.message.slice(0, 40)),
    [
      '{{other}} is not known and will be empty',
      '{{ctiy}} is not known and will be empty;',
      '{{Org_Name}} is not known and will be em',
    ],
  )
  t.regex(compiled.warnings[2]?.message ?? '', /did you mean \{\{org-name\}\}\?/)
  t.deepEqual(compile(source).warnings, [])
})

test('a message that Gmail would cut off is a warning: its bytes count, and the addresses of its links', (t) => {
  const codes = (source: string): string[] => compile(source).warnings.map(({ code }) => code)
  t.deepEqual(codes('word '.repeat(25_000)), ['LARGE'])
  t.deepEqual(codes('語 '.repeat(20_000)), [])
  t.deepEqual(codes('語 '.repeat(30_000)), ['LARGE'])
  t.deepEqual(codes('[a](https://x.test/a) '.repeat(300)), [])
  t.deepEqual(codes('[a](https://x.test/a) '.repeat(700)), ['LARGE'])
})

test('a compiled email is frozen plain data that survives being cloned', (t) => {
  const compiled = compile('# {{name}}\n\n[a](https://x.test/{{name}})', {
    kind: 'marketing',
    preview: '{{name}}',
  })
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    t.true(Object.isFrozen(value))
    Object.values(value).forEach(walk)
  }
  walk(compiled)
  t.deepEqual(fill(structuredClone(compiled), { tracking: TRACKING }), fill(compiled, { tracking: TRACKING }))
  t.deepEqual(fill(compiled), fill(compiled))
})

test('the built-in variables are those that a document may use', (t) => {
  t.deepEqual(
    BUILT_IN_VARIABLES.map((variable) => variable.name),
    ['name', 'email', 'phone', 'org-name', 'unsubscribeUrl', 'onlineUrl'],
  )
  const source = BUILT_IN_VARIABLES.map(({ name }) => `{{${name}}}`).join(' ')
  t.deepEqual(compile(source, { knownVariables: [] }).warnings, [])
})

function html(source: string, more: Partial<ContentSource> = {}): CompiledEmail {
  return compile(source, { contentType: 'HTML', ...more })
}

test("a user's HTML is kept byte for byte when nothing is filled", (t) => {
  const sources = [
    '<!DOCTYPE html>\n<HTML><Head><style>a>b{}</style></Head><body class=x bgcolor=#fff>\n<p>a &amp; b &copy;<br/></p><img src=cid:1></body></HTML>\n',
    '<a href="#top">x</a><a href=\'mailto:a@b.test\'>y</a><a href="/rel">z</a><a href="javascript:x">w</a>',
    '<p title="a>b" data-x=\'{"a":1}\'>1 < 2 > 1</p><!-- <a href="https://x.test"> --><script>if(a<b)"</p>"</script>',
    'just text',
    '<p unfinished="',
    '',
  ]
  for (const source of sources) t.is(fill(html(source)).html, source)
})

test("a user's HTML gets its variables, links and pixel, and no unsubscribe link", (t) => {
  const source = `<html><body><p title="{{name}}" class={{name}}>Hi {{name | &quot;you &amp; me&quot;}}</p>
<a class="b" HREF='https://x.test/a?b=1&amp;c={{name}}'>go</a> <a href={{site}}>s</a> <a href="{{unsubscribeUrl}}">u</a>
<img src="https://x.test/{{name}}.png" alt="{{name}}"></body></html>`
  const compiled = html(source)
  const variables = { name: 'A "<b>', site: 'https://site.test/?a=1&b=2' }
  const filled = fill(compiled, { variables, tracking: TRACKING })
  t.is(
    filled.html,
    `<html><body><p title="A &quot;&lt;b&gt;" class="A &quot;&lt;b&gt;">Hi A &quot;&lt;b&gt;</p>
<a class="b" HREF="https://mail.test/c/abc0">go</a> <a href="https://mail.test/c/abc1">s</a> <a href="https://mail.test/u/abc">u</a>
<img src="https://x.test/A%20%22%3Cb%3E.png" alt="A &quot;&lt;b&gt;"><img src="https://mail.test/o/abc.gif" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0;overflow:hidden"></body></html>`,
  )
  t.deepEqual(filled.links, ['https://x.test/a?b=1&c=A%20%22%3Cb%3E', 'https://site.test/?a=1&b=2'])
  t.true(compiled.hasUnsubscribeLink)
  t.true(
    fill(html('Hi {{name | &quot;you &amp; me&quot;}}'), { variables: {} }).html.endsWith('Hi you &amp; me'),
  )
  const plain = html('<p>Hi</p>')
  t.false(plain.unsubscribeLinkAdded)
  t.is(fill(plain).html, '<p>Hi</p>')
})

test("in a user's HTML, variables are left out where no value is safe", (t) => {
  const source =
    '<script>var a="{{name}}"</script><p onclick="f(\'{{name}}\')" {{name}} {{name}}="x" style="color:{{color}};background:url({{name}})">x</p><style>p{color:{{color}}}</style><iframe srcdoc="{{name}}"></iframe>'
  const compiled = html(source)
  const variables = { name: "');alert(1)//", color: 'red;}</style><script>' }
  t.is(
    fill(compiled, { variables }).html,
    '<script>var a=""</script><p onclick="f(\'\')"   style="color:;background:url()">x</p><style>p{color:redstylescript}</style><iframe srcdoc=""></iframe>',
  )
  t.true(compiled.warnings.some((warning) => warning.code === 'MISPLACED_VARIABLE'))
  t.is(
    fill(html('<p style="color:{{color}}">'), { variables: { color: '#fff' } }).html,
    '<p style="color:#fff">',
  )
})

test("what Outlook reads in a user's comments is filled and wrapped, other comments cannot be left", (t) => {
  const source =
    '<!--[if mso]><v:roundrect href="https://x.test/b"><p>{{name}}</p><![endif]--><!-- {{name}} -->'
  const filled = fill(html(source), {
    variables: { name: '--><script>' },
    tracking: { clickUrl: TRACKING.clickUrl },
  })
  t.is(
    filled.html,
    '<!--[if mso]><v:roundrect href="https://mail.test/c/abc0"><p>--&gt;&lt;script&gt;</p><![endif]--><!-- --&gt;&lt;script&gt; -->',
  )
})

test("a preview is put at the start of a user's body", (t) => {
  t.regex(
    fill(html('<html><body id="x"><p>a</p>', { preview: 'P' })).html,
    /<body id="x"><div style="display:none[^>]*>P/,
  )
  t.regex(fill(html('<p>a</p>', { preview: 'P' })).html, /^<div style="display:none[^>]*>P/)
  t.regex(
    fill(html('<head><title>t</title></head>x', { preview: 'P' })).html,
    /<\/head><div style="display:none/,
  )
  t.regex(
    fill(html('<!doctype html>\n<html><!-- x --><title>t</title><p>a</p></html>', { preview: 'P' })).html,
    /^<!doctype html>\n<html><!-- x --><title>t<\/title><div style="display:none[^>]*>P/,
  )
  t.regex(fill(html('<!doctype html>', { preview: 'P' })).html, /^<!doctype html><div style="display:none/)
})

test("the text part is derived from a user's HTML", (t) => {
  const source = `<html><head><title>No</title><style>p{}</style></head><body>
<div style="display:none;max-height:0">Hidden <div>too</div></div>
<h1>Receipt</h1>
<p>Dear {{name}},<br>see <a href="https://x.test/1"><b>your order</b></a> &mdash; or&nbsp;call.</p>
<ul><li>One</li><li>Two <ol><li>Inner</ol></ul>
<blockquote><p>Quote</p></blockquote>
<table><tr><th>Item</th><th>Price</th></tr><tr><td>Loom</td><td>5&nbsp;&euro;</td></tr></table>
<hr><a href="https://x.test/2"><img src="https://x.test/i.png" alt="Logo"></a>
<a href="mailto:help@x.test">help@x.test</a>
</body></html>`
  t.is(
    fill(html(source)).text,
    `Receipt
=======

Dear Ada,
see your order (https://x.test/1) — or\u00A0call.

- One
- Two
  1. Inner

> Quote

Item Price
Loom 5\u00A0€

------------------------

[Logo] (https://x.test/2) help@x.test
`,
  )
})

test("the text part holds what readers see of a user's HTML", (t) => {
  const sources: Readonly<Record<string, string>> = {
    '<div>a<embed hidden>b</div>': 'ab',
    '<div style="max-height:0;overflow:hidden">no</div><p style="opacity:0.0">no<p>yes': 'yes',
    '<p hidden>no<p>yes': 'yes',
    '<p hidden>no<div>yes</div>': 'yes',
    '<div><p hidden>no</div>yes': 'yes',
    '<ul><li>One<li hidden>No<li>Two</ul>': '- One\n- Two',
    '<ul><li>One<li hidden>No</ul>yes': '- One\n\nyes',
    '<table><tr><td>a<td hidden>no<td>b<tr hidden><td>no</table>yes': 'ab\n\nyes',
    '<div hidden><div>no</div></p></span>no</div>yes': 'yes',
    '<head><title>No</title><body>yes': 'yes',
    'a<img src="https://x.test/i.png" alt="no" style="display:none">b': 'ab',
    'a<img src="https://x.test/i.png" alt="no" hidden>b': 'ab',
    '<p style="visibility:hidden">no</p>yes': 'yes',
    '<p style="display&colon; none">no</p>yes': 'yes',
    '<p style="font-size:0">no</p>yes': 'yes',
    '<p style="display:none;display:block">yes</p>': 'yes',
    '<p style="background:url(display:none)">yes</p>': 'yes',
    '<div style="font-size:0"><b style="font-size:16px">a</b> <b style="font-size:16px">b</b></div>': 'a b',
    '<div style="font-size:0"><img src="https://x.test/i.png" alt="yes"></div>': '[yes]',
  }
  for (const [source, seen] of Object.entries(sources)) t.is(fill(html(source)).text, `${seen}\n`, source)
})

test("the address of a link around blocks of a user's HTML stands apart from its words", (t) => {
  const sources: Readonly<Record<string, string>> = {
    '<td> <a href="https://x.test/"><h2>Title</h2>Read on</a></td>':
      'Title\n-----\n\nRead on (https://x.test/)',
    'Hi <a href="https://x.test/"><p>One</p></a>': 'Hi\n\nOne\n\nhttps://x.test/',
    'Hi <a href="https://x.test/"><p>One</p><p>x.test</p></a>': 'Hi\n\nOne\n\nx.test\n\nhttps://x.test/',
    'Look<a href="https://x.test/"><img src="https://x.test/i.png" alt=""></a>here':
      'Look https://x.test/ here',
  }
  for (const [source, seen] of Object.entries(sources)) t.is(fill(html(source)).text, `${seen}\n`, source)
})

test("character references of a user's HTML are read as browsers read them", (t) => {
  const source =
    '<p>1&#150;2 &#128;5 &#0000038;&#x26 &copy 2026 &notit; &hearts; &amp;lt; &#xD800;&#1;&unknown;</p>'
  t.is(fill(html(source)).text, '1–2 €5 && © 2026 ¬it; ♥ &lt; \uFFFD\uFFFD&unknown;\n')
  const link = fill(html('<a href="https&colon;//x.test/?a=1&copy=2&lt=3&amp;b=&#52">x</a>'))
  t.deepEqual(link.links, ['https://x.test/?a=1&copy=2&lt=3&b=4'])
})

test('in Markdown, a character reference ends with a semicolon', (t) => {
  t.is(show('&copy; &hearts; &copy &#38 x'), '<p>© ♥ &amp;copy &amp;#38 x</p>')
  t.deepEqual(fill(compile('[x](https://x.test/?a&copy)')).links, ['https://x.test/?a&copy'])
})

test('an image whose alternative text is an empty variable leaves nothing in the text part', (t) => {
  const image = { url: 'https://x.test/i.png', alt: '{{name}}' }
  const compiled = [
    compile('a ![{{name}}](https://x.test/i.png) b'),
    html('a <img src="https://x.test/i.png" alt=" {{name}} "> b'),
    compileContent({
      contentType: 'PLATE',
      source: [
        { type: 'p', children: [{ text: 'a ' }, { type: 'img', ...image, children: [] }, { text: ' b' }] },
      ],
      subject: 'Hello',
      kind: 'transactional',
    }),
  ]
  for (const email of compiled) {
    t.regex(fill(email).text, /^a \[Ada\] b\n/)
    t.regex(fill(email, { variables: {} }).text, /^a {2}b\n/)
  }
  const block = (alt: string) =>
    compileContent({
      contentType: 'MAILY',
      source: {
        type: 'doc',
        content: [{ type: 'image', attrs: { src: image.url, alt } }],
      },
      subject: 'Hello',
      kind: 'transactional',
    })
  t.true(fill(block(image.alt)).text.startsWith('[Ada]\n'))
  t.false(fill(block(image.alt), { variables: {} }).text.includes('['))
  const several = block('{{name}} {{city}}')
  t.true(fill(several, { variables: { name: 'Ada', city: 'Paris' } }).text.startsWith('[Ada] [Paris]\n'))
  t.false(fill(several, { variables: {} }).text.includes('['))
})

const PAGES: Readonly<Record<string, string>> = {
  unsubscribe: pages.unsubscribePage({
    organization: 'A & <b>',
    email: 'a•••@x.test',
    state: 'ask',
    actionUrl: '/u/"x',
  }),
  unsubscribed: pages.unsubscribePage({ organization: 'A & <b>', state: 'done' }),
  lost: pages.lostLinkPage(),
  sample: pages.sampleLinkPage(),
}

test('pages for people stand alone, are for phones and dark rooms, and are not indexed', (t) => {
  for (const page of Object.values(PAGES)) {
    t.regex(page, /^<!doctype html>\n<html lang="en">/)
    t.regex(page, /name="viewport" content="width=device-width/)
    t.regex(page, /name="robots" content="noindex/)
    t.regex(page, /prefers-color-scheme:dark/)
    t.is(page.match(/<h1>/g)?.length, 1)
    t.regex(page, /<title>[^<]+<\/title>/)
    t.notRegex(page, /(?:src|href)=|@import|url\(|<script/)
    t.notRegex(page, /<b>|<i>|undefined|\u202E/)
  }
})

test('pages ask with a form that posts, and say when it is done', (t) => {
  t.regex(
    PAGES['unsubscribe'] ?? '',
    /<form method="post" action="\/u\/&quot;x"><button type="submit">Unsubscribe</,
  )
  for (const name of ['unsubscribed', 'lost']) t.notRegex(PAGES[name] ?? '', /<form/)
})

test("the pages' security policy allows their own style sheet and nothing else", (t) => {
  for (const page of Object.values(PAGES)) {
    const style = /<style>([^]*)<\/style>/.exec(page)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    t.true(PAGE_SECURITY_POLICY.includes(`style-src 'sha256-${hash}'`))
    t.notRegex(page, / style="/)
  }
  t.regex(PAGE_SECURITY_POLICY, /^default-src 'none'; .*frame-ancestors 'none'$/)
})

test('an address is masked for those who only hold a link', (t) => {
  t.is(pages.maskEmail('ada@example.com'), 'a•••@example.com')
  t.is(pages.maskEmail('😀x@example.com'), '😀•••@example.com')
  t.is(pages.maskEmail('nothing'), '•••')
})
