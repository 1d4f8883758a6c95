import test from 'ava'

import { type CompiledEmail, compileContent, type ContentSource } from '../src/content/compile.ts'
import { fillContent, type FilledEmail, type FillInput } from '../src/content/fill.ts'
import { carrySnippets, type SnippetSources } from '../src/content/maily/snippets.ts'
import { cardOf, textOf } from './helpers/card.ts'
import { lintEmail } from './helpers/email-lint.ts'
import { golden } from './helpers/golden.ts'

type Json = Record<string, unknown>

const URLS = { unsubscribe: 'https://mail.test/u/abc', online: 'https://mail.test/v/abc' }
const ADA = { name: 'Ada <b>', city: 'Paris', 'org-name': 'Engines & Co' }
const PICTURE = 'https://img.test/a.png'

const node = (type: string, attrs: Json = {}, ...content: Json[]): Json => ({
  type,
  ...(Object.keys(attrs).length > 0 && { attrs }),
  ...(content.length > 0 && { content }),
})
const text = (words: string, ...marks: Json[]): Json => ({
  type: 'text',
  text: words,
  ...(marks.length > 0 && { marks }),
})
const mark = (type: string, attrs: Json = {}): Json => ({
  type,
  ...(Object.keys(attrs).length > 0 && { attrs }),
})
const paragraph = (words: string, attrs: Json = {}): Json => node('paragraph', attrs, text(words))
const item = (...content: Json[]): Json => node('listItem', {}, ...content)
const doc = (...content: unknown[]): Json => ({ type: 'doc', content })
const link = (href: string, more: Json = {}): Json => mark('link', { href, ...more })

function compile(
  document: unknown,
  { snippets = new Map(), ...more }: Partial<ContentSource> & { snippets?: SnippetSources } = {},
): CompiledEmail {
  const source =
    typeof document === 'object' && document !== null ? carrySnippets(document, snippets) : document
  return compileContent({ contentType: 'MAILY', source, subject: 'Hello', kind: 'transactional', ...more })
}

function fill(compiled: CompiledEmail, more: Partial<FillInput> = {}): FilledEmail {
  return fillContent(compiled, { variables: ADA, urls: URLS, ...more })
}

function codes(compiled: CompiledEmail): string[] {
  return compiled.warnings.map(({ code }) => code)
}

