import { Agent, request } from 'node:http'

import { sql } from 'kysely'

import { hashToken, makeAdminKey } from '../src/catalogue/tokens.ts'
import { execute, row } from '../src/database.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import { type InboundDoor, openSubmission } from '../test/helpers/reports.ts'
import { plain, Talk } from '../test/helpers/smtp-talk.ts'
import { atMost, atOnce, defineExperiment, is } from './experiment.ts'

/** Two loopback addresses, used as two different clients. */
const ATTACKER = '127.0.0.66'
const CUSTOMER = '127.0.0.77'
const AT_ONCE = 8
/**
 * The failures that each interface accepts from one address within its window; see api/wrong-tokens.ts,
 * smtp/submission.ts and smtp/server.ts.
 */
const BORNE = { http: { most: 100, minutes: 1 }, smtp: { most: 10, minutes: 10 } }
const ROUTES = ['/api/v2/tools/list_tags', '/api/v1/emails', '/api/v2/tokens/current', '/api/v1/admin/tools']

type Counts = Record<string, number>

/**
 * One address tries tokens and admin keys that are mistyped, cut, revoked, expired or malformed, over HTTP and SMTP.
 * Both interfaces must block it before a lookup in the database. Clients with a valid token must go on working from
 * other addresses, and over HTTP from the same address too.
 */
export const wrongTokens = defineExperiment({
  id: 'S9',
  title: 'wrong tokens by the thousand, by HTTP and by SMTP',
  sizes: {
    small: { http: 400, smtp: 60, sent: 20 },
    full: { http: 30_000, smtp: 3_000, sent: 1_000 },
  },
  async run(lab, sizes) {
    const api = await startApi()
    lab.defer(() => api.close())
    const door = await openSubmission(api.services, api.url)
    lab.defer(() => door.close())
    const agent = new Agent({ keepAlive: true, maxSockets: 4 * AT_ONCE })
    lab.defer(async () => agent.destroy())
    const [customer, neighbour] = [await api.organization(), await api.organization()]
    const wrong = await wrongOnes(api, customer, lab.random)
    // The neighbour's token was used before the attack and comes from the attacker's address.
    const warm = await ask(api, agent, { from: ATTACKER, token: neighbour.token, at: 1, body: '{}' })

    const answers: Counts = {}
    const replies: Counts = {}
    async function attackByHttp(): Promise<void> {
      for (let at = total(answers); at < sizes.http; at = total(answers)) {
        const status = await ask(api, agent, { from: ATTACKER, token: wrong(), at, body: '{}' })
        count(answers, String(status))
        if (at % 5_000 === 4_999) lab.say(`${at} of ${sizes.http} requests, ${total(replies)} logins`)
      }
    }
    async function attackBySmtp(): Promise<void> {
      while (total(replies) < sizes.smtp) count(replies, await tryLogin(door, wrong()))
    }
    const began = performance.now()
    const [byHttp, bySmtp, byNeighbour]: [Counts, Counts, Counts] = [{}, {}, {}]
    await Promise.all([
      atOnce(AT_ONCE, attackByHttp),
      atOnce(AT_ONCE, attackBySmtp),
      sendByHttp({ api, agent, from: CUSTOMER, who: customer }, sizes.sent, byHttp),
      sendByHttp({ api, agent, from: ATTACKER, who: neighbour }, sizes.sent, byNeighbour),
      sendBySmtp(door, customer, sizes.sent, bySmtp),
    ])
    const took = performance.now() - began
    const stored = await row<{ emails: number }>(
      api.services.orm.em.fork(),
      sql`select count(*)::int as emails from message`,
    )
    return {
      injected: { 'wrong tokens by HTTP': total(answers), 'wrong tokens by SMTP': total(replies) },
      seen: { 'answers by HTTP': shown(answers), 'replies by SMTP': shown(replies) },
      claims: [
        is('answer to a good token before', warm, 422),
        is('other answers than 401 and 429', shown(answers, ['401', '429']), ''),
        is('other replies than 535 and 421', shown(replies, ['535', '421']), ''),
        atMost('wrong tokens that were looked up by HTTP', answers['401'] ?? 0, borne(BORNE.http, took)),
        atMost('wrong tokens that were looked up by SMTP', replies['535'] ?? 0, borne(BORNE.smtp, took)),
        is('emails of a customer by HTTP', shown(byHttp), `200: ${sizes.sent}`),
        is('emails of a customer by SMTP', shown(bySmtp), `250: ${sizes.sent}`),
        is("emails by HTTP from the attacker's address", shown(byNeighbour), `200: ${sizes.sent}`),
        is('emails that are stored', stored?.emails ?? 0, 3 * sizes.sent),
      ],
    }
  },
})

