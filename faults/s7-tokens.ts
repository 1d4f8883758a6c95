import { sql } from 'kysely'

import { array, execute, row } from '../src/database.ts'
import { readToken, signToken, type TrackingToken } from '../src/delivery/tracking-token.ts'
import { newId, readId } from '../src/ids.ts'
import type { TestApi } from '../test/helpers/api.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { startStack } from '../test/helpers/stack.ts'
import { atOnce, defineExperiment, is, type Lab, PATIENCE } from './experiment.ts'

type Kind = TrackingToken['kind']

/** The path and methods for each kind of token. */
const DOORS: Record<Kind, { path: (token: string) => string; methods: readonly string[] }> = {
  click: { path: (token) => `/c/${token}`, methods: ['GET', 'HEAD'] },
  open: { path: (token) => `/o/${token}.gif`, methods: ['GET', 'HEAD'] },
  unsubscribe: { path: (token) => `/u/${token}`, methods: ['GET', 'HEAD', 'POST'] },
  view: { path: (token) => `/v/${token}`, methods: ['GET', 'HEAD'] },
  confirm: { path: (token) => `/s/${token}`, methods: ['GET', 'HEAD', 'POST'] },
}
const KINDS = ['click', 'open', 'unsubscribe', 'view', 'confirm'] as const
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const BROWSER = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
const AT_ONCE = 8

/** A subscriber who got an email and may confirm, with a token of each kind. */
type Reader = { subscriberId: string; tokens: Record<Kind, string> }
type Seen = { status: string; confirmed: number; events: number; visits: number }

/**
 * Tries tokens for clicks, opens, unsubscribing, the online view and confirming that differ from the signed ones:
 * changed, cut, spliced, or of another kind, subscriber, organization or secret. None may open anything. GET and HEAD
 * must not unsubscribe or confirm anybody, even with a correct token.
 */
export const tokens = defineExperiment({
  id: 'S7',
  title: 'mutated tokens of clicks, opens, unsubscribing, viewing and confirming',
  sizes: { small: { readers: 2, requests: 600 }, full: { readers: 20, requests: 30_000 } },
  async run(lab, { readers: count, requests }) {
    const api = await openApi(lab)
    const readers = [...(await readersOf(api, count)), ...(await readersOf(api, 1))]
    const { secret } = api.services.config
    const letters = takenByReading(secret, readers)
    const before = await see(api, readers)
    const wrong: string[] = []
    let shown = 0
    await atOnce(AT_ONCE, async () => {
      while (shown < requests) {
        shown += 1
        if (shown % 5_000 === 0) lab.say(`${shown} of ${requests} requests, ${wrong.length} taken`)
        const fault = await showOne(api, readers, lab.random)
        if (fault !== null) wrong.push(fault)
      }
    })
    const looks = await lookOnly(api, readers)
    await api.settleVisits()
    const after = await see(api, readers)
    return {
      injected: { readers: readers.length, 'letters changed': letters.tried, requests: shown, looks },
      seen: { 'taken by reading': letters.taken, 'taken over HTTP': wrong.length },
      claims: [
        is('tokens with one letter changed that were read', letters.taken, 0),
        is('answers that are not those to a stranger', wrong.slice(0, 10).join('\n'), ''),
        is('what is known of the readers afterwards', JSON.stringify(after), JSON.stringify(before)),
        is('doors that the right tokens do not open', await shutDoors(api, readers), ''),
      ],
    }
  },
})

async function openApi(lab: Lab): Promise<TestApi> {
  const stack = await startStack()
  lab.defer(() => stack.close())
  return stack.api
}

/** Creates subscribers of one organization who got an email a minute ago and were asked to confirm. */
async function readersOf(api: TestApi, count: number): Promise<Reader[]> {
  const organization = await api.organization()
  const em = api.services.orm.em.fork()
  const readers: Reader[] = []
  for (let index = 0; index < count; index += 1) {
    const body = {
      to: `${newId()}@reader.example`,
      subject: 'News',
      content: '[One](https://shop.example/1)',
    }
    const answer = await api.request('POST', '/api/v1/emails', { token: organization.token, body })
    const messageId = readId('eml', answer.body.id) ?? ''
    const message = await eventually(
      'the email to be sent',
      () =>
        row<{ subscriberId: string }>(
          em,
          sql`select subscriber_id as "subscriberId" from message
          where organization_id = ${organization.id} and id = ${messageId} and status = 'SENT'`,
        ),
      PATIENCE,
    )
    const { subscriberId } = message
    const ids = { organizationId: organization.id, messageId, subscriberId, position: 0 }
    const sign = (kind: Kind) => signToken(api.services.config.secret, { kind, ...ids })
    readers.push({
      subscriberId,
      tokens: {
        click: sign('click'),
        open: sign('open'),
        unsubscribe: sign('unsubscribe'),
        view: sign('view'),
        confirm: sign('confirm'),
      },
    })
  }
  // Visits soon after sending count as machines', so the emails are made older.
  await execute(
    em,
    sql`with aged as (update message set sent_at = now() - interval '1 minute'
        where organization_id = ${organization.id})
      update subscriber set status = 'PENDING_CONFIRMATION', confirmation_requested_at = now()
      where organization_id = ${organization.id}`,
  )
  return readers
}

