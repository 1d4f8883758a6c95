import type { TestOrganization } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import {
  type InboundDoor,
  openPostOffice,
  openSubmission,
  type PostOffice,
  type SentEmail,
  submittedBy,
} from '../test/helpers/reports.ts'
import { ANY_WORDS, plain, Talk } from '../test/helpers/smtp-talk.ts'
import { atOnce, defineExperiment, is, type Lab, PATIENCE } from './experiment.ts'

const AT_ONCE = 4
const KINDS = 6
/** Sequences that only resemble the end of a message; some servers accept each of them as one. */
const FALSE_ENDS = ['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r', '\r\n.\r', '\r.\r\n', '\n\0.\n']
const READERS = ['ada@reader.example', 'lin@reader.example']
/**
 * A source route before an address is ignored (RFC 5321, appendix C); the authenticated sender has named the address
 * itself.
 */
const ROUTED = { route: '@relay.example:', to: 'x@elsewhere.example' }
const NAMED = [...READERS, ROUTED.to]
/** The replies that accept a login, ask for a message and accept it. */
const TRUSTED = /^(?:235|354|250 2\.6\.0)/
const TAKEN = /^250 2\.6\.0 queued/
/** Any valid reply, possibly of several lines. */
const REPLY = /^(?:[2-5]\d\d-[^\n]*\n)*[2-5]\d\d /

/** Both listeners, an organization that may send, and an email with a known return path. */
type Bed = {
  office: PostOffice
  organization: TestOrganization
  submission: InboundDoor
  inbound: InboundDoor
  email: SentEmail
}
type Attack = { kind: string; run: (bed: Bed, found: Found) => Promise<void> }
/** The results of the attacks: accepted messages, and descriptions of violations. */
type Found = { taken: number; wrong: string[] }

/**
 * Attackers can send anything to the listeners: false ends of data, commands before TLS, logins without TLS, commands
 * in any order. One message must remain one, every 250 must have its email, and nothing may be relayed.
 */
export const smtpAttacks = defineExperiment({
  id: 'S4',
  title: 'smuggled messages, commands before TLS and conversations of any words, at both listeners',
  sizes: { small: { attacks: 60 }, full: { attacks: 3_000 } },
  async run(lab, { attacks: count }) {
    const bed = await openBed(lab)
    const { office, organization } = bed
    const attacks = drawAttacks(bed, count, lab.random)
    const found: Found = { taken: 0, wrong: [] }
    let next = 0
    await atOnce(AT_ONCE, async () => {
      for (let attack = attacks[next++]; attack; attack = attacks[next++]) {
        await attack.run(bed, found)
        if (next % 500 === 0) lab.say(`${next} of ${count} attacks, ${found.taken} messages taken`)
      }
    })
    const stored = await submittedBy(office.api.services, organization.id)
    const emails = stored.filter(({ recipient }) => recipient !== bed.email.recipient)
    const strangers = emails.filter(({ recipient }) => !NAMED.includes(recipient))
    await eventually('all that was taken to be sent', () => sentTo(office).length >= stored.length, PATIENCE)
    const relayed = sentTo(office).filter((to) => ![...NAMED, bed.email.recipient].includes(to))
    const status = (await office.email(bed.email.id)).status
    const honest = await submit(bed, message(organization, 'honest'))
    return {
      injected: countsOf(attacks),
      seen: {
        'messages taken': found.taken,
        'emails stored': emails.length,
        'got through': found.wrong.length,
      },
      claims: [
        is('got through', found.wrong.slice(0, 10).join('\n'), ''),
        is('emails for the messages that were taken', emails.length, found.taken),
        is('messages taken at all', found.taken > 0 ? 'some' : 'none', 'some'),
        is('emails to others than were named', strangers.length, 0),
        is('emails that were relayed', relayed.length, 0),
        is('the email that smuggled reports were about', status, 'SENT'),
        is('an honest message afterwards', honest.slice(0, 9), '250 2.6.0'),
        is('an honest report afterwards', (await report(bed)).slice(0, 3), '250'),
      ],
    }
  },
})

async function openBed(lab: Lab): Promise<Bed> {
  const office = await openPostOffice()
  lab.defer(() => office.close())
  const { services, url } = office.api
  const patient = { idleMs: 3_000 }
  const submission = await openSubmission(services, url, {
    failedLogins: Number.MAX_SAFE_INTEGER,
    ...patient,
  })
  lab.defer(() => submission.close())
  const inbound = await office.openDoor({ unknownRecipients: Number.MAX_SAFE_INTEGER, ...patient })
  lab.defer(() => inbound.close())
  const organization = await office.api.organization()
  return { office, organization, submission, inbound, email: await office.send(organization) }
}

