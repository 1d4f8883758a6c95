import { sql } from 'kysely'
import { type ParsedMail, simpleParser } from 'mailparser'

import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute, json, rows } from '../src/database.ts'
import { formatMessageId } from '../src/delivery/identity.ts'
import { enqueueMessages, type NewMessage } from '../src/domain/emails/messages.ts'
import { newId } from '../src/ids.ts'
import type { TestApi } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import type { Sink } from '../test/helpers/smtp-sink.ts'
import { startStack } from '../test/helpers/stack.ts'
import { defineExperiment, is, type Lab, PATIENCE } from './experiment.ts'
import { attacks, markdownFallback, onOneLine } from './s6-attacks.ts'
import { differences, HARMLESS, HARMLESS_FALLBACK, spaced, withValues } from './s6-judge.ts'
import { templatesFor } from './s6-templates.ts'

/** The number of concurrent attacks. */
const BATCH = 20
/** A valid address with characters that have a meaning in HTML, Markdown and URLs. */
const ADDRESS = "x'onload='y&amp=`_*{}%22|@reader.example"

type Bed = { api: TestApi; sink: Sink }
/** One reader's emails by content type, and the pages behind their links. */
type Received = { mails: Map<string, ParsedMail>; pages: Map<string, string> }

/**
 * Makes every value in an email hostile: name, phone, fields, list items, organization, sender, fallbacks. The received
 * emails are parsed as mail and as HTML, and compared with the same emails with harmless values.
 */
export const injection = defineExperiment({
  id: 'S6',
  title: 'HTML, Markdown and URLs through every variable, content type and position',
  sizes: { small: { attacks: 76 }, full: { attacks: 1_000 } },
  async run(lab, { attacks: count }) {
    const bed = await openBed(lab)
    const harmless = await receive(bed, HARMLESS, HARMLESS_FALLBACK)
    const perAttack = { emails: harmless.mails.size, pages: harmless.pages.size }
    const all = attacks(count, lab.random)
    const found: string[] = []
    for (let at = 0; at < all.length; at += BATCH) {
      const some = all.slice(at, at + BATCH)
      const differing = await Promise.all(some.map((attack) => judgeOne(bed, harmless, attack)))
      found.push(...differing.flat())
      bed.sink.clear()
      if ((at / BATCH) % 10 === 0)
        lab.say(`${at + some.length} of ${all.length} attacks, ${found.length} through`)
    }
    return {
      injected: { attacks: all.length },
      seen: {
        'emails judged': all.length * perAttack.emails,
        'pages judged': all.length * perAttack.pages,
        'got through': found.length,
      },
      claims: [
        is('emails for each attack', perAttack.emails, 4),
        is('pages for each attack', perAttack.pages, 2),
        is('got through', found.slice(0, 10).join('\n'), ''),
        is('targets of clicks that are neither web, mail nor telephone', await strayTargets(bed), ''),
      ],
    }
  },
})

async function openBed(lab: Lab): Promise<Bed> {
  const stack = await startStack()
  lab.defer(() => stack.close())
  return stack
}

/** Returns link targets that are not allowed, one per line. */
async function strayTargets({ api }: Bed): Promise<string> {
  const found = await rows<{ target: string }>(
    api.services.orm.em.fork(),
    sql`select distinct target from link cross join unnest(targets) as target
      where target <> '' and target !~* '^(https?://[^/?#[:space:]]|mailto:.|tel:.)' limit 10`,
  )
  return found.map(({ target }) => target).join('\n')
}

/** Compares what a reader with these values got with what a harmless reader got. Returns the differences. */
async function judgeOne(bed: Bed, harmless: Received, attack: string): Promise<string[]> {
  const hostile = await receive(bed, attack, markdownFallback(attack))
  const inMails = [...hostile.mails].flatMap(([type, mail]) => {
    const other = harmless.mails.get(type)
    return other ? judgeMail(mail, other, attack).map((what) => `${type}: ${what}`) : [`no twin for ${type}`]
  })
  const inPages = [...hostile.pages].flatMap(([path, page]) =>
    differences(page, harmless.pages.get(path) ?? '', attack).map((what) => `${path}: ${what}`),
  )
  return [...inMails, ...inPages].map((what) => `${JSON.stringify(attack)} in ${what}`)
}

