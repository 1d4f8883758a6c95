import { sql } from 'kysely'

import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { execute } from '../src/database.ts'
import { enqueueMessages } from '../src/domain/emails/messages.ts'
import { newId } from '../src/ids.ts'
import type { TestApi, TestOrganization } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import type { Sink } from '../test/helpers/smtp-sink.ts'
import { startStack } from '../test/helpers/stack.ts'
import { defineExperiment, is, type Lab, PATIENCE } from './experiment.ts'
import { headerAttacks } from './s5-attacks.ts'

/** The number of concurrent attacks, each in an organization of its own. */
const BATCH = 6
const ALWAYS = ['from', 'to', 'subject', 'date', 'message-id', 'mime-version', 'content-type']
const OURS = new Set([...ALWAYS, 'reply-to', 'list-unsubscribe', 'list-unsubscribe-post'])
const UNPRINTABLE = /[^\t\x20-\x7e]/
const CONTROL = /[\p{Cc}\u2028\u2029]/u
const TEXT = 'Hi {{name}} {{evil}} {{org-name}} {{email}}'

type Bed = { api: TestApi; sink: Sink }
/** The results of one attack: requests made, requests accepted, emails that arrived, and what was wrong with them. */
type Found = { shown: number; taken: number; emails: number; wrong: string[] }

/**
 * Values written by callers and subscribers reach From, To, Reply-To and Subject. Whatever they contain, the bytes on
 * the wire must have only our own headers: line ends are refused on input or made harmless on output.
 */
export const headers = defineExperiment({
  id: 'S5',
  title: 'line ends, encoded words and quotes in every value that reaches a header',
  sizes: { small: { attacks: 19 }, full: { attacks: 500 } },
  async run(lab, { attacks: count }) {
    const bed = await openBed(lab)
    const attacks = headerAttacks(count, lab.random)
    const found: Found[] = []
    for (let at = 0; at < attacks.length; at += BATCH) {
      found.push(...(await Promise.all(attacks.slice(at, at + BATCH).map((attack) => tryOne(bed, attack)))))
      bed.sink.clear()
      if ((at / BATCH) % 10 === 0) lab.say(`${found.length} of ${attacks.length} attacks`)
    }
    const total = (key: 'shown' | 'taken' | 'emails') => found.reduce((sum, each) => sum + each[key], 0)
    const wrong = found.flatMap((each) => each.wrong)
    return {
      injected: { attacks: attacks.length, 'values shown to doors': total('shown') },
      seen: { 'taken in': total('taken'), 'emails judged': total('emails'), 'got through': wrong.length },
      claims: [
        is('got through', wrong.slice(0, 10).join('\n'), ''),
        is(
          'attacks of which no email was judged',
          found.filter(({ emails }) => emails < WAYS_PAST_THE_DOORS).length,
          0,
        ),
      ],
    }
  },
})

async function openBed(lab: Lab): Promise<Bed> {
  const stack = await startStack()
  lab.defer(() => stack.close())
  return stack
}

/**
 * Sends an attack to every interface, then writes it directly to the rows that headers are made from, and checks every
 * resulting email.
 */
async function tryOne(bed: Bed, attack: string): Promise<Found> {
  const organization = await bed.api.organization({ doubleOptIn: true })
  const found: Found = { shown: 0, taken: 0, emails: 0, wrong: [] }
  const expected = [
    ...(await throughFrozenDoor(bed, organization, attack, found)),
    ...(await throughTools(organization, attack, found)),
    ...(await pastTheDoors(bed, organization, attack)),
  ]
  for (const recipient of expected) {
    const raw = await received(bed, recipient)
    found.emails += 1
    const fault = faultOf(raw, recipient, `hello@${organization.domain}`)
    if (fault !== null) found.wrong.push(`${JSON.stringify(attack)} to ${recipient}: ${fault}`)
  }
  return found
}

/** Returns the email to an address, in any organization. */
async function received({ sink }: Bed, recipient: string): Promise<Buffer> {
  const entry = await eventually(
    `the email to ${recipient}`,
    () => sink.accepted().find((each) => each.recipient === recipient),
    PATIENCE,
  )
  return entry.raw
}

/** Sends the attack in every member of the body of POST /api/v1/emails. */
async function throughFrozenDoor(
  { api }: Bed,
  { token, domain, id }: TestOrganization,
  attack: string,
  found: Found,
): Promise<string[]> {
  const sent: string[] = []
  for (const [index, change] of [
    { subject: attack },
    { preview: attack },
    { from: `${attack} <hello@${domain}>` },
    { from: `"${attack}" <hello@${domain}>` },
    { from: `Shop <hello@${domain}${attack}>` },
    { replyTo: `a@b.example${attack}` },
    { to: `a@b.example${attack}` },
    { content: attack },
  ].entries()) {
    const to = `v${index}-${id}@reader.example`
    const body = { to, subject: 'Hi', content: 'Hi', ...change }
    const { status } = await api.request('POST', '/api/v1/emails', { token, body })
    if (note(found, status, [200, 422], change)) sent.push(body.to)
  }
  return sent
}

/**
 * Sends the attack to the tools whose values appear in headers later. The confirmation email of a new subscriber shows
 * them.
 */
