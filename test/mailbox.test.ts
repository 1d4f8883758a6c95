import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import test from 'ava'
import { createTransport, type SendMailOptions } from 'nodemailer'

import { startMailbox, type Mailbox } from '../mailbox/mailbox.ts'
import { scratchDirectory } from './helpers/services.ts'

type Listed = {
  total: number
  unread: number
  messages_count: number
  messages: { ID: string; Subject: string; Read: boolean; To: { Address: string }[]; Snippet: string }[]
}

const WELCOME: SendMailOptions = {
  from: 'Ada <ada@shop.example>',
  to: 'Lin Chen <lin@reader.example>',
  subject: 'Welcome, Lin',
  text: 'Hello Lin, see https://shop.example/start.',
  html: '<html><head><style>p{color:red}</style></head><body><p>Hello <a href="https://shop.example/start">Lin</a></p></body></html>',
  headers: {
    'List-Unsubscribe': '<https://shop.example/u/1>, <mailto:out@shop.example>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  },
}

async function freshMailbox(mails: number = 10_000): Promise<Mailbox & { file: string }> {
  const file = join(scratchDirectory('mailbox'), 'mailbox.sqlite')
  return { ...(await startMailbox({ file, bounds: { mails, bytes: 1_000_000_000 } })), file }
}

async function send(mailbox: Mailbox, ...mails: SendMailOptions[]): Promise<void> {
  const transport = createTransport({ host: '127.0.0.1', port: mailbox.smtpPort, pool: true })
  for (const mail of mails) await transport.sendMail(mail)
  transport.close()
}

async function read<Answer>(mailbox: Mailbox, path: string): Promise<Answer> {
  const answer = await fetch(mailbox.url + path)
  // Each test states the shape that it expects.
  return (await answer.json()) as Answer
}

async function search(mailbox: Mailbox, query: string): Promise<string[]> {
  const found = await read<Listed>(mailbox, `/api/v1/search?query=${encodeURIComponent(query)}`)
  return found.messages.map(({ Subject }) => Subject)
}

test('a mail sent by SMTP is listed, read, shown with its headers and its source, and deleted', async (t) => {
  const mailbox = await freshMailbox()
  await send(mailbox, WELCOME)

  const list = await read<Listed>(mailbox, '/api/v1/messages')
  t.like(list, { total: 1, unread: 1, messages_count: 1 })
  const [mail] = list.messages
  const id = mail?.ID ?? ''
  t.like(mail, {
    Subject: 'Welcome, Lin',
    Read: false,
    Snippet: 'Hello Lin, see https://shop.example/start.',
  })

  const message = await read<Record<string, unknown>>(mailbox, `/api/v1/message/${id}`)
  t.like(message, {
    From: { Name: 'Ada', Address: 'ada@shop.example' },
    To: [{ Name: 'Lin Chen', Address: 'lin@reader.example' }],
    Subject: 'Welcome, Lin',
    ReturnPath: 'ada@shop.example',
    Attachments: [],
  })
  t.is(String(message['Text']).trim(), 'Hello Lin, see https://shop.example/start.')
  t.regex(String(message['HTML']), /<p>Hello <a href="https:\/\/shop\.example\/start">/)
  t.deepEqual((message['ListUnsubscribe'] as { Links: string[] }).Links, [
    'https://shop.example/u/1',
    'mailto:out@shop.example',
  ])
  t.is((await read<Listed>(mailbox, '/api/v1/messages')).unread, 0)

  const headers = await read<Record<string, string[]>>(mailbox, `/api/v1/message/${id}/headers`)
  t.deepEqual(headers['Subject'], ['Welcome, Lin'])
  t.deepEqual(headers['List-Unsubscribe-Post'], ['List-Unsubscribe=One-Click'])

  const raw = await (await fetch(`${mailbox.url}/api/v1/message/${id}/raw`)).text()
  t.true(raw.includes('\r\nSubject: Welcome, Lin\r\n'))

  const deleted = await fetch(`${mailbox.url}/api/v1/messages`, {
    method: 'DELETE',
    body: JSON.stringify({ IDs: [id] }),
  })
  t.is(await deleted.text(), 'ok')
  t.is((await fetch(`${mailbox.url}/api/v1/message/${id}`)).status, 404)
  await mailbox.close()
})

test('the search knows fields, phrases, negation and flags, and takes SQL wildcards as text', async (t) => {
  const mailbox = await freshMailbox()
  await send(
    mailbox,
    { from: 'a@x.example', to: 'one@r.example', subject: 'Spring sale', text: 'forty percent' },
    { from: 'b@x.example', to: 'two@r.example', subject: 'Receipt', text: 'for the spring order' },
    { from: 'b@x.example', to: 'x@r.example', bcc: 'hidden@r.example', subject: '100% done', text: '-' },
  )
  t.deepEqual(await search(mailbox, 'to:one@r.example'), ['Spring sale'])
  t.deepEqual(await search(mailbox, 'to:hidden@r.example'), ['100% done'])
  t.deepEqual(await search(mailbox, 'from:b@x.example subject:receipt'), ['Receipt'])
  t.deepEqual(await search(mailbox, 'SPRING'), ['Receipt', 'Spring sale'])
  t.deepEqual(await search(mailbox, 'spring -subject:sale'), ['Receipt'])
  t.deepEqual(await search(mailbox, '"spring order"'), ['Receipt'])
  t.deepEqual(await search(mailbox, 'subject:"spring sale"'), ['Spring sale'])
  t.deepEqual(await search(mailbox, '%'), ['100% done'])
  t.deepEqual(await search(mailbox, 'is:read'), [])
  await mailbox.close()
})

test('the list is paged, and a page that cannot be is refused', async (t) => {
  const mailbox = await freshMailbox()
  const mails = ['1', '2', '3'].map((subject) => ({ ...WELCOME, subject }))
  await send(mailbox, ...mails)
  const page = await read<Listed>(mailbox, '/api/v1/messages?start=1&limit=1')
  t.is(page.messages_count, 3)
  t.deepEqual(
    page.messages.map(({ Subject }) => Subject),
    ['2'],
  )
  t.is((await fetch(`${mailbox.url}/api/v1/messages?start=-1`)).status, 400)
  await mailbox.close()
})

test('mail is still there after the mailbox was started again', async (t) => {
  const first = await freshMailbox()
  await send(first, WELCOME)
  await first.close()
  const second = await startMailbox({ file: first.file })
  t.deepEqual(await search(second, 'to:lin@reader.example'), ['Welcome, Lin'])
  await second.close()
})

test('the oldest mail goes when there is more than the bound', async (t) => {
  const mailbox = await freshMailbox(20)
  await send(mailbox, ...Array.from({ length: 40 }, (_, index) => ({ ...WELCOME, subject: `n${index}` })))
  const { total, messages } = await read<Listed>(mailbox, '/api/v1/messages')
  t.true(total <= 22, `${total} are kept`)
  t.is(messages[0]?.Subject, 'n39')
  await mailbox.close()
})

test('pages show the list and each way to look at a mail, with nothing of it able to run', async (t) => {
  const mailbox = await freshMailbox()
  const hostile = '<script>alert(1)</script>'
  await send(mailbox, {
    ...WELCOME,
    subject: hostile,
    html: `<p>${hostile}<img src="cid:logo2"><img src='cid:logo'><img src="cid:logo3"></p>`,
    text: hostile,
    attachments: [
      { cid: 'logo', filename: 'logo.png', content: Buffer.from('89504e47', 'hex') },
      { cid: 'logo2', filename: 'other.png', content: Buffer.from('89504e48', 'hex') },
    ],
  })
  const { messages } = await read<Listed>(mailbox, '/api/v1/messages')
  const id = messages[0]?.ID ?? ''

  for (const path of [
    '/',
    `/view/${id}`,
    ...['text', 'headers', 'raw'].map((show) => `/view/${id}?show=${show}`),
  ]) {
    const answer = await fetch(mailbox.url + path)
    t.is(answer.status, 200, path)
    t.regex(answer.headers.get('content-security-policy') ?? '', /default-src 'none'/, path)
    t.false((await answer.text()).includes(hostile), path)
  }
  const page = await (await fetch(`${mailbox.url}/view/${id}`)).text()
  t.regex(page, /<iframe[^>]*sandbox="allow-popups allow-popups-to-escape-sandbox"/)

  const document = await fetch(`${mailbox.url}/view/${id}.html`)
  t.regex(document.headers.get('content-security-policy') ?? '', /^sandbox allow-popups/)
  const shown = await document.text()
  t.true(shown.includes('<base target="_blank">'))
  t.true(shown.includes('src="cid:logo3"'), 'a part that there is not')
  const images = shown.matchAll(/src=["'](\/api\/v1\/message\/[^"']+)["']/g)
  const contents = await Promise.all(
    [...images].map(async ([, image = '']) => {
      const part = await fetch(mailbox.url + image)
      t.is(part.headers.get('content-type'), 'image/png')
      return Buffer.from(await part.arrayBuffer()).toString('hex')
    }),
  )
  t.deepEqual(contents, ['89504e48', '89504e47'])
  await mailbox.close()
})

test('another site can neither read the mail through its own name nor delete it with a form', async (t) => {
  const mailbox = await freshMailbox()
  await send(mailbox, WELCOME)
  const { hostname, port } = new URL(mailbox.url)
  const status = await new Promise<number | undefined>((resolve, reject) => {
    import('node:http').then(({ get }) => {
      const options = { hostname, port, path: '/api/v1/messages', headers: { host: `evil.example:${port}` } }
      get(options, (answer) => resolve(answer.resume().statusCode)).on('error', reject)
    }, reject)
  })
  t.is(status, 421)
  const form = await fetch(`${mailbox.url}/delete`, {
    method: 'POST',
    headers: { origin: 'https://evil.example', 'content-type': 'application/x-www-form-urlencoded' },
    body: 'query=',
  })
  t.is(form.status, 403)
  t.is((await read<Listed>(mailbox, '/api/v1/messages')).total, 1)
  const page = await fetch(mailbox.url)
  t.is(page.headers.get('referrer-policy'), 'same-origin', 'with no-referrer, the Origin of a form is null')
  const own = await fetch(`${mailbox.url}/delete`, {
    method: 'POST',
    headers: { origin: mailbox.url },
    body: 'query=',
    redirect: 'manual',
  })
  t.is(own.status, 302)
  t.is((await read<Listed>(mailbox, '/api/v1/messages')).total, 0)
  await mailbox.close()
})

test('mail over 25 MB is refused, and a broken one is kept as it came', async (t) => {
  const mailbox = await freshMailbox()
  const large = { ...WELCOME, attachments: [{ filename: 'x', content: Buffer.alloc(26 * 1024 * 1024) }] }
  const refusal = await t.throwsAsync(send(mailbox, large))
  t.regex(refusal?.message ?? '', /552/)
  await send(mailbox, { envelope: { from: 'a@x.example', to: 'b@x.example' }, raw: 'no header at all' })
  const { messages } = await read<Listed>(mailbox, '/api/v1/messages')
  t.like(messages[0], { Subject: '', From: { Address: 'a@x.example' } })
  await mailbox.close()
})

test('an accepted mail is in the file before the sender hears of it', async (t) => {
  const mailbox = await freshMailbox()
  await send(mailbox, WELCOME)
  const other = new DatabaseSync(mailbox.file, { readOnly: true })
  t.is(other.prepare('SELECT count(*) AS mails FROM mail').get()?.['mails'], 1)
  other.close()
  await mailbox.close()
})
