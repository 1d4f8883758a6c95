import type { ContentType } from '../../schema/values.ts'

type Json = Record<string, unknown>

/** The path at which the picture in the documents is served. */
export const PICTURE = '/picture.svg'

const LONG_WORD = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft'
const LONG_ADDRESS = `https://www.example.com/${'a-very-long-path/'.repeat(8)}?utm_source=newsletter&utm_campaign=spring`
const HEBREW = 'שלום עולם, זהו מכתב בעברית עם מילה באנגלית: newsletter.'
const PROSE =
  'The new collection is made nearby, in small numbers, from wool that was spun last winter. Nothing in it is in a hurry.'

/** Returns one document for each format that uses all of its features, with extreme values that strain the layout. */
export function documentsAt(base: string): Record<ContentType, unknown> {
  const picture = `${base}${PICTURE}`
  return { MAILY: maily(picture), PLATE: plate(picture), MARKDOWN: markdown(picture) }
}

/** The variables of the recipient. */
export const VARIABLES = {
  name: 'Ada Lovelace',
  email: 'ada@example.com',
  'org-name': 'Analytical Engines',
  plan: 'pro',
  items: [
    { title: 'Rain coat', price: '€ 120' },
    { title: LONG_WORD, price: '€ 1,200' },
  ],
}

const node = (type: string, attrs: Json, ...content: (Json | string)[]): Json => ({
  type,
  attrs,
  content: content.map((each) => (typeof each === 'string' ? { type: 'text', text: each } : each)),
})
const words = (text: string, ...marks: (Json | string)[]): Json => ({
  type: 'text',
  text,
  marks: marks.map((mark) => (typeof mark === 'string' ? { type: mark } : mark)),
})
const p = (...content: (Json | string)[]): Json => node('paragraph', {}, ...content)
const li = (...content: Json[]): Json => node('listItem', {}, ...content)
const href = (address: string): Json => ({ type: 'link', attrs: { href: address } })

