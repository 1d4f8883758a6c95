import { join } from 'node:path'
import { domainToASCII } from 'node:url'

import test from 'ava'
import fc from 'fast-check'
import { sql } from 'kysely'
import { simpleParser } from 'mailparser'

import { startMailbox } from '../mailbox/mailbox.ts'
import { execute, row } from '../src/database.ts'
import { signMail } from '../src/delivery/dkim.ts'
import { seedDevelopment } from '../src/development.ts'
import {
  checkStoredKeys,
  findSigningKey,
  insertSigningKey,
  makeDkimPair,
  type SigningKey,
} from '../src/domain/domains/keys.ts'
import { newId } from '../src/ids.ts'
import { unseal } from '../src/seal.ts'
import { eventually } from './helpers/eventually.ts'
import { checkArrival, checkSignatures, unstuffed } from './helpers/mail-check.ts'
import { type Mailroom, openMailroom } from './helpers/mailroom.ts'
import { type NameServer, startNameServer, txt } from './helpers/name-server.ts'
import { scratchDirectory } from './helpers/services.ts'

let mailroom: Mailroom
let names: NameServer

test.before(async () => {
  mailroom = await openMailroom()
  names = await startNameServer()
})
test.after.always(async () => {
  await mailroom?.close()
  await names?.close()
})

const em = () => mailroom.services.orm.em.fork()

/** Adds a domain to the mailroom's organization and publishes its key in DNS. */
async function addDomain(domain: string): Promise<string> {
  const domainId = newId()
  const { organizationId } = mailroom
  await execute(
    em(),
    sql`insert into domain (id, organization_id, domain, status) values (${domainId}, ${organizationId}, ${domain}, 'VERIFIED')`,
  )
  const pair = await makeDkimPair()
  await insertSigningKey(em(), mailroom.services.config.encryptionKey, { organizationId, domainId }, pair)
  names.set(`${pair.selector}._domainkey.${domain}`, txt(`v=DKIM1; k=rsa; p=${pair.publicKey}`))
  return domainId
}

/**
 * Returns the results of the signatures. This verifier reports a changed body as `neutral`, which counts as a failure
 * here.
 */
async function verdict(raw: string): Promise<string> {
  return (await checkSignatures(names, raw))
    .map(({ status }) => status.result.replace('neutral', 'fail'))
    .join()
}

async function received(recipient: string): Promise<string> {
  const wire = await eventually('the email', () => {
    const entry = mailroom.sink.accepted().find((mail) => mail.recipient === recipient)
    return entry?.raw
  })
  return unstuffed(wire)
}

const HARD_CONTENT = [
  'Grüße an Zoë, 你好, 🚀 and a line that ends in spaces   ',
  '.a line that begins with a dot',
  '..and one with two',
  `A long line: ${'twelve chars '.repeat(120)}`,
  'x'.repeat(1_500),
  'tabs\tand   many    spaces',
].join('\n\n')

test('mail of a domain with a key passes an independent check, whatever it says', async (t) => {
  await addDomain('hard.example')
  await mailroom.start()
  for (const contentType of ['MARKDOWN', 'HTML'] as const) {
    const person = await mailroom.person({ name: 'Zoë "Dots" O’Brien, Grüße' })
    await mailroom.send(person, {
      fromEmail: 'hello@hard.example',
      fromName: 'Ünïcode, "Shop"',
      replyTo: 'answers@hard.example',
      source: { subject: 'Grüße, {{name}} 🚀', content: HARD_CONTENT, contentType, preview: 'Vorschau' },
    })
    const raw = await received(person.email)
    const [result, ...others] = await checkSignatures(names, raw)
    t.is(others.length, 0)
    t.is(result?.status.result, 'pass', result?.status.comment)
    t.is(result?.signingDomain, 'hard.example')
    t.is(result?.modulusLength, 2_048)
    t.is(result?.status.aligned, 'hard.example')
    t.regex(raw, /c=relaxed\/relaxed/)
    t.true(raw.split('\r\n').every((line) => line.length < 998))
  }
})

test('mail to an address of another script is signed as it is, in UTF-8', async (t) => {
  await addDomain('script.example')
  await mailroom.start()
  for (const email of ['jürgen@reader.example', '用户.à@例え.example']) {
    const person = await mailroom.person({ name: 'Jürgen "J"', email })
    await mailroom.send(person, { fromEmail: 'hello@script.example' })
    const [local = '', domain = ''] = email.split('@')
    const raw = await received(`${local}@${domainToASCII(domain)}`)
    t.is(await verdict(raw), 'pass')
    const { to } = await simpleParser(Buffer.from(raw, 'latin1'))
    const addressed = to && 'value' in to ? to.value[0] : undefined
    t.is(addressed?.name, 'Jürgen "J"')
    t.is(addressed?.address?.split('@')[0], local)
  }
})