const NODES: Record<string, Json[]> = {
  paragraph: [
    paragraph('Plain.'),
    paragraph('Centred.', { textAlign: 'center' }),
    paragraph('من اليمين', { textDirection: 'rtl' }),
    paragraph('في الوسط', { textDirection: 'rtl', textAlign: 'center' }),
    node('paragraph'),
    paragraph('After an empty line.'),
  ],
  heading: [
    node('heading', { level: 1 }, text('One')),
    node('heading', { level: 2, textAlign: 'right' }, text('Two')),
    node('heading', { level: 3 }, text('Three')),
    node('heading', {}, text('Without a level')),
  ],
  bulletList: [
    node(
      'bulletList',
      {},
      item(paragraph('First')),
      item(paragraph('Second'), node('bulletList', {}, item(paragraph('Inner')))),
      item(paragraph('Third'), paragraph('with two paragraphs')),
    ),
    paragraph('After.'),
  ],
  orderedList: [
    node('orderedList', { start: 3 }, item(paragraph('Three')), item(paragraph('Four'))),
    node('orderedList', {}, item(paragraph('One'), node('orderedList', {}, item(paragraph('Inner'))))),
  ],
  blockquote: [node('blockquote', {}, paragraph('Quoted.'), paragraph('Twice.')), paragraph('After.')],
  rtl: [
    node('blockquote', { dir: 'rtl' }, paragraph('اقتباس', { dir: 'rtl' })),
    node('bulletList', { dir: 'rtl' }, item(paragraph('أول')), item(paragraph('ثان'))),
    paragraph('من دون'),
    node('bulletList', {}, item(paragraph('قائمة')), item(paragraph('Latin'))),
    node('blockquote', {}, paragraph('Said so', { dir: 'rtl' })),
    paragraph('شمال', { dir: 'ltr' }),
  ],
  horizontalRule: [paragraph('Above'), node('horizontalRule'), paragraph('Below')],
  spacer: [
    paragraph('Above'),
    node('spacer', { height: 40 }),
    paragraph('Below'),
    node('spacer'),
    node('spacer', { height: 'lg' }),
  ],
  button: [
    node('button', { text: 'Defaults', url: 'https://x.test/1' }),
    node('button', {
      text: 'Hi {{name}}',
      url: 'https://x.test/{{name}}',
      variant: 'outline',
      borderRadius: 'round',
      buttonColor: 'rgb(29, 78, 216)',
      alignment: 'right',
    }),
    node('button', {
      text: 'Sharp',
      url: 'https://x.test/3',
      borderRadius: 'sharp',
      buttonColor: '#fde047',
      textColor: '#111',
      alignment: 'center',
    }),
    node('button', { text: 'city', isTextVariable: true, url: 'https://site', isUrlVariable: true }),
  ],
  'button-2': [
    node(
      'button',
      {
        url: 'https://x.test/1',
        kind: 'full-width',
        backgroundColor: '#0f766e',
        color: '#ffffff',
        paddingTop: 14,
        paddingBottom: 14,
        borderTopWidth: 0,
        borderTopLeftRadius: 12,
      },
      text('Wide for '),
      node('variable', { id: 'name' }),
    ),
  ],
  image: [
    node('image', { src: PICTURE, alt: 'A picture', title: 'Title', width: 300, height: 150 }),
    node('image', {
      src: PICTURE,
      alt: 'Too wide',
      width: '1200',
      height: '600',
      alignment: 'left',
      externalLink: 'https://x.test/i',
      borderRadius: 8,
    }),
    node('image', { src: PICTURE }),
    node('image', { src: 'picture', isSrcVariable: true, alt: '', width: '50%', alignment: 'right' }),
  ],
  logo: [
    node('logo', { src: PICTURE, alt: 'Engines' }),
    node('logo', { src: PICTURE, size: 'lg', alignment: 'center' }),
  ],
  section: [
    node('section', {}, paragraph('Defaults, with a '), paragraph('second.')),
    node(
      'section',
      {
        backgroundColor: '#0f172a',
        borderWidth: 0,
        borderRadius: 8,
        align: 'center',
        paddingTop: 16,
        paddingRight: 24,
        paddingBottom: 16,
        paddingLeft: 24,
        marginTop: 8,
        marginBottom: 8,
      },
      node('heading', { level: 2 }, text('On dark')),
      node('paragraph', {}, text('with a '), text('link', link('https://x.test/1'))),
    ),
    node(
      'section',
      { backgroundColor: 'transparent', borderWidth: 1, borderColor: '#abc' },
      paragraph('None'),
    ),
  ],
  columns: [
    node('columns', {}, node('column', {}, paragraph('Left')), node('column', {}, paragraph('Right'))),
    node(
      'columns',
      { gap: 20 },
      node('column', { width: 25, verticalAlign: 'middle' }, paragraph('Quarter')),
      node('column', { width: 'auto' }, node('image', { src: PICTURE, alt: 'Fits', width: 900 })),
      node('column', { width: '30', verticalAlign: 'bottom' }, paragraph('Third')),
    ),
  ],
  repeat: [
    node(
      'repeat',
      { each: 'items' },
      node(
        'paragraph',
        {},
        node('variable', { id: 'title' }),
        text(' for {{name}}: '),
        text('see', link('{{url}}')),
      ),
    ),
  ],
  footer: [paragraph('Content'), node('footer', { textAlign: 'center' }, text('Engines, 1 Loom Street'))],
  linkCard: [
    node('linkCard', {
      title: 'Looms',
      description: 'All about them.',
      link: 'https://x.test/looms',
      linkTitle: 'Read',
      image: PICTURE,
      badgeText: 'New',
    }),
    node('linkCard', { title: 'Small', subTitle: '2 min', link: 'https://x.test/2' }),
  ],
  htmlCodeBlock: [
    node(
      'htmlCodeBlock',
      {},
      text(
        '<style>p{}</style><table role="presentation"><tr><td onclick="x()" style="color:#333333">Own <b>HTML</b> for {{name}}</td></tr></table><a href="https://x.test/1">link</a></td></tr><script>alert(1)</script><p>open',
      ),
    ),
    paragraph('After.'),
  ],
  snippet: [node('snippet', { snippetId: 'snp_1' }), node('snippet', { snippetId: 'snp_2' })],
  variable: [
    node(
      'paragraph',
      {},
      text('Hi '),
      { ...node('variable', { id: 'name', fallback: 'you' }), marks: [mark('bold')] },
      text(', '),
      node('variable', { id: 'gone', fallback: 'friend <i>' }),
      text(" in {{city | 'town'}} and {{gone | 'x'}}"),
    ),
  ],
  hardBreak: [node('paragraph', {}, text('One'), node('hardBreak'), text('Two\nThree'))],
  inlineImage: [
    node(
      'paragraph',
      {},
      text('Look '),
      node('inlineImage', { src: PICTURE, alt: 'star' }),
      text(' and '),
      node('inlineImage', { src: PICTURE, alt: '', width: 32, height: 16, externalLink: 'https://x.test/s' }),
    ),
  ],
  showIf: [
    paragraph('For those in a city.', { showIfKey: 'city' }),
    paragraph('For members.', { showIfKey: 'member' }),
    paragraph('Not for Paris.', {
      visibilityRule: { action: 'hide', variable: 'city', operator: 'equals', value: 'Paris' },
    }),
    paragraph('For everybody.'),
  ],
}