/** Returns attacks of all kinds in turn. All random choices are made here, because the attacks run concurrently. */
function drawAttacks(bed: Bed, count: number, random: () => number): Attack[] {
  const one = <T>(of: readonly T[]): T => {
    const drawn = of[Math.floor(random() * of.length)]
    if (drawn === undefined) throw new Error('nothing to draw from')
    return drawn
  }
  const padding = () => 'words '.repeat(Math.floor(random() * 100))
  const { organization, email } = bed
  const submissionWords = [
    ...ANY_WORDS,
    'HELO x',
    'STARTTLS',
    'MAIL FROM:<>',
    `AUTH PLAIN ${plain('x', organization.token)}`,
    `AUTH PLAIN ${plain('x', 'pl_wrong')}`,
    `MAIL FROM:<hello@${organization.domain}>`,
    ...READERS.map((reader) => `RCPT TO:<${reader}>`),
    `RCPT TO:<${ROUTED.route}${ROUTED.to}>`,
    message(organization, 'drawn'),
  ]
  const inboundWords = [
    ...ANY_WORDS,
    'HELO',
    '',
    'EXPN list',
    'TURN',
    'QUIT',
    'MAIL FROM:<>',
    `RCPT TO:<${email.returnPath}>`,
    'RCPT TO:<victim@elsewhere.example>',
  ]
  /** The first conversations lead to a message; half of the others insert random commands. */
  const conversation = (at: number, words: readonly string[], way: readonly string[]): string[] => {
    if (at < KINDS) return [...way]
    const lines = random() < 0.5 ? [...way] : []
    const more = Math.floor(random() * (lines.length > 0 ? 3 : 14))
    for (let added = 0; added < more; added += 1) {
      lines.splice(Math.floor(random() * (lines.length + 1)), 0, one(words))
    }
    return lines
  }
  const toMessage = ['MAIL FROM:<>', `RCPT TO:<${READERS[0]}>`, 'DATA', message(organization, 'drawn'), '.']
  const toReport = [
    'EHLO x',
    'MAIL FROM:<>',
    `RCPT TO:<${email.returnPath}>`,
    'DATA',
    'Subject: hello',
    '',
    '.',
  ]
  const kinds: ((at: number) => Attack)[] = [
    () => smuggledMessage(one(FALSE_ENDS), padding()),
    () => smuggledReport(one(FALSE_ENDS.slice(0, 5)), padding()),
    (at) => injectedBeforeTls(conversation(at, submissionWords, toMessage)),
    (at) => inTheOpen(conversation(at, submissionWords, toMessage).filter((line) => line !== 'STARTTLS')),
    (at) => anyMessage(conversation(at, submissionWords, toMessage)),
    (at) => anyReport(conversation(at, inboundWords, toReport)),
  ]
  return Array.from({ length: count }, (_, at) => (kinds[at % KINDS] ?? one(kinds))(at))
}

function smuggledMessage(end: string, padding: string): Attack {
  return {
    kind: 'ends of data that are none, at submission',
    async run(bed, found) {
      const { organization } = bed
      const second = ['MAIL FROM:<x@y.example>', 'RCPT TO:<victim@elsewhere.example>', 'DATA', ''].join(
        '\r\n',
      )
      const inner = `${second}${message(organization, 'smuggled')}`
      const reply = await submit(bed, `${message(organization, padding)}${end}${inner}`)
      if (!reply.startsWith('550 5.6.0 ')) found.wrong.push(`${JSON.stringify(end)} was answered ${reply}`)
    },
  }
}

/** If the false end were accepted, the inner report would bounce the email of the return path. */
function smuggledReport(end: string, padding: string): Attack {
  return {
    kind: 'ends of data that are none, at the listener for reports',
    async run({ inbound, email }, found) {
      const talk = await Talk.open(inbound.port)
      const begin = ['MAIL FROM:<>', `RCPT TO:<${email.returnPath}>`, 'DATA']
      for (const line of ['EHLO x', ...begin]) await talk.say(line)
      const inner = `${begin.join('\r\n')}\r\nFrom: mailer-daemon@x\r\n\r\n550 5.1.1 user unknown`
      talk.write(`Subject: hello\r\n\r\n${padding}${end}${inner}\r\n.\r\nNOOP\r\nQUIT\r\n`)
      const replies = (await restOf(talk)).map((reply) => reply.slice(0, 3)).join(' ')
      if (replies !== '250 250 221') found.wrong.push(`${JSON.stringify(end)} was answered ${replies}`)
    },
  }
}

