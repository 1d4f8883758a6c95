import test from 'ava'
import fc from 'fast-check'
import { simpleParser } from 'mailparser'

import { compileContent, type ContentSource } from '../src/content/compile.ts'
import { fillContent, type FillInput } from '../src/content/fill.ts'
import { createEmailCache } from '../src/delivery/email-cache.ts'
import { composeMail } from '../src/delivery/mime.ts'
import { quote, quoteEmail } from '../src/delivery/quoted-printable.ts'

/**
 * Emails are composed of parts that were encoded separately. Whatever the parts and the values are, decoding the email
 * must give exactly the text of the same email without any encoding.
 */
const RUNS = 150

function compose(content: ContentSource, input: FillInput) {
  const compiled = compileContent(content)
  const { subject, html, text } = fillContent(quoteEmail(compiled), input, quote)
  const { headers, body } = composeMail({
    messageId: 'eml_1@shop.example',
    date: new Date(0),
    from: { name: 'Shop', email: 'hello@shop.example' },
    to: { name: null, email: 'ada@reader.example' },
    replyTo: null,
    subject,
    html,
    text,
    unsubscribeUrl: null,
  })
  return { plain: fillContent(compiled, input), headers, body, data: `${headers}\r\n${body}` }
}

const lines = (text: string): string => text.toWellFormed().replaceAll(/\r\n?/g, '\n')

const words = fc.oneof(
  fc.constantFrom(
    '',
    '.',
    '..',
    ' ',
    '=',
    '=\r\n',
    '--=_alternative',
    '\r\n.\r\n',
    '\ud83d',
    '\ude00',
    'é'.repeat(40),
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 90 }),
  fc.stringMatching(/^[ -~]{70,90}$/),
)
const piece = fc.oneof(
  words,
  fc.constantFrom(
    '{{name}}',
    "{{city | 'a town'}}",
    '{{unsubscribeUrl}}',
    '\n',
    '\n\n.',
    ' \n',
    '<b title="{{name}}">',
    '<a href="https://shop.example/{{city}}?a=1&b=2">there</a>',
    '[here](https://shop.example/a)',
    '[{{name}}](https://shop.example/{{name}})',
    '![Loom](https://shop.example/{{city}}.png)',
    '\n- ',
    '\n> ',
    '\n# ',
  ),
)
const person = fc.record({ name: words, city: words })
const settings = { subject: 'To {{name}}', kind: 'marketing' } as const

function inputFor(variables: Record<string, unknown>, tracked: boolean): FillInput {
  return {
    variables,
    urls: { unsubscribe: 'https://mail.example/u/1?a=b', online: 'https://mail.example/v/1' },
    ...(tracked && {
      tracking: {
        openUrl: 'https://mail.example/o/1.gif?x=1&y=2',
        clickUrl: (position) => `https://mail.example/c/${'x'.repeat(80)}${position}`,
      },
    }),
  }
}

async function decodesTo(content: ContentSource, input: FillInput): Promise<void> {
  const { plain, body, data } = compose(content, input)
  const parsed = await simpleParser(data, { skipTextToHtml: true })
  const wrong: string[] = []
  if ((parsed.html || '') !== lines(plain.html)) wrong.push('the HTML')
  if ((parsed.text ?? '') !== lines(plain.text)) wrong.push('the text')
  for (const line of body.split('\r\n')) {
    if (!/^(?!\.)[ -~]{0,76}$/.test(line) || line.endsWith(' ')) wrong.push(JSON.stringify(line))
  }
  if (wrong.length > 0) throw new Error(`not as written: ${wrong.join(', ')}`)
}

for (const contentType of ['MARKDOWN', 'HTML'] as const) {
  test(`what a reader finds in ${contentType} is what was filled, byte for byte, in short lines`, async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 25 }),
        person,
        fc.boolean(),
        async (source, who, tracked) => {
          await decodesTo({ ...settings, contentType, source: source.join('') }, inputFor(who, tracked))
        },
      ),
      { numRuns: RUNS },
    )
    t.pass()
  })
}

const paragraph = (text: string, attrs = {}) => ({
  type: 'paragraph',
  attrs,
  content: [{ type: 'text', text }],
})

test('parts for some people and parts for each item are as they were filled', async (t) => {
  const source = {
    type: 'doc',
    content: [
      paragraph('For {{name}}', { showIfKey: 'name' }),
      paragraph('To all.'),
      {
        type: 'repeat',
        attrs: { each: 'items' },
        content: [
          paragraph('{{title}} of {{name}}'),
          { type: 'button', attrs: { text: '{{title}}', url: 'https://shop.example/{{title}}' } },
          paragraph('In {{city}}', { showIfKey: 'city' }),
        ],
      },
    ],
  }
  const item = fc.record({ title: words, city: words })
  await fc.assert(
    fc.asyncProperty(person, fc.array(item, { maxLength: 4 }), fc.boolean(), async (who, items, tracked) => {
      await decodesTo({ ...settings, contentType: 'MAILY', source }, inputFor({ ...who, items }, tracked))
    }),
    { numRuns: RUNS },
  )
  const shown = compose(
    { ...settings, contentType: 'MAILY', source },
    inputFor({ items: [{ title: 'Loom' }] }, true),
  )
  t.true(shown.plain.text.startsWith('To all.\n\nLoom of'))
})