function maily(src: string): Json {
  const plan = { action: 'show', variable: 'plan', operator: 'equals', value: 'pro' }
  return node(
    'doc',
    {},
    node('logo', { src, alt: 'Analytical Engines', size: 'md' }),
    node('heading', { level: 1 }, 'Spring is here, {{name}}'),
    p(
      'Plain, ',
      words('bold', 'bold'),
      ', ',
      words('italic', 'italic'),
      ', ',
      words('underlined', 'underline'),
      ', ',
      words('struck', 'strike'),
      ', ',
      words('code()', 'code'),
      ', ',
      words('red', { type: 'textStyle', attrs: { color: '#b91c1c' } }),
      ', ',
      words('navy', { type: 'textStyle', attrs: { color: '#1e3a8a' } }),
      ', ',
      words('marked', { type: 'highlight', attrs: { color: '#fde68a' } }),
      ', H',
      words('2', 'subscript'),
      'O, x',
      words('2', 'superscript'),
      ' and ',
      words('a link', href('https://www.example.com')),
      '. ',
      PROSE,
    ),
    p(LONG_WORD, ' ', words(LONG_ADDRESS, href(LONG_ADDRESS))),
    node('image', { src, alt: 'Three coats on a rail', width: 1200, height: 600, borderRadius: 8 }),
    node('heading', { level: 2 }, 'Columns'),
    node(
      'columns',
      { gap: 16 },
      node(
        'column',
        {},
        node('image', { src, alt: 'Coats' }),
        node('heading', { level: 3 }, 'Coats'),
        p(PROSE),
      ),
      node(
        'column',
        {},
        node('image', { src, alt: 'Hats' }),
        node('heading', { level: 3 }, 'Hats'),
        p(PROSE),
      ),
    ),
    node(
      'columns',
      {},
      ...['One', 'Two', 'Three'].map((name) =>
        node('column', { verticalAlign: 'middle' }, p(name), p(LONG_WORD)),
      ),
    ),
    node('button', { text: 'See the collection', url: 'https://www.example.com/a' }),
    node('button', {
      text: 'Outline',
      url: 'https://www.example.com/b',
      variant: 'outline',
      alignment: 'center',
    }),
    node('button', {
      text: 'A button with quite a lot to say about what happens when it is pressed',
      url: 'https://www.example.com/c',
      buttonColor: '#15803d',
      borderRadius: 'round',
      alignment: 'right',
    }),
    node('button', { text: 'Full width', url: 'https://www.example.com/d', kind: 'full-width' }),
    node('heading', { level: 2 }, 'Lists'),
    node(
      'bulletList',
      {},
      li(p('First, ', PROSE)),
      li(p('Second'), node('orderedList', { start: 9 }, li(p('Nine')), li(p('Ten', ' ', LONG_WORD)))),
    ),
    node('orderedList', {}, li(p('One')), li(p('Two'), node('bulletList', {}, li(p('Inner'))))),
    node(
      'blockquote',
      {},
      p(PROSE),
      p(words('A second line with a link', href('https://www.example.com/q'))),
    ),
    node('horizontalRule', {}),
    node(
      'section',
      {
        backgroundColor: '#1e3a8a',
        borderRadius: 12,
        paddingTop: 16,
        paddingBottom: 16,
        paddingLeft: 24,
        paddingRight: 24,
      },
      node('heading', { level: 3 }, 'A dark section'),
      p('With ', words('a link', href('https://www.example.com/s')), ' and ', words('code()', 'code'), '.'),
      node('button', { text: 'In it', url: 'https://www.example.com/e' }),
    ),
    node('spacer', { height: 'lg' }),
    node(
      'section',
      { paddingTop: 16, paddingBottom: 16, paddingLeft: 16, paddingRight: 16 },
      p('A section as it is by itself. ', PROSE),
      node('blockquote', {}, p('Quoted in it')),
    ),
    node('section', { paddingLeft: 150, paddingRight: 150, marginLeft: 40 }, p('A section with wide sides.')),
    node('heading', { level: 2 }, 'For some, and for each'),
    node('paragraph', { visibilityRule: plan }, 'Only with the pro plan.'),
    node('repeat', { each: 'items' }, p(words('{{title}}', 'bold'), ' {{price}}')),
    node('linkCard', {
      title: 'How we make coats',
      description: PROSE,
      link: 'https://www.example.com/coats',
      linkTitle: 'Read on',
      image: src,
      subTitle: 'Three minutes',
      badgeText: 'New',
    }),
    node(
      'htmlCodeBlock',
      {},
      '<table border="1" cellpadding="6"><tr><td>Own</td><td style="color:#b91c1c">HTML</td></tr></table>',
    ),
    node('heading', { level: 3, dir: 'rtl' }, 'שלום'),
    node('paragraph', { dir: 'rtl' }, HEBREW),
    node('bulletList', {}, li(node('paragraph', { dir: 'rtl' }, HEBREW))),
    p(
      'With an inline ',
      node('inlineImage', { src, alt: 'dot' }),
      ' image',
      { type: 'hardBreak' },
      'and a new line.',
    ),
    node('footer', {}, 'You get this because you subscribed to {{org-name}}.'),
  )
}

const el = (type: string, ...children: (Json | string)[]): Json => ({
  type,
  children: children.map((child) => (typeof child === 'string' ? { text: child } : child)),
})
const item = (indent: number, listStyleType: string, text: string, more: Json = {}): Json => ({
  ...el('p', text),
  indent,
  listStyleType,
  ...more,
})
const anchor = (url: string, text: string): Json => ({ ...el('a', text), url })