/**
 * Returns the limit for all windows that began. Up to `AT_ONCE` concurrent attempts may pass before the last is
 * counted.
 */
function borne({ most, minutes }: { most: number; minutes: number }, tookMs: number): number {
  return (most + AT_ONCE) * (1 + Math.floor(tookMs / (minutes * 60_000)))
}

/** Returns a function that draws random invalid tokens. */
async function wrongOnes(
  api: TestApi,
  organization: TestOrganization,
  random: () => number,
): Promise<() => string> {
  const em = api.services.orm.em.fork()
  const gone: string[] = []
  for (const change of ['revoked_at = now()', "expires_at = now() - interval '1 hour'"]) {
    const token = await organization.tokenWith(['emails'])
    await execute(em, sql`update api_token set ${sql.raw(change)} where token_hash = ${hashToken(token)}`)
    gone.push(token)
  }
  const good = organization.token
  const below = (most: number) => Math.floor(random() * most)
  const ways: (() => string)[] = [
    () => gone[below(gone.length)] ?? '',
    () => good.slice(0, below(good.length - 1) + 1),
    () => swapOne(good, below(good.length)),
    () => good.toLowerCase(),
    () => `${good}x`,
    () => `pl_${'x'.repeat(40)}`,
    makeAdminKey,
    () => Buffer.from(String(random())).toString('base64url'),
    () => "'; drop table api_token; --".replaceAll(' ', '+'),
  ]
  return () => ways[below(ways.length)]?.() ?? ''
}

function swapOne(text: string, at: number): string {
  return `${text.slice(0, at)}${text.charAt(at) === 'q' ? 'r' : 'q'}${text.slice(at + 1)}`
}

type Asked = { from: string; token: string; at: number; body: string }

async function ask(api: TestApi, agent: Agent, { from, token, at, body }: Asked): Promise<number> {
  const path = ROUTES[at % ROUTES.length] ?? ''
  const method = path.endsWith('current') ? 'GET' : 'POST'
  const content = method === 'GET' ? '' : body
  return await new Promise<number>((resolve, reject) => {
    const sent = request(
      api.url + path,
      {
        method,
        agent,
        localAddress: from,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(content),
        },
      },
      (answer) => {
        answer.resume()
        answer.once('end', () => resolve(answer.statusCode ?? 0))
      },
    )
    sent.once('error', reject)
    sent.end(content)
  })
}

/** Tries a login on a new connection. Returns the code of the reply, or of the greeting that refused the connection. */
async function tryLogin({ port, cert }: InboundDoor, token: string): Promise<string> {
  const talk = await Talk.open(port, ATTACKER)
  try {
    if (!talk.greeting.startsWith('220')) return talk.greeting.slice(0, 3)
    await talk.secure(cert)
    return (await talk.say(`AUTH PLAIN ${plain('someone', token)}`)).slice(0, 3)
  } finally {
    talk.close()
  }
}

type Sender = { api: TestApi; agent: Agent; from: string; who: TestOrganization }

async function sendByHttp({ api, agent, from, who }: Sender, most: number, replies: Counts): Promise<void> {
  for (let number = 0; number < most; number += 1) {
    const body = JSON.stringify({
      to: `h${number}@reader.example`,
      subject: 'Your code',
      content: 'It is 1234',
    })
    count(replies, String(await ask(api, agent, { from, token: who.token, at: 1, body })))
  }
}

async function sendBySmtp(
  door: InboundDoor,
  { token, domain }: TestOrganization,
  most: number,
  replies: Counts,
): Promise<void> {
  for (let number = 0; number < most; number += 1) {
    const talk = await Talk.loggedIn(door, token)
    for (const line of [`MAIL FROM:<hello@${domain}>`, `RCPT TO:<s${number}@reader.example>`, 'DATA'])
      await talk.say(line)
    talk.write(`From: hello@${domain}\r\nSubject: Your code\r\n\r\nIt is 1234\r\n.\r\n`)
    count(replies, (await talk.reply()).slice(0, 3))
    talk.close()
  }
}

function count(counts: Counts, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1
}

function total(counts: Counts): number {
  return Object.values(counts).reduce((sum, each) => sum + each, 0)
}

function shown(counts: Counts, besides: readonly string[] = []): string {
  const left = Object.entries(counts).filter(([what]) => !besides.includes(what))
  return left.map(([what, times]) => `${what}: ${times}`).join(', ')
}