async function throughTools(organization: TestOrganization, attack: string, found: Found): Promise<string[]> {
  const { domain, id } = organization
  const email = `t-${id}@reader.example`
  const markdown = 'Hi {{name}} [confirm]({{confirm-url}})'
  await organization.data('add_subscriber', { email: `first-${id}@reader.example`, fields: { evil: 'x' } })
  await organization.data('update_organization_settings', { confirmationEmail: { subject: TEXT, markdown } })
  let isAdded = false
  for (const [tool, input] of [
    ['update_organization_settings', { name: attack }],
    ['create_email_sender', { localPart: 'named', domain, name: attack }],
    ['create_email_sender', { localPart: 'answered', domain, name: 'x', replyTo: `a@b.example${attack}` }],
    ['add_subscriber', { email: `a@reader.example${attack}` }],
    ['add_subscriber', { email, name: attack, fields: { evil: attack } }],
    ['update_organization_settings', { confirmationEmail: { subject: attack, markdown } }],
  ] as const) {
    const { status } = await organization.call(tool, input)
    const isTaken = note(found, status, [200, 400], { tool, ...input })
    if ('fields' in input) isAdded = isTaken
  }
  return isAdded ? [email] : []
}

function note(found: Found, status: number, expected: readonly number[], input: object): boolean {
  found.shown += 1
  if (!expected.includes(status)) found.wrong.push(`${status} to ${JSON.stringify(input)}`)
  if (status === 200) found.taken += 1
  return status === 200
}

const WAYS_PAST_THE_DOORS = 3

/** Writes the attack directly to the database. PostgreSQL stores all of it except NUL. */
async function pastTheDoors({ api }: Bed, organization: TestOrganization, attack: string): Promise<string[]> {
  const { id, token, domain } = organization
  const text = attack.replaceAll('\u0000', '').toWellFormed()
  const one = `s-${id}@reader.example`
  const many = `m-${id}@reader.example`
  const asked = `c-${id}@reader.example`
  const reader = newId()
  await execute(
    api.services.orm.em.fork(),
    sql`with named as (update organization set name = ${text} where id = ${id}),
      answered as (update sender set name = ${text}, reply_to = ${`a@b.example${text}`}
        where organization_id = ${id} and is_default)
      insert into subscriber (id, organization_id, email, name, status, fields)
      select * from (values (new_id(), ${id}::uuid, ${one}, ${text}, 'SUBSCRIBED', jsonb_build_object('evil', ${text}::text)),
        (${reader}::uuid, ${id}::uuid, ${many}, ${text}, 'SUBSCRIBED', jsonb_build_object('evil', ${text}::text))) as made`,
  )
  const body = { to: one, subject: TEXT, preview: TEXT, content: TEXT }
  await api.request('POST', '/api/v1/emails', { token, body })
  const actor = { kind: 'system', id: 'faults', name: 'Faults' } as const
  const source = { subject: text, preview: text, contentType: 'MARKDOWN' as const, content: TEXT }
  await unitOfWork(api.services, { organizationId: id, actor }, (call) =>
    enqueueMessages(call, [
      {
        class: 'TRANSACTIONAL',
        marketing: true,
        subscriberId: reader,
        recipient: many,
        fromName: text,
        fromEmail: `hello@${domain}`,
        replyTo: `a@b.example${text}`,
        source,
      },
    ]),
  )
  await organization.data('add_subscriber', { email: asked })
  return [one, many, asked]
}

/** Returns what is wrong with the headers of an email, or null when they are exactly ours. */
function faultOf(raw: Buffer, recipient: string, sender: string): string | null {
  const text = raw.toString('latin1')
  const head = text.slice(0, text.indexOf('\r\n\r\n'))
  const found = new Map<string, string>()
  for (const line of head.split(/\r\n(?![ \t])/)) {
    const [, name = '', value = ''] = /^([!-9;-~]+): (.*)$/s.exec(line) ?? []
    if (!OURS.has(name.toLowerCase())) return `a header that is not ours: ${JSON.stringify(line)}`
    if (found.has(name.toLowerCase())) return `${name} stands twice`
    found.set(name.toLowerCase(), value)
  }
  const missing = ALWAYS.find((name) => !found.has(name))
  if (missing !== undefined) return `${missing} is missing, the header ended early`
  if (!new RegExp(`(?:^|<)${recipient.replaceAll('.', '\\.')}>?$`).test(found.get('to') ?? ''))
    return `To: ${found.get('to')}`
  if (!found.get('from')?.endsWith(`${sender}>`) && found.get('from') !== sender)
    return `From: ${found.get('from')}`
  // Only CRLF ends a line, no other character resembles a line end, and no line is blank.
  const lines = head.split('\r\n')
  if (lines.some((line) => line.trim() === '' || UNPRINTABLE.test(line))) return JSON.stringify(head)
  // All encoded words are ours and decode to a single line. A bare address is never decoded.
  const decodable = ['from', 'to', 'subject'].map((name) => found.get(name) ?? '').join('\n')
  for (const [, coded = '', end] of decodable.matchAll(/=\?((?:utf-8\?B\?[A-Za-z0-9+/=]+)?)(\?=)?/g)) {
    const decoded = Buffer.from(coded.slice('utf-8?B?'.length), 'base64').toString()
    if (!coded || !end || CONTROL.test(decoded)) return `not an encoded word of ours: ${head}`
  }
  return null
}
