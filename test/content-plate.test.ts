import test from 'ava'

import { type CompiledEmail, compileContent } from '../src/content/compile.ts'
import { fillContent, type FilledEmail } from '../src/content/fill.ts'
import { cardOf, textOf } from './helpers/card.ts'
import { lintEmail } from './helpers/email-lint.ts'
import { golden } from './helpers/golden.ts'

type Json = Record<string, unknown>

const PICTURE = 'https://img.test/a.png'
const VARIABLES = { name: 'Ada <b>', city: 'Paris', 'org-name': 'Engines & Co' }

const el = (type: string, ...children: (Json | string)[]): Json => ({
  type,
  children: children.map((child) => (typeof child === 'string' ? { text: child } : child)),
})
const item = (indent: number, listStyleType: string, words: string, more: Json = {}): Json => ({
  ...el('p', words),
  indent,
  listStyleType,
  ...more,
})

function compile(source: unknown): CompiledEmail {
  return compileContent({ contentType: 'PLATE', source, subject: 'Hello', kind: 'transactional' })
}

function fill(compiled: CompiledEmail): FilledEmail {
  const urls = { unsubscribe: 'https://mail.test/u/abc', online: 'https://mail.test/v/abc' }
  return fillContent(compiled, { variables: VARIABLES, urls })
}

const CASES: Record<string, Json[]> = {
  p: [
    el('p', 'Plain {{name}}.'),
    { ...el('p', 'Centred.'), align: 'center' },
    { ...el('p', 'Indented.'), indent: 2 },
    el('p', ''),
  ],
  headings: ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((type) => el(type, `As ${type}`)),
  blockquote: [el('blockquote', 'Text itself'), el('blockquote', el('p', 'One'), el('p', 'Two'))],
  hr: [el('p', 'Above'), el('hr', ''), el('p', 'Below')],
  a: [
    el(
      'p',
      'See ',
      { ...el('a', 'the ', { text: 'loom', bold: true }), url: 'https://x.test/{{city}}' },
      '.',
    ),
  ],
  img: [
    { ...el('img', ''), url: PICTURE, alt: 'A picture', width: 300, align: 'left' },
    { ...el('img', ''), url: PICTURE, width: '50%', caption: [{ text: 'With a caption' }] },
  ],
  'img-in-line': [
    el('p', 'A ', { ...el('img', ''), url: PICTURE, alt: 'star', width: 16, height: 16 }, ' in a line'),
    el('p', {
      ...el('a', { ...el('img', ''), url: PICTURE, alt: 'Shop', width: 900 }),
      url: 'https://x.test/',
    }),
    el('p', { ...el('img', ''), url: PICTURE }),
  ],
  code_block: [
    el('code_block', el('code_line', 'if (a < b) {'), el('code_line', '  run()'), el('code_line', '}')),
  ],
  lists: [
    el(
      'ul',
      el('li', el('lic', 'First')),
      el(
        'li',
        el('lic', 'Second'),
        el('ol', el('li', el('lic', 'Inner one')), el('li', el('lic', 'Inner two'))),
      ),
    ),
    el('ol', el('li', el('p', 'One')), el('li', el('p', 'Two'))),
  ],
  'indent-lists': [
    item(1, 'disc', 'First'),
    item(2, 'decimal', 'Inner one'),
    item(2, 'decimal', 'Inner two', { listStart: 2 }),
    item(1, 'disc', 'Second'),
    item(1, 'decimal', 'Three', { listStart: 3 }),
    item(1, 'todo', 'Done', { checked: true }),
    item(1, 'todo', 'Open'),
    el('p', 'After.'),
  ],
  'indent-list-styles': [
    item(1, 'lower-alpha', 'As a', { listStart: 26 }),
    item(1, 'lower-alpha', 'As aa'),
    item(2, 'upper-roman', 'As IV', { listStart: 4 }),
    item(2, 'square', 'A square'),
    item(1, 'decimal-leading-zero', 'As 01'),
    item(1, 'nonsense;color:red', 'As 1'),
  ],
  table: [
    el(
      'table',
      el('tr', el('th', el('p', 'Plan')), el('th', el('p', 'Price'))),
      el('tr', el('td', el('p', 'Pro')), { ...el('td', el('p', '{{city}}')), background: '#0f172a' }),
      el('tr', { ...el('td', el('p', 'Both'), el('p', 'columns')), colSpan: 2 }),
    ),
    el('p', 'After.'),
  ],
  'table-long-words': [
    el(
      'table',
      el('tr', el('th', el('p', 'Plan')), el('th', el('p', 'Description')), el('th', el('p', 'Price'))),
      el(
        'tr',
        el('td', el('p', 'Pro')),
        el('td', el('p', 'A Donaudampfschifffahrtsgesellschaft')),
        el('td', el('p', '{{city}}')),
      ),
    ),
  ],
  'table-many-columns': [
    el('table', el('tr', ...'abcdefgh'.split('').map((letter) => el('td', el('p', letter.repeat(6)))))),
  ],
  rtl: [
    el('h2', 'שלום'),
    el('p', '{{name}}, ', { text: 'שלום', bold: true }, ' newsletter.'),
    el('p', 'Hello שלום'),
    el('ul', el('li', el('lic', 'אחת')), el('li', el('lic', 'Two'))),
    item(1, 'decimal', 'אחת'),
    el('blockquote', el('p', 'ציטוט')),
  ],
  columns: [
    el(
      'column_group',
      { ...el('column', el('p', 'Left')), width: '30%' },
      { ...el('column', el('h3', 'Right'), el('p', 'wider')), width: '70%' },
    ),
  ],
  callout: [
    { ...el('callout', 'Take care, {{name}}.'), icon: '💡' },
    { ...el('callout', el('p', 'On dark')), backgroundColor: '#1e3a8a' },
  ],
  mention: [el('p', 'Hi ', { ...el('mention', ''), value: 'Grace' }, '!')],
  marks: [
    el(
      'p',
      { text: 'bold ', bold: true },
      { text: 'italic ', italic: true },
      { text: 'underline ', underline: true },
      { text: 'struck ', strikethrough: true },
      { text: 'code', code: true },
      { text: ' sub', subscript: true },
      { text: ' sup', superscript: true },
      { text: ' light', highlight: true },
      { text: ' red', color: '#b91c1c' },
      { text: ' back', backgroundColor: 'rgb(30, 58, 138)' },
      { text: ' large', fontSize: '24px' },
      { text: ' all', bold: true, italic: true, color: '#1d4ed8', fontSize: 20 },
    ),
  ],
}