test('with the records of its domain an email passes SPF, DKIM and DMARC, each aligned', async (t) => {
  await addDomain('aligned.example')
  names.set('send.aligned.example', txt('v=spf1 ip4:192.0.2.7 ~all'))
  names.set('_dmarc.aligned.example', txt('v=DMARC1; p=reject'))
  await mailroom.start()
  const person = await mailroom.person()
  await mailroom.send(person, { fromEmail: 'hello@aligned.example' })
  const raw = await received(person.email)
  const sender = mailroom.sink.accepted().find(({ recipient }) => recipient === person.email)?.from ?? ''
  const checked = await checkArrival(names, raw, { ip: '192.0.2.7', sender })
  t.is(checked.spf && checked.spf.status.result, 'pass')
  t.is(checked.dmarc && checked.dmarc.status.result, 'pass')
  t.like(checked.dmarc && checked.dmarc.alignment, {
    spf: { result: 'send.aligned.example' },
    dkim: { result: 'aligned.example' },
  })
  const elsewhere = await checkArrival(names, raw, { ip: '198.51.100.9', sender })
  t.is(elsewhere.spf && elsewhere.spf.status.result, 'softfail')
})

test('marketing mail has both headers of RFC 8058 signed, and no address but its own', async (t) => {
  await addDomain('news.example')
  await mailroom.start()
  const person = await mailroom.person()
  await mailroom.send(person, { fromEmail: 'hello@news.example', marketing: true })
  const raw = await received(person.email)
  t.is(await verdict(raw), 'pass')
  const signed = signedNames(raw)
  for (const name of [
    'list-unsubscribe',
    'list-unsubscribe-post',
    'from',
    'to',
    'subject',
    'date',
    'message-id',
    'mime-version',
    'content-type',
  ]) {
    t.is(
      signed.filter((entry) => entry === name).length,
      2,
      `${name} is signed, and so is that there is no other`,
    )
  }
  t.is(await verdict(raw.replace(/(List-Unsubscribe: <[^>]*)>/, '$1x>')), 'fail')
  t.is(await verdict(raw.replace('List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n', '')), 'fail')
})

function signedNames(raw: string): string[] {
  const header = /^DKIM-Signature:[^]*?\r\n(?![\t ])/.exec(raw)?.[0].replaceAll(/\r\n[\t ]/g, '') ?? ''
  return (/\bh=([^;]*);/.exec(header)?.[1] ?? '').split(':').map((name) => name.trim())
}

test('what was changed or added on the way fails', async (t) => {
  await addDomain('changed.example')
  await mailroom.start()
  const person = await mailroom.person()
  await mailroom.send(person, { fromEmail: 'hello@changed.example' })
  const raw = await received(person.email)
  t.is(await verdict(raw), 'pass')
  t.is(await verdict(raw.replace('Hi =\r\nLin', 'Hi =\r\nLim')), 'fail')
  t.is(await verdict(`${raw}and more\r\n`), 'fail')
  t.is(await verdict(raw.replace('Subject: Hello', 'Subject: Hallo')), 'fail')
  // Relaxed canonicalization: spaces and folding may change on the way.
  t.is(await verdict(raw.replace('Subject: Hello ', 'SUBJECT:  Hello\r\n\t ')), 'pass')
  t.is(await verdict(`${raw}\r\n\r\n`), 'pass')
  for (const added of [
    'From: Boss <boss@changed.example>',
    'Reply-To: thief@evil.example',
    'Subject: Other',
    'Cc: x@y.example',
  ]) {
    t.is(await verdict(raw.replace('\r\n\r\n', `\r\n${added}\r\n\r\n`)), 'fail', added)
  }
})

test('mail of a domain without a key, or of another organization, goes out unsigned', async (t) => {
  await addDomain('mine.example')
  await mailroom.start()
  const here = await mailroom.person()
  await mailroom.send(here, { fromEmail: 'hello@keyless.example' })
  t.is(await verdict(await received(here.email)), 'none')
  const organizationId = await mailroom.organization()
  const there = await mailroom.person({ organizationId })
  await mailroom.send(there, { fromEmail: 'hello@mine.example' })
  t.is(await verdict(await received(there.email)), 'none')
})