test('pieces that are quoted apart read as if they had been one', (t) => {
  fc.assert(
    fc.property(fc.array(words), (pieces) => {
      const quoted = pieces.map(quote).join('')
      const read = quoted
        .replaceAll('=\r\n', '')
        .replaceAll(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      const written = pieces.map((each) => each.toWellFormed().replaceAll(/\r\n?|\n/g, '\r\n')).join('')
      return Buffer.from(read, 'latin1').toString() === written
    }),
    { numRuns: 1_000 },
  )
  t.is(quote('a'.repeat(76)), `${'a'.repeat(75)}=\r\na=\r\n`)
  t.is(quote(`${'a'.repeat(76)}\n`), `${'a'.repeat(76)}\r\n`)
  t.is(quote(`${'a'.repeat(75)}.b`), `${'a'.repeat(75)}=\r\n=2Eb=\r\n`)
  t.is(quote('.\n. \n'), '=2E\r\n=2E=20\r\n')
  t.is(quote('caf\u00e9 \ud83d\ude00'), 'caf=C3=A9 =F0=9F=98=80=\r\n')
})

test('characters that change the direction of text become spaces in names and subjects', async (t) => {
  const { headers } = composeMail({
    messageId: 'eml_1@shop.example',
    date: new Date(0),
    from: { name: 'Shop\u202e', email: 'hello@shop.example' },
    to: { name: 'A\u202eb\u2066ä', email: 'ada@reader.example' },
    replyTo: null,
    subject: 'One\u202etwo',
    html: '',
    text: '',
    unsubscribeUrl: null,
  })
  const { from, to, subject } = await simpleParser(`${headers}\r\n`)
  t.is(from?.text, '"Shop" <hello@shop.example>')
  t.is(subject, 'One two')
  t.is([to].flat()[0]?.text, '"A b ä" <ada@reader.example>')
})

test('no line with an encoded word is longer than 76 characters (RFC 2047 2)', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200 }), (text) => {
      const { headers } = composeMail({
        messageId: 'm@shop.example',
        date: new Date(),
        from: { name: text, email: 'news@shop.example' },
        to: { name: text, email: 'lin@reader.example' },
        replyTo: null,
        subject: text,
        html: '',
        text: '',
        unsubscribeUrl: null,
      })
      const lines = headers.split('\r\n').filter((line) => line.includes('=?utf-8?B?'))
      return lines.every((line) => line.length <= 76)
    }),
  )
  t.pass()
})

test('compiled emails are kept by their size, the longest unused forgotten first, and made once for all who ask', async (t) => {
  const made: string[] = []
  const cache = createEmailCache(1_000_000)
  const ask = async (key: string, letters = 100_000) =>
    await cache(key, async () => {
      made.push(key)
      await Promise.resolve()
      return compileContent({
        contentType: 'HTML',
        source: 'x'.repeat(letters),
        subject: key,
        kind: 'transactional',
      })
    })
  const names = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `${from + n}`)

  await Promise.all([ask('0'), ask('0'), ask('0')])
  t.deepEqual(made, ['0'])
  for (const key of names(1, 40)) {
    await ask(key)
    await ask('0')
  }
  // The text part of each is as long as its HTML, so both count.
  t.deepEqual(made, names(0, 40))
  await ask('39')
  t.deepEqual(made, names(0, 40))
  await ask('1')
  t.deepEqual(made, [...names(0, 40), '1'])

  // Many small entries replace few large ones. An entry that is too large is not cached and evicts nothing for long.
  for (const key of names(100, 300)) await ask(key, 10)
  await ask('giant', 2_000_000)
  await ask('giant', 2_000_000)
  t.is(made.filter((key) => key === 'giant').length, 2)
})

test('an email that could not be made is made again', async (t) => {
  const cache = createEmailCache(1_000_000)
  const broken = cache('a', () => Promise.reject(new Error('the database is away')))
  await t.throwsAsync(broken, { message: 'the database is away' })
  t.is((await cache('a', async () => compileContent(plain('again'))))?.subject.statics[0], 'again')
  t.is(await cache('gone', async () => null), null)
})

function plain(subject: string): ContentSource {
  return { contentType: 'HTML', source: 'x', subject, kind: 'transactional' }
}