/** Commands sent together with STARTTLS, before TLS is established, must not be executed afterwards. */
function injectedBeforeTls(lines: readonly string[]): Attack {
  return {
    kind: 'commands in the open before TLS',
    async run({ submission, organization }, found) {
      const talk = await Talk.open(submission.port)
      await talk.say('EHLO client.test')
      const login = `AUTH PLAIN ${plain('x', organization.token)}`
      talk.write(`${['STARTTLS', 'EHLO evil.test', login, ...lines].join('\r\n')}\r\n`)
      const ready = await talk.reply()
      if (!ready.startsWith('220')) found.wrong.push(`STARTTLS was answered ${ready}`)
      const isSecured = await talk.upgrade(submission.cert).then(
        () => true,
        () => false,
      )
      if (isSecured) talk.write('EHLO client.test\r\nMAIL FROM:<a@b.example>\r\nQUIT\r\n')
      const replies = await restOf(talk)
      if (
        replies.some((reply) => TRUSTED.test(reply)) ||
        (isSecured && replies[1]?.startsWith('530 5.7.0 ') !== true)
      ) {
        found.wrong.push(`commands before TLS were answered ${replies.join(' | ')}`)
      }
    },
  }
}

function inTheOpen(lines: readonly string[]): Attack {
  return {
    kind: 'conversations over an open line',
    async run({ submission }, found) {
      const talk = await Talk.open(submission.port)
      for (const reply of await converse(talk, lines)) {
        if (TRUSTED.test(reply) || !REPLY.test(reply)) found.wrong.push(`over an open line: ${reply}`)
      }
    },
  }
}

function anyMessage(lines: readonly string[]): Attack {
  return {
    kind: 'conversations of any words, at submission',
    async run({ submission, organization }, found) {
      const talk = await Talk.loggedIn(submission, organization.token)
      for (const reply of await converse(talk, lines)) {
        if (!REPLY.test(reply)) found.wrong.push(`no reply of SMTP: ${reply}`)
        if (TAKEN.test(reply)) found.taken += 1
      }
    },
  }
}

function anyReport(lines: readonly string[]): Attack {
  return {
    kind: 'conversations of any words, at the listener for reports',
    async run({ inbound }, found) {
      const talk = await Talk.open(inbound.port)
      for (const reply of await converse(talk, lines)) {
        if (!REPLY.test(reply) || reply.startsWith('235')) found.wrong.push(`at the reports: ${reply}`)
      }
    },
  }
}

/** Sends all lines at once, then ends whatever may be open (a message, a login). Returns all replies. */
async function converse(talk: Talk, lines: readonly string[]): Promise<string[]> {
  talk.write(`${[...lines, '.', '.', '.', 'QUIT'].join('\r\n')}\r\n`)
  return await restOf(talk)
}

async function restOf(talk: Talk): Promise<string[]> {
  const replies: string[] = []
  for (let reply = await talk.reply(); reply !== ''; reply = await talk.reply()) replies.push(reply)
  talk.close()
  return replies
}

async function submit({ submission, organization }: Bed, raw: string): Promise<string> {
  const talk = await Talk.loggedIn(submission, organization.token)
  for (const line of [`MAIL FROM:<x@${organization.domain}>`, `RCPT TO:<${READERS[0]}>`, 'DATA'])
    await talk.say(line)
  talk.write(`${raw}\r\n.\r\n`)
  const reply = await talk.reply()
  talk.close()
  return reply
}

async function report({ office, inbound, email }: Bed): Promise<string> {
  return await office.report('Subject: hello\r\n\r\nHello', email.returnPath, { door: inbound })
}

function message({ domain }: TestOrganization, words: string): string {
  return `From: hello@${domain}\r\nSubject: A note\r\n\r\nHello ${words}`
}

/** Returns the recipient of each email that arrived. */
function sentTo({ sink }: PostOffice): string[] {
  return sink.accepted().map(({ recipient }) => recipient)
}

function countsOf(attacks: readonly Attack[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { kind } of attacks) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}