/** Tries every letter at every position of every token directly, without HTTP. */
function takenByReading(secret: string, readers: readonly Reader[]): { tried: number; taken: number } {
  let [tried, taken] = [0, 0]
  for (const reader of readers)
    for (const kind of KINDS) {
      const token = reader.tokens[kind]
      for (let at = 0; at < token.length; at += 1)
        for (const letter of LETTERS) {
          if (letter === token[at]) continue
          tried += 1
          if (readToken(secret, kind, token.slice(0, at) + letter + token.slice(at + 1))) taken += 1
        }
    }
  return { tried, taken }
}

/** Requests a page with one wrong token. Returns what was wrong with the answer, or null. */
async function showOne(
  api: TestApi,
  readers: readonly Reader[],
  random: () => number,
): Promise<string | null> {
  const among = <Each>(list: readonly Each[]): Each => {
    const chosen = list[Math.floor(random() * list.length)]
    if (chosen === undefined) throw new Error('nothing to choose from')
    return chosen
  }
  const kind = among(KINDS)
  const { path, methods } = DOORS[kind]
  const wrong = spoil(among(readers), among(readers), kind, random)
  if (readers.some((reader) => reader.tokens[kind] === wrong)) return null
  const method = among(methods)
  const status = await statusOf(api, method, path(wrong))
  // The pixel is served for any token.
  const expected = kind === 'open' ? 200 : 404
  return status === expected ? null : `${status} to ${method} ${path(wrong)}`
}

async function statusOf(api: TestApi, method: string, path: string): Promise<number> {
  const answer = await fetch(api.url + path, { method, redirect: 'manual', headers: BROWSER })
  await answer.arrayBuffer()
  return answer.status
}

/** Returns a token that was never signed for this path. */
function spoil(reader: Reader, other: Reader, kind: Kind, random: () => number): string {
  const token = reader.tokens[kind]
  const below = (most: number) => Math.floor(random() * most)
  const letter = () => LETTERS.charAt(below(LETTERS.length))
  const put = (text: string, at: number, what: string, cut = what.length) =>
    text.slice(0, at) + what + text.slice(at + cut)
  const at = below(token.length)
  const ways: (() => string)[] = [
    () => put(token, at, letter()),
    () =>
      Array.from({ length: 2 + below(6) }).reduce<string>(
        (text) => put(text, below(text.length), letter()),
        token,
      ),
    () => put(token, at, '', 1),
    () => put(token, at, letter(), 0),
    () => token.slice(0, 1 + at),
    () => token + letter(),
    () => put(token, at, token.charAt(at + 1) + token.charAt(at)),
    () => put(token, at, swapCase(token.charAt(at))),
    () => token.toUpperCase(),
    () => reader.tokens[KINDS[below(KINDS.length)] ?? kind],
    () => token.slice(0, -16) + other.tokens[kind].slice(-16),
    () => token.slice(0, at) + other.tokens[kind].slice(at),
    () => token.slice(0, -16) + Array.from({ length: 16 }, letter).join(''),
    () => Array.from({ length: token.length }, letter).join(''),
    () => `${token}%3D`,
    () => put(token, at, '%2B', 1),
    () => put(token, at, '%00', 0),
    () => `${token}%20`,
    () => `%2e%2e%2f${token}`,
  ]
  return ways[below(ways.length)]?.() ?? ''
}

function swapCase(letter: string): string {
  return letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
}

/** Requests pages with correct tokens by GET and HEAD only, as programs do that follow every link. */
async function lookOnly(api: TestApi, readers: readonly Reader[]): Promise<number> {
  let looks = 0
  for (const { tokens: right } of readers)
    for (const kind of ['unsubscribe', 'confirm'] as const)
      for (const method of ['GET', 'HEAD']) {
        await statusOf(api, method, DOORS[kind].path(right[kind]))
        looks += 1
      }
  return looks
}

async function see(api: TestApi, readers: readonly Reader[]): Promise<Seen | null> {
  const ids = readers.map(({ subscriberId }) => subscriberId)
  return await row<Seen>(
    api.services.orm.em.fork(),
    sql`select string_agg(distinct status, ' ') as status, count(confirmed_at)::int as confirmed,
        (select count(*)::int from subscriber_event where type <> 'EMAIL_SENT') as events,
        (select count(*)::int from tracking_event) as visits
      from subscriber where id = any(${array(ids, 'uuid')})`,
  )
}

/**
 * Uses all correct tokens, which must work; otherwise the refusals above would prove nothing. Returns those that
 * failed.
 */
async function shutDoors(api: TestApi, readers: readonly Reader[]): Promise<string> {
  const shut: string[] = []
  for (const { tokens: right } of readers)
    for (const [kind, method, status] of [
      ['click', 'GET', 302],
      ['open', 'GET', 200],
      ['view', 'GET', 200],
      ['confirm', 'POST', 200],
      ['unsubscribe', 'POST', 200],
    ] as const) {
      const answered = await statusOf(api, method, DOORS[kind].path(right[kind]))
      if (answered !== status) shut.push(`${kind} ${answered}`)
    }
  await api.settleVisits()
  const now = await see(api, readers)
  if (now?.status !== 'UNSUBSCRIBED' || now.confirmed !== readers.length || now.visits < 2 * readers.length)
    shut.push(JSON.stringify(now))
  return shut.join(', ')
}