const MARKS: Record<string, Json[]> = {
  bold: [mark('bold')],
  italic: [mark('italic')],
  underline: [mark('underline')],
  strike: [mark('strike')],
  code: [mark('code')],
  subscript: [mark('subscript')],
  superscript: [mark('superscript')],
  highlight: [mark('highlight', { color: '#fde68a' })],
  textStyle: [mark('textStyle', { color: '#b91c1c' })],
  'textStyle-more': [mark('textStyle', { backgroundColor: '#1e3a8a', fontSize: '20px' })],
  link: [link('https://x.test/{{city}}?q={{name}}')],
  'link-variable': [link('https://unsubscribeUrl', { isUrlVariable: true })],
  all: [
    mark('bold'),
    mark('italic'),
    mark('underline'),
    mark('strike'),
    mark('code'),
    mark('textStyle', { color: 'hsl(210, 100%, 30%)' }),
    link('https://x.test/'),
  ],
}

const SNIPPETS: SnippetSources = new Map([
  [
    'snp_1',
    {
      name: 'Sign-off',
      contentType: 'MAILY',
      content: doc(paragraph('Best, {{name}}'), node('snippet', { snippetId: 'snp_3' })),
      isArchived: false,
    },
  ],
  [
    'snp_2',
    { name: 'Legal', contentType: 'MARKDOWN', content: 'In *Markdown* for {{name}}', isArchived: true },
  ],
  ['snp_3', { name: 'Inner', contentType: 'MAILY', content: doc(paragraph('Inside.')), isArchived: false }],
])

const CASES: Record<string, Json[]> = {
  ...NODES,
  ...Object.fromEntries(
    Object.entries(MARKS).map(([name, marks]) => [
      `mark-${name}`,
      [node('paragraph', {}, text('Some '), text('marked & {{name}}', ...marks), text(' text'))],
    ]),
  ),
}

for (const [name, content] of Object.entries(CASES)) {
  test(`${name} looks as it should`, (t) => {
    const filled = fill(compile(doc(...content), { snippets: SNIPPETS }), {
      variables: {
        ...ADA,
        site: 'https://x.test/site',
        picture: PICTURE,
        items: [
          { title: 'One', url: 'https://x.test/one' },
          { title: 'Two', url: 'https://x.test/two', name: 'Grace' },
        ],
      },
    })
    t.is(`${cardOf(filled)}\n`, golden(`maily/${name}.html`, `${cardOf(filled)}\n`))
    t.is(textOf(filled), golden(`maily/${name}.txt`, textOf(filled)))
    t.deepEqual(lintEmail(filled.html), [])
  })
}