function plate(url: string): Json[] {
  return [
    el('h1', 'Spring is here, {{name}}'),
    el(
      'p',
      'Plain, ',
      { text: 'bold', bold: true },
      ', ',
      { text: 'italic', italic: true },
      ', ',
      { text: 'code()', code: true },
      ', ',
      { text: 'red', color: '#b91c1c' },
      ', ',
      { text: 'navy', color: '#1e3a8a' },
      ', ',
      { text: 'marked', highlight: true },
      ', ',
      { text: 'white on blue', color: '#ffffff', backgroundColor: 'rgb(30, 58, 138)' },
      ', ',
      { text: 'on grey', backgroundColor: '#e5e7eb' },
      ' and ',
      anchor('https://www.example.com', 'a link'),
      '. ',
      PROSE,
    ),
    el('p', LONG_WORD, ' ', anchor(LONG_ADDRESS, LONG_ADDRESS)),
    { ...el('img', ''), url, alt: 'Three coats', width: 900, caption: [{ text: 'Three coats on a rail' }] },
    ...['h2', 'h3', 'h4', 'h5', 'h6'].map((type) => el(type, `As ${type}`)),
    el(
      'column_group',
      { ...el('column', el('h3', 'Coats'), el('p', PROSE)), width: '50%' },
      { ...el('column', el('h3', 'Hats'), el('p', PROSE)), width: '50%' },
    ),
    el(
      'ul',
      el('li', el('lic', PROSE)),
      el('li', el('lic', 'Second'), el('ol', el('li', el('lic', 'Inner')))),
    ),
    item(1, 'disc', 'By indent'),
    item(2, 'decimal', LONG_WORD),
    item(1, 'todo', 'Done', { checked: true }),
    item(1, 'todo', 'Open'),
    item(1, 'lower-alpha', 'By letters'),
    item(2, 'upper-roman', 'By Roman numbers'),
    el('blockquote', el('p', PROSE), el('p', anchor('https://www.example.com/q', 'With a link'))),
    el('hr', ''),
    el(
      'code_block',
      el('code_line', 'if (reader.plan === "pro" && reader.city === "Paris") {'),
      el('code_line', `  offer(${'twenty, '.repeat(12)}percent)`),
      el('code_line', '}'),
    ),
    el(
      'table',
      el('tr', ...['Plan', 'Price', 'What is in it'].map((text) => el('th', el('p', text)))),
      el('tr', el('td', el('p', 'Free')), el('td', el('p', '€ 0')), el('td', el('p', PROSE))),
      el(
        'tr',
        { ...el('td', el('p', 'Pro')), background: '#0f172a' },
        el('td', el('p', '€ 12')),
        el('td', el('p', LONG_WORD)),
      ),
    ),
    el(
      'table',
      el(
        'tr',
        ...['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun', 'Sum'].map((text) => el('th', el('p', text))),
      ),
      el('tr', ...[12, 9, 14, 11, 20, 31, 28, 125].map((hours) => el('td', el('p', `${hours} h`)))),
    ),
    { ...el('callout', 'Take care, {{name}}. ', PROSE), icon: '💡' },
    {
      ...el('callout', el('p', 'On dark, with ', anchor('https://www.example.com/d', 'a link'))),
      backgroundColor: '#1e3a8a',
    },
    el('p', 'Hi ', { ...el('mention', ''), value: 'Grace' }, '!'),
    el('p', HEBREW),
    item(1, 'disc', HEBREW),
    { ...el('p', 'Centred.'), align: 'center' },
    el('p', anchor('{{unsubscribeUrl}}', 'Unsubscribe')),
  ]
}

function markdown(src: string): string {
  return `# Spring is here, {{name | 'friend'}}

Plain, **bold**, _italic_, ~~struck~~, \`code()\` and [a link](https://www.example.com). ${PROSE}

${LONG_WORD} ${LONG_ADDRESS}

![Three coats on a rail](${src})

## A heading of the second level

### And of the third

- First, ${PROSE}
- Second
  - Inner
    - Further in, ${LONG_WORD}
- Third

1. One
2. Two

> ${PROSE}
>
> With [a link](https://www.example.com/q).

---

\`\`\`
if (reader.plan === "pro") offer(${'twenty, '.repeat(12)}percent)
\`\`\`

${HEBREW}

- ${HEBREW}

> ${HEBREW}

[Unsubscribe]({{unsubscribeUrl}}) · [Read online]({{onlineUrl}})
`
}