test('any headers and any body with CRLF line ends verify', async (t) => {
  const pair = await makeDkimPair()
  const domainId = await addDomain('property.example')
  await execute(em(), sql`delete from dkim_key where domain_id = ${domainId}`)
  await insertSigningKey(
    em(),
    mailroom.services.config.encryptionKey,
    { organizationId: mailroom.organizationId, domainId },
    pair,
  )
  names.set(`${pair.selector}._domainkey.property.example`, txt(`v=DKIM1; k=rsa; p=${pair.publicKey}`))
  const key = await keyOf('property.example')
  const line = fc.string({
    unit: fc.constantFrom('a', 'B', ' ', '\t', '.', ':', '=', '<', '~'),
    maxLength: 40,
  })
  const value = line.map((text) => `v${text}`)
  const mail = fc.record({ subject: value, folded: value, lines: fc.array(line, { maxLength: 12 }) })
  await fc.assert(
    fc.asyncProperty(mail, async ({ subject, folded, lines }) => {
      const headers = `From: a@property.example\r\nSubject:${subject}\r\n ${folded}\r\nTO : b@reader.example`
      const body = lines.map((text) => `${text}\r\n`).join('')
      const raw = `${await signMail(headers, body, key)}${headers}\r\n\r\n${body}`
      t.is(await verdict(raw), 'pass', JSON.stringify(raw))
    }),
    { numRuns: 150 },
  )
})

async function keyOf(domain: string): Promise<SigningKey> {
  const key = await findSigningKey(
    em(),
    mailroom.services.config.encryptionKey,
    mailroom.organizationId,
    domain,
  )
  if (!key) throw new Error(`${domain} has no key`)
  return key
}

test('private keys are stored encrypted, each in its own row, and a wrong key is told', async (t) => {
  const { encryptionKey } = mailroom.services.config
  const domainId = await addDomain('stored.example')
  const read = () =>
    row<{ stored: Buffer; selector: string }>(
      em(),
      sql`select private_key as stored, selector from dkim_key where domain_id = ${domainId}`,
    )
  const found = await read()
  t.false(found?.stored.includes('RSA') || found?.stored.subarray(0, 2).equals(Buffer.from([0x30, 0x82])))
  const context = `dkim/${mailroom.organizationId}/${domainId}/${found?.selector}`
  t.is(unseal(encryptionKey, found?.stored ?? Buffer.alloc(0), context)[0], 0x30)
  t.throws(() => unseal(encryptionKey, found?.stored ?? Buffer.alloc(0), `${context}x`))
  t.throws(() => unseal(Buffer.alloc(32, 1), found?.stored ?? Buffer.alloc(0), context))
  await t.notThrowsAsync(checkStoredKeys(em(), encryptionKey))
  await t.throwsAsync(checkStoredKeys(em(), Buffer.alloc(32, 1)), { message: /POSTLOOM_ENCRYPTION_KEY/ })
})

test('the development domain signs from its seeding on, and the mailbox holds mail that passes', async (t) => {
  const mailbox = await startMailbox({ file: join(scratchDirectory('mailbox'), 'mailbox.sqlite') })
  const room = await openMailroom({ relay: () => `smtp://127.0.0.1:${mailbox.smtpPort}` })
  const { databaseUrl, config, orm } = room.services
  await seedDevelopment({ databaseUrl, encryptionKey: config.encryptionKey })
  const owner = await row<{ organizationId: string; selector: string; publicKey: string }>(
    orm.em.fork(),
    sql`select k.organization_id as "organizationId", selector, public_key as "publicKey" from dkim_key k
      join domain d on d.organization_id = k.organization_id and d.id = k.domain_id where d.development`,
  )
  if (!owner) throw new Error('the development domain has no key')
  names.set(`${owner.selector}._domainkey.postloom.test`, txt(`v=DKIM1; p=${owner.publicKey}`))
  await room.start()
  try {
    const person = await room.person({ organizationId: owner.organizationId })
    const source = {
      subject: 'Grüße',
      content: HARD_CONTENT,
      contentType: 'MARKDOWN' as const,
      preview: null,
    }
    await room.send(person, { fromEmail: 'hello@postloom.test', marketing: true, source })
    const raw = await eventually('the email in the mailbox', async () => {
      const list = await fetch(`${mailbox.url}/api/v1/messages`)
      const { messages } = (await list.json()) as { messages: { ID: string }[] }
      if (!messages[0]) return undefined
      return await (await fetch(`${mailbox.url}/api/v1/message/${messages[0].ID}/raw`)).text()
    })
    t.is(await verdict(raw), 'pass')
  } finally {
    await room.close()
    await mailbox.close()
  }
})