test('an image in the text of a narrow column is no wider than it', (t) => {
  const icon = node('paragraph', {}, node('inlineImage', { src: PICTURE, alt: '', width: 200, height: 100 }))
  const tag = (document: unknown) => /<img [^>]*>/.exec(fill(compile(document)).html)?.[0]
  t.regex(tag(doc(icon)) ?? '', / width="200" height="100" style="display:inline;width:200px;height:100px;/)
  const narrow = node('columns', {}, node('column', { width: 25 }, icon), node('column', {}, paragraph('x')))
  t.regex(
    tag(doc(narrow)) ?? '',
    / width="131" style="display:inline;width:100%;max-width:200px;height:auto;/,
  )
})

test('the shape that Outlook draws for a button has room for its text', (t) => {
  const shape = (label: string, ...around: string[]) => {
    const button = node('button', { text: label, url: 'https://x.test/' })
    const columns = around.map((words) => node('column', {}, paragraph(words)))
    const whole = columns.length === 0 ? button : node('columns', {}, node('column', {}, button), ...columns)
    const [, height, width] =
      /<v:roundrect[^>]* style="height:(\d+)px;width:(\d+)px/.exec(fill(compile(doc(whole))).html) ?? []
    return { height: Number(height), width: Number(width) }
  }
  t.deepEqual(shape('See the collection'), { height: 44, width: 18 * 9 + 64 })
  t.deepEqual(shape('立即购买春季新品'), { height: 44, width: 8 * 18 + 64 }, 'letters as wide as high')
  const narrow = shape('See everything that is new in the collection', 'beside', 'it')
  t.deepEqual(narrow, { height: 84, width: 172 }, 'three lines')
})

test('an image in HTML of the author is no wider than the email', (t) => {
  const { html } = fill(compile(doc(node('htmlCodeBlock', {}, text(`<img src="${PICTURE}" width="1200">`)))))
  t.regex(html, /<td class="pl-own"[^>]*>\n<img src="https:\/\/img\.test\/a\.png" width="1200">/)
  t.regex(html, /\.pl-own img\{max-width:100%/)
})

test('sides that leave no room on a phone shrink there', (t) => {
  const section = (attrs: Json) => fill(compile(doc(node('section', attrs, paragraph('x'))))).html
  t.notRegex(section({ paddingLeft: 24, paddingRight: 24 }), /class="[^"]*pl-slim/)
  t.regex(
    section({ paddingLeft: 150, paddingRight: 150 }),
    /<td align="left" class="pl-panel pl-slim"[^>]*padding:0 150px/,
  )
  t.regex(section({ marginRight: 150 }), /<td class="pl-slim" style="padding:0 150px 0 0">/)
  t.regex(section({}), /@media \(max-width:597px\)\{[^]*\.pl-slim\{padding-right:12px!important/)
})

test('every condition is judged by the value that a person has', (t) => {
  const shows = (rule: Json, variables: Json): boolean => {
    const source = doc(paragraph('inside', { visibilityRule: { action: 'show', value: '', ...rule } }))
    const filled = fill(compile(source), { variables })
    const inHtml = filled.html.includes('inside')
    t.is(filled.text.includes('inside'), inHtml)
    return inHtml
  }
  const judge = (operator: string, value: string, ...values: unknown[]): boolean[] =>
    values.map((x) => shows({ variable: 'x', operator, value }, { x }))
  t.deepEqual(judge('is_true', '', true, 'yes', 1, false, 'false', 0, '', ' ', null, undefined), [
    true,
    true,
    true,
    ...Array.from({ length: 7 }, () => false),
  ])
  t.deepEqual(judge('is_false', '', true, false, ''), [false, true, true])
  t.deepEqual(judge('equals', 'a', 'a', 'A', ''), [true, false, false])
  t.deepEqual(judge('not_equals', 'a', 'a', 'b', undefined), [false, true, true])
  t.deepEqual(judge('contains', 'am', 'Hamburg', 'Paris', null), [true, false, false])
  t.deepEqual(judge('not_contains', 'am', 'Hamburg', 'Paris', null), [false, true, true])
  t.deepEqual(judge('starts_with', 'P', 'Paris', 'Lyon'), [true, false])
  t.deepEqual(judge('ends_with', 's', 'Paris', 'Lyon'), [true, false])
  t.deepEqual(judge('greater_than', '10', 11, '9', 10, '', 'x'), [true, false, false, false, false])
  t.deepEqual(judge('less_than', '10', 9, 11, '', undefined), [true, false, false, false])
  t.deepEqual(judge('greater_than', '2026-01-01', '2026-03-01', '2025-12-31', ''), [true, false, false])
  const times = ['2026-03-01T09:30:00.000Z', '2026-03-01T14:30:00.000Z']
  t.deepEqual(judge('less_than', '2026-03-01T12:00:00Z', ...times), [true, false])
  t.deepEqual(judge('equals', '2026-03-01T14:30:00.000Z', ...times), [false, true])
  t.true(shows({ variable: 'x', operator: 'equals', value: true }, { x: true }))
  t.false(shows({ variable: 'x', operator: 'equals', value: false }, { x: true }))
  t.true(shows({ action: 'none', variable: 'x', operator: 'is_true' }, {}))
  t.true(shows({ variable: '{{x|Label|true|false}}', operator: 'is_true' }, { x: true }))
  t.false(shows({ variable: 'constructor', operator: 'is_true' }, {}))
})

test('a condition that says nothing hides nothing, and is a warning', (t) => {
  const source = doc(
    paragraph('a', { showIfKey: 'not a name' }),
    paragraph('b', { visibilityRule: { action: 'show', variable: '', operator: 'is_true' } }),
    paragraph('c', { visibilityRule: { action: 'hide', variable: 'x', operator: 'resembles' } }),
  )
  const compiled = compile(source)
  t.deepEqual(codes(compiled), ['INVALID_CONDITION', 'INVALID_CONDITION', 'INVALID_CONDITION'])
  t.is(textOf(fill(compiled)), 'a\n\nb\n\nc\n')
})

test('what is hidden leaves no gap, and every link keeps its position', (t) => {
  const to = (words: string, href: string, attrs: Json = {}) =>
    node('paragraph', attrs, text(words, link(href)))
  const source = doc(
    to('first', 'https://x.test/0', { showIfKey: 'never' }),
    node(
      'section',
      { showIfKey: 'city' },
      to('second', 'https://x.test/1'),
      to('third', 'https://x.test/2', { showIfKey: 'never' }),
    ),
    to('fourth', 'https://x.test/3'),
    paragraph('fifth', { showIfKey: 'never' }),
  )
  const clickUrl = (position: number) => `https://mail.test/c/${position}`
  const compiled = compile(source)
  const filled = fill(compiled, { tracking: { clickUrl } })
  t.is(textOf(filled), 'second: https://mail.test/c/1\n\nfourth: https://mail.test/c/3\n')
  t.is(filled.links[3], 'https://x.test/3')
  t.true(filled.html.includes('https://mail.test/c/3') && !filled.html.includes('https://mail.test/c/2"'))
  t.deepEqual(lintEmail(filled.html), [])
  const all = fill(compiled, { showAll: true })
  for (const word of ['first', 'second', 'third', 'fourth', 'fifth']) t.true(all.text.includes(word))
})

test('items that may be hidden have no numbers in the text part, or the others would have wrong ones', (t) => {
  const vip = { ...item(paragraph('For some')), attrs: { showIfKey: 'vip' } }
  const list = doc(
    node('orderedList', {}, vip, item(paragraph('For all'))),
    node('orderedList', {}, item(paragraph('One'))),
  )
  t.is(textOf(fill(compile(list))), '- For all\n\n1. One\n')
  t.is(textOf(fill(compile(list), { variables: { ...ADA, vip: true } })), '- For some\n- For all\n\n1. One\n')
})

test('each item of a list has its own links, the same in both parts', (t) => {
  const source = doc(
    node('paragraph', {}, text('before', link('https://x.test/before'))),
    node('repeat', { each: 'orders' }, node('paragraph', {}, text('{{id}}', link('https://x.test/{{id}}'))), {
      ...node('for', { each: 'lines' }, paragraph('{{value}} of {{id}} by {{name}}', { showIfKey: 'value' })),
    }),
    node('paragraph', {}, text('after', link('https://x.test/after'))),
  )
  const clickUrl = (position: number) => `https://mail.test/c/${position}`
  const compiled = compile(source)
  const filled = fill(compiled, {
    variables: {
      name: 'Ada',
      orders: [
        { id: 1, lines: ['x', false, 'y'] },
        { id: 2, unsubscribeUrl: 'evil' },
      ],
    },
    tracking: { clickUrl },
  })
  t.deepEqual(filled.links, [
    'https://x.test/before',
    'https://x.test/after',
    'https://x.test/1',
    'https://x.test/2',
  ])
  t.is(
    textOf(filled),
    'before: https://mail.test/c/0\n\n1: https://mail.test/c/2\n\nx of 1 by Ada\n\ny of 1 by Ada\n\n2: https://mail.test/c/3\n\nafter: https://mail.test/c/1\n',
  )
  for (const position of [0, 1, 2, 3]) t.true(filled.html.includes(`href="${clickUrl(position)}"`))
  t.false(fill(compiled, { variables: { orders: 'none' } }).text.includes('of'))
  t.regex(fill(compiled, { showAll: true }).text, / of {2}by Ada/)
})

test('an email to subscribers says that a list shows nothing to them', (t) => {
  const source = doc(
    node('repeat', { each: 'items' }, paragraph('{{title}} {{ctiy}}')),
    paragraph('{{ctiy}}'),
  )
  t.deepEqual(codes(compile(source, { knownVariables: ['city'] })), ['EMPTY_REPEAT', 'UNKNOWN_VARIABLE'])
})

test('variables of conditions and attributes are among the references', (t) => {
  const source = doc(
    paragraph('x', { showIfKey: 'vip' }),
    node('button', { text: '{{label}}', url: 'site', isUrlVariable: true }),
    node('image', { src: PICTURE, alt: '{{alt}}' }),
  )
  const names = compile(source).references.map(({ name }) => name)
  t.deepEqual(names.slice(0, 4), ['vip', 'label', 'site', 'alt'])
})

test('an unsubscribe link counts where everybody sees it', (t) => {
  const has = (...content: Json[]): boolean =>
    compile(doc(...content), { snippets: FOOTED }).hasUnsubscribeLink
  t.false(has(paragraph('x')))
  t.true(has(node('footer', {}, text('x'))))
  t.true(has(node('paragraph', {}, text('Bye', link('{{unsubscribeUrl}}')))))
  t.true(has(node('paragraph', {}, text('Bye', link('unsubscribeUrl', { isUrlVariable: true })))))
  t.true(has(node('button', { text: 'Bye', url: '{{unsubscribeUrl}}' })))
  t.true(has(node('snippet', { snippetId: 'snp_1' })))
  const conditional = compile(
    doc({ ...paragraph('', { showIfKey: 'vip' }), content: [text('Bye', link('{{unsubscribeUrl}}'))] }),
  )
  t.false(conditional.hasUnsubscribeLink)
  t.false(has(node('paragraph', {}, text('Bye '), text(' ', link('{{unsubscribeUrl}}')))))
  const lost = { src: 'data:image/png;base64,x', externalLink: '{{unsubscribeUrl}}' }
  t.false(has(node('image', lost)))
  t.false(has(node('paragraph', {}, node('inlineImage', lost))))
  t.true(has(node('image', { ...lost, alt: 'Bye' })))
  t.true(has(node('image', { ...lost, src: PICTURE })))
  t.true(conditional.unsubscribeLinkAdded)
  t.deepEqual(codes(conditional), ['HIDDEN_UNSUBSCRIBE_LINK'])
  const footer = fill(compile(doc(node('footer', {}, text('Bye', link('{{unsubscribeUrl}}'))))))
  t.is(footer.html.match(/mail\.test\/u\//g)?.length, 1)
})

test('a link card is followed by its image, its title or its link, and without them by its description', (t) => {
  const card = (attrs: Json) => {
    const compiled = compile(doc(node('linkCard', { link: '{{unsubscribeUrl}}', ...attrs })))
    const [, inside] =
      /<a [^>]*href="https:\/\/mail\.test\/u\/abc"[^>]*>([^<]*)/.exec(cardOf(fill(compiled))) ?? []
    return { inside, counts: compiled.hasUnsubscribeLink }
  }
  t.deepEqual(card({ title: 'Leave', description: 'for good' }), { inside: 'Leave', counts: true })
  t.deepEqual(card({ description: 'for good', linkTitle: 'Leave' }), { inside: 'Leave', counts: true })
  t.deepEqual(card({ description: 'for good' }), { inside: 'for good', counts: true })
  t.deepEqual(card({ subTitle: 'nothing to follow' }), { inside: '', counts: false })
})

test('an unsubscribe link in HTML counts where something of it is seen', (t) => {
  const has = (html: string): boolean =>
    compile(doc(node('htmlCodeBlock', {}, text(html)))).hasUnsubscribeLink
  const link = (inside = 'Bye', style = '') => `<a href="{{unsubscribeUrl}}" style="${style}">${inside}</a>`
  for (const seen of [
    link(),
    link('<b>Bye</b>'),
    link('<img src="https://x.test/bye.png">'),
    link('<img src="data:image/png;base64,x" alt="Bye">'),
    link('Bye', 'display:inline; font-size:0.8em'),
    `<div style="max-height:0">${link('Bye', 'opacity:0.9')}</div>`,
    `<p style="display:none">x<p>${link()}`,
    `<div style="display:none">x</div>${link()}`,
    `<p style="display:none">x<div>${link()}</div>`,
    `<table><tr><td hidden>x<td>${link()}</table>`,
    ...['link', 'input', 'meta', 'source', 'embed'].map((name) => `<${name} hidden>${link()}`),
    `<div style="visibility:hidden">${link('Bye', 'visibility:visible')}</div>`,
    `<table><tr><td style="font-size:0">${link('Bye', 'font-size:13px')}</td></tr></table>`,
    `<div style="font-size:0">${link('Bye', 'font:13px Arial')}</div>`,
    `<div style="font-size:0">${link('<img src="https://x.test/bye.png">')}</div>`,
  ]) {
    t.true(has(seen), seen)
  }
  for (const unseen of [
    link(''),
    link(' &nbsp;<b></b>'),
    link('Bye', 'DISPLAY : None !important'),
    link('Bye', 'color:red;visibility:hidden'),
    link('Bye', 'font-size:0px'),
    `<div style="opacity:0">${link('Bye', 'opacity:1')}</div>`,
    `<div style="max-height:0px; overflow:hidden">${link()}</div>`,
    link('<span style="display:none">Bye</span>'),
    `<div style="display:none"><p style="display:block">${link()}</p></div>`,
    `<div style="font-size:0">${link('Bye', 'font-size:1em')}</div>`,
    `<div hidden>${link()}</div>`,
    link('<img src="data:image/png;base64,x">'),
    link('<img src="data:image/png;base64,x" alt="">'),
    `<div style="visibility:hidden">${link('<img src="https://x.test/bye.png">')}</div>`,
  ]) {
    t.false(has(unseen), unseen)
  }
  const told = compile(doc(node('htmlCodeBlock', {}, text(link('')))))
  t.deepEqual(
    told.warnings.map(({ code }) => code),
    ['HIDDEN_UNSUBSCRIBE_LINK'],
  )
})

test('HTML of the author keeps the words for readers, and gets no empty paragraphs', (t) => {
  const shown = (html: string) => {
    const compiled = compile(doc(node('htmlCodeBlock', {}, text(html))))
    const [, inside] = /<td class="pl-own"[^>]*>\n([^]*?)<\/td>/.exec(fill(compiled).html) ?? []
    return { inside, codes: codes(compiled) }
  }
  const picture = '<img src="https://x.test/i.png" alt="Data: our year" title="JavaScript: the good parts">'
  t.deepEqual(shown(picture), { inside: picture, codes: [] })
  t.deepEqual(shown('<img src="data:image/png;base64,x" alt="a">'), {
    inside: '<img  alt="a">',
    codes: ['REMOVED_HTML'],
  })
  t.is(shown('<p>one<p>two').inside, '<p>one</p><p>two</p>')
  t.is(shown('<p>one<div>two</div></p>').inside, '<p>one</p><div>two</div>')
  t.is(shown('<ul><li>one<li>two</ul>').inside, '<ul><li>one</li><li>two</li></ul>')
})

const FOOTED: SnippetSources = new Map([
  [
    'snp_1',
    { name: 'F', contentType: 'MAILY', content: doc(node('footer', {}, text('x'))), isArchived: false },
  ],
])

test('a snippet that is missing, archived or in itself is a warning', (t) => {
  const snippets: SnippetSources = new Map([
    [
      'snp_1',
      {
        name: 'Loop',
        contentType: 'MAILY',
        content: doc(node('snippet', { snippetId: 'snp_1' })),
        isArchived: true,
      },
    ],
  ])
  const source = doc(
    node('snippet', { snippetId: 'snp_1' }),
    node('snippet', { snippetId: 'snp_x' }),
    node('snippet', {}),
    paragraph('kept'),
  )
  const compiled = compile(source, { snippets })
  t.deepEqual(codes(compiled), ['ARCHIVED_SNIPPET', 'TOO_LARGE', 'MISSING_SNIPPET', 'MISSING_SNIPPET'])
  t.is(textOf(fill(compiled)), 'kept\n')
})

test('what leads nowhere is a warning, and unsafe addresses are left out', (t) => {
  const compiled = compile(
    doc(
      node('button', { text: 'Go' }),
      node('image', {}),
      node('logo', {}),
      node('linkCard', { title: 'Card' }),
      node('button', { text: 'Bad', url: 'javascript:alert(1)' }),
    ),
  )
  t.deepEqual(codes(compiled), [...Array.from({ length: 4 }, () => 'MISSING_ADDRESS'), 'UNSAFE_URL'])
  const filled = fill(compiled)
  t.regex(filled.html, /<span[^>]*>Go<\/span>/)
  t.notRegex(filled.html, /javascript/)
  t.deepEqual(lintEmail(filled.html), [])
})

test('a node that is not known shows its content, and is a warning once', (t) => {
  const source = doc(
    node('carousel', {}, paragraph('one'), node('slide', {}, text('two'), paragraph('three'))),
    node('carousel', {}, paragraph('four')),
    node('paragraph', {}, text('five '), node('emoji', {}, text('six')), text(' seven', mark('blink'))),
    text('loose '),
    text('text'),
  )
  const compiled = compile(source)
  t.is(textOf(fill(compiled)), 'one\n\ntwo\n\nthree\n\nfour\n\nfive six seven\n\nloose text\n')
  t.deepEqual(
    compiled.warnings.map(({ message }) => message.split(';')[0]),
    [
      'The node "carousel" is not known',
      'The node "slide" is not known',
      'The node "emoji" is not known in a line of text',
      'The mark "blink" is not known',
    ],
  )
})

test('an image among words is shown, and no wider than a phone', (t) => {
  const image = node('image', { src: PICTURE, alt: 'Shop', width: 900, externalLink: 'https://x.test/' })
  const compiled = compile(doc(node('paragraph', {}, text('See '), image)))
  const filled = fill(compiled)
  t.is(textOf(filled), 'See [Shop] (https://x.test/)\n')
  t.regex(filled.html, /alt="Shop" width="534" style="display:inline;width:100%;max-width:534px;height:auto/)
  t.deepEqual(lintEmail(filled.html), [])
  t.deepEqual(compiled.warnings, [])
})

test('the second edition has defaults of its own', (t) => {
  const source = doc(
    node('image', { src: PICTURE, alt: 'x' }),
    node('button', { url: 'https://x.test/' }, text('Go')),
  )
  const aligned = (content: unknown): string[] =>
    [...fill(compile(content)).html.matchAll(/<td align="(\w+)" style="padding:0 0/g)].map(
      ([, side = '']) => side,
    )
  t.deepEqual(aligned(source), ['center', 'left'])
  t.deepEqual(aligned({ ...source, attrs: { version: 2 } }), ['left', 'center'])
})

test('a snippet keeps the defaults of its own edition, and reads well on what it stands on', (t) => {
  const held = (content: unknown, contentType: 'MAILY' | 'MARKDOWN' = 'MAILY'): SnippetSources =>
    new Map([['snp_1', { name: 'Held', contentType, content, isArchived: false }]])
  const holder = doc(node('snippet', { snippetId: 'snp_1' }))
  const picture = doc(node('image', { src: PICTURE, alt: 'x' }))
  const side = (document: unknown, content: unknown) =>
    /<td align="(\w+)" style="padding:0 0/.exec(
      fill(compile(document, { snippets: held(content) })).html,
    )?.[1]
  t.is(side(holder, picture), 'center')
  t.is(side(holder, { ...picture, attrs: { version: 2 } }), 'left')
  t.is(side({ ...holder, attrs: { version: 2 } }, picture), 'center')

  const markdown = held('See [this](https://x.test).\n\n> Quoted\n\n---\n\nhttps://y.test', 'MARKDOWN')
  const dark = doc(node('section', { backgroundColor: '#0f172a' }, ...(holder['content'] as Json[])))
  t.deepEqual(lintEmail(fill(compile(dark, { snippets: markdown })).html), [])
  t.notRegex(cardOf(fill(compile(dark, { snippets: markdown }))), /pl-(?:link|quote|rule)/)
})

test('a compiled document is frozen plain data that survives being cloned', (t) => {
  const source = doc(...Object.values(NODES).flat())
  const compiled = compile(source, { snippets: SNIPPETS, kind: 'marketing' })
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    t.true(Object.isFrozen(value))
    Object.values(value).forEach(walk)
  }
  walk(compiled)
  t.deepEqual(fill(structuredClone(compiled)), fill(compiled))
  t.deepEqual(lintEmail(fill(compiled, { showAll: true }).html), [])
})