for (const [name, content] of Object.entries(CASES)) {
  test(`${name} looks as it should`, (t) => {
    const compiled = compile(content)
    const filled = fill(compiled)
    t.is(`${cardOf(filled)}\n`, golden(`plate/${name}.html`, `${cardOf(filled)}\n`))
    t.is(textOf(filled), golden(`plate/${name}.txt`, textOf(filled)))
    t.deepEqual(lintEmail(filled.html), [])
    t.deepEqual(compiled.warnings, [])
  })
}

test('neighbouring items with different bullets each show their own', (t) => {
  const { html } = fill(
    compile([
      item(1, 'disc', 'One'),
      item(1, 'square', 'Two'),
      item(1, 'square', 'Three'),
      item(1, 'circle', 'Four'),
    ]),
  )
  const lists = html.match(/<ul [^]*?<\/ul>/g) ?? []
  t.deepEqual(
    lists.map((list) => [/list-style-type:(\w+)/.exec(list)?.[1], list.split('<li').length - 1]),
    [
      [undefined, 1],
      ['square', 2],
      ['circle', 1],
    ],
  )
})

test('header cells before the data of their row are headers of the row, others are headers of their columns', (t) => {
  const { html } = fill(
    compile([
      el(
        'table',
        el('tr', el('th', 'Corner'), el('th', 'Price')),
        el('tr', el('th', 'Pro'), el('td', '5')),
        el('tr', el('td', ''), el('th', 'Late')),
      ),
    ]),
  )
  const scopes = [...html.matchAll(/<th scope="(\w+)"[^>]*>([^<]*)/g)].map(
    ([, scope, name]) => `${name} ${scope}`,
  )
  t.deepEqual(scopes, ['Corner col', 'Price col', 'Pro row', 'Late col'])
})

test('a document is a list or an object with children, and nothing else', (t) => {
  const content = [el('p', 'Hello')]
  t.is(textOf(fill(compile({ children: content }))), textOf(fill(compile(content))))
  for (const source of ['text', 7, null, {}, { children: {} }]) {
    t.deepEqual(
      compile(source).warnings.map(({ code }) => code),
      ['INVALID_DOCUMENT'],
    )
  }
})

test('an image in a table has the room of its cells, which Outlook does not find by itself', (t) => {
  const picture = { ...el('img', ''), url: PICTURE, alt: 'A picture', width: 500 }
  const cells = [el('td', picture), el('td', el('p', 'beside'))]
  const width = (...row: Json[]) =>
    /<img [^>]*width="(\d+)"/.exec(
      fill(compile([el('table', el('tr', ...cells), el('tr', ...row))])).html,
    )?.[1]
  t.is(width(el('td', 'x'), el('td', 'y')), '241')
  const [first = {}] = cells
  const whole = fill(
    compile([el('table', el('tr', el('td', 'x'), el('td', 'y')), el('tr', { ...first, colSpan: 2 }))]),
  )
  t.regex(whole.html, /<img [^>]*width="500"/)
})

test('what is beyond the eighth column of a row is left out, and is a warning', (t) => {
  const columns = (count: number) =>
    compile([
      el('column_group', ...Array.from({ length: count }, (_, at) => el('column', el('p', `c${at}`)))),
    ])
  t.deepEqual(columns(8).warnings, [])
  const [warning] = columns(9).warnings
  t.regex(`${warning?.code} ${warning?.message}`, /^TOO_LARGE A row has more than 8 columns; .*another row/)
  t.notRegex(fill(columns(9)).text, /c8/)
})

test('elements that are not known show what they hold, and a link to unsubscribe counts', (t) => {
  const compiled = compile([
    el('toggle', el('p', 'inside')),
    el('p', { ...el('a', 'Bye'), url: '{{unsubscribeUrl}}' }),
    { ...el('img', ''), url: '' },
    el('p', 'of ', el('inline_equation', 'E = m'), el('p', ' and more'), el('img', '')),
  ])
  t.deepEqual(
    compiled.warnings.map(({ code, message }) => [code, message.split(';')[0]]),
    [
      ['UNKNOWN_NODE', 'The element "toggle" is not known'],
      ['MISSING_ADDRESS', 'An image has no address'],
      ['UNKNOWN_NODE', 'The element "inline_equation" is not known in a line of text'],
    ],
  )
  t.true(compiled.hasUnsubscribeLink)
  t.regex(fill(compiled).text, /^inside\n[^]*of E = m and more\n/)
})