function judgeMail(mail: ParsedMail, harmless: ParsedMail, attack: string): string[] {
  const wrong = differences(mail.html || '', harmless.html || '', attack)
  const expect = (what: string, seen: string, expected: string): void => {
    if (seen !== expected) wrong.push(`${what} ${JSON.stringify(seen)}, not ${JSON.stringify(expected)}`)
  }
  expect('the subject', mail.subject ?? '', withValues(harmless.subject ?? '', attack))
  expect('the headers', [...mail.headers.keys()].join(), [...harmless.headers.keys()].join())
  const [sender, other] = [mail, harmless].map(({ from }) => from?.value[0]?.name ?? '')
  // In a sender name, control characters and bidirectional controls are replaced in two steps, each of which may leave
  // a space.
  expect('the sender', spaced(onOneLine(sender ?? '')), spaced(withValues(other ?? '', attack)))
  const [lines, others] = [mail, harmless].map(({ text = '' }) => String(text.split('\n').length))
  expect('lines of text', lines ?? '', others ?? '')
  expect('attachments', String(mail.attachments.length), '0')
  return wrong
}

/**
 * Sends every email to a subscriber whose values are all `value`, in an organization of that name, and opens the pages.
 */
async function receive({ api, sink }: Bed, value: string, fallback: string): Promise<Received> {
  const organization = await api.organization()
  const [subscriberId, stored] = [newId(), value.toWellFormed().replaceAll('\0', '')]
  const fields = { v: stored, list: [stored, stored] }
  await execute(
    api.services.orm.em.fork(),
    sql`with named as (update organization set name = ${stored} where id = ${organization.id})
      insert into subscriber (id, organization_id, email, name, phone, status, fields)
      values (${subscriberId}, ${organization.id}, ${ADDRESS}, ${stored}, ${stored}, 'SUBSCRIBED', ${json(fields)})`,
  )
  const templates = Object.entries(templatesFor(value, fallback))
  const drafts = templates.map(([, source]): NewMessage => ({
    class: 'TRANSACTIONAL',
    marketing: true,
    tracking: false,
    subscriberId,
    recipient: ADDRESS,
    fromName: stored,
    fromEmail: `hello@${organization.domain}`,
    source,
  }))
  const actor = { kind: 'system', id: 'faults', name: 'Faults' } as const
  const made = await unitOfWork(api.services, { organizationId: organization.id, actor }, (call) =>
    enqueueMessages(call, drafts),
  )
  const mails = new Map<string, ParsedMail>()
  for (const [index, { id }] of made.entries()) {
    const messageId = `<${formatMessageId({ id, fromEmail: `hello@${organization.domain}` })}>`
    const type = templates[index]?.[0] ?? ''
    const { raw } = await eventually(
      `the ${type} email of ${JSON.stringify(value)}`,
      () => sink.accepted().find((entry) => entry.messageId === messageId),
      PATIENCE,
    )
    mails.set(type, await simpleParser(raw))
  }
  return { mails, pages: await pagesOf(mails.get('MARKDOWN')) }
}

/** Fetches the pages behind the links of an email: unsubscribing and the online view. */
async function pagesOf(mail: ParsedMail | undefined): Promise<Map<string, string>> {
  const pages = new Map<string, string>()
  for (const [, url = '', path = ''] of (mail?.text ?? '').matchAll(
    /(http:\/\/127\.0\.0\.1:\d+\/([uv])\/[\w.-]+)/g,
  )) {
    const answer = await fetch(url)
    if (answer.status !== 200) throw new Error(`/${path}/ answered ${answer.status}`)
    pages.set(`/${path}/`, await answer.text())
  }
  return pages
}
