import { sql } from 'kysely'

import { hashToken } from '../src/catalogue/tokens.ts'
import { execute } from '../src/database.ts'
import { findRecord, keepRecord } from '../src/domain/oauth/records.ts'
import { encodeId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import {
  askToken,
  authorizeUrl,
  connectClient,
  type Credentials,
  follow,
  makeMember,
  makePkce,
  pingMcp,
  registerClient,
  signInAt,
  type TestClient,
  TestBrowser,
} from '../test/helpers/oauth.ts'
import { defineExperiment, is } from './experiment.ts'

const CALLBACK = 'https://app.example/callback'
/** Few enough that the address is not blocked, which is the subject of S9. */
const MISTYPED = 6

type Form = Record<string, string>
/** The attacker's environment. `note` records an attack and whether it succeeded. */
type Scene = {
  api: TestApi
  random: () => number
  member: Credentials
  own: TestOrganization
  other: TestOrganization
  note: (attack: string, letThrough: boolean) => void
}

/**
 * Attacks on OAuth: PKCE missing or weak; redirects, clients, audiences, organizations and browsers other than the
 * requested ones; codes and tokens that are used, revoked, mistyped or expired. Each must be refused, while honest use
 * continues to work.
 */
export const oauthAttacks = defineExperiment({
  id: 'S12',
  title: 'OAuth: proofs, redirects, audiences, browsers and used-up codes that are not right',
  // A code is valid for one minute, in which all attempts before its honest use must fit.
  sizes: { small: { rounds: 1, mutations: 6 }, full: { rounds: 5, mutations: 100 } },
  async run(lab, { rounds, mutations }) {
    const api = await startApi()
    lab.defer(() => api.close())
    const [own, other] = [await api.organization(), await api.organization()]
    const tried: Record<string, number> = {}
    const through: string[] = []
    let honest = 0
    for (let round = 0; round < rounds; round += 1) {
      const member = await makeMember(api, `ada${round}@team.example`, own)
      const scene: Scene = {
        api,
        random: lab.random,
        member,
        own,
        other,
        note(attack, letThrough) {
          tried[attack] = (tried[attack] ?? 0) + 1
          if (letThrough) through.push(attack)
        },
      }
      await attackAuthorization(scene, mutations)
      honest += await attackExchange(scene, mutations)
      honest += await attackRefresh(scene)
      honest += await attackResource(scene)
      honest += await attackPages(scene)
      lab.say(`round ${round + 1} of ${rounds}`)
    }
    return {
      injected: tried,
      seen: { 'honest uses that worked': honest },
      claims: [
        is('attacks that were let through', through.join(', '), ''),
        is('honest uses that worked', honest, 7 * rounds),
      ],
    }
  },
})

/** Before sign-in: a request with a wrong parameter must never lead to the sign-in page. */
async function attackAuthorization({ api, random, note }: Scene, mutations: number): Promise<void> {
  const client = await registerClient(api, CALLBACK)
  const { verifier, challenge } = makePkce()
  const changes: [string, Record<string, string | null>][] = [
    ['no PKCE', { code_challenge: null, code_challenge_method: null }],
    ['plain PKCE', { code_challenge: verifier, code_challenge_method: 'plain' }],
    ['PKCE without its method', { code_challenge_method: null }],
    ['foreign resource', { resource: 'https://other.example/mcp' }],
    ['another path as resource', { resource: `${api.url}/api/mcp/sse` }],
    ['response type token', { response_type: 'token' }],
    ['unknown client', { client_id: 'nobody' }],
    ['document of a client inside our network', { client_id: 'https://127.0.0.1/client.json' }],
    ...Array.from({ length: mutations }, (): [string, Record<string, string>] => [
      'changed redirect',
      { redirect_uri: mutateRedirect(random) },
    ]),
  ]
  for (const [attack, change] of changes) {
    const answer = await fetch(authorizeUrl(api, client, challenge, change), { redirect: 'manual' })
    const location = new URL(answer.headers.get('location') ?? 'about:blank', api.url)
    const isSignIn = location.pathname.startsWith('/oauth/sign-in/')
    const isElsewhere =
      location.protocol !== 'about:' && !/^https:\/\/app\.example\/callback[?#]error=/.test(location.href)
    note(attack, isSignIn || isElsewhere || location.searchParams.has('code'))
  }
}

/** Exchanges codes that were issued to another client or for another purpose. */
async function attackExchange(scene: Scene, mutations: number): Promise<number> {
  const { api, random, note } = scene
  const { client, verifier, code } = await signIn(scene)
  const foreign = await registerClient(api, CALLBACK)
  const good: Form = {
    grant_type: 'authorization_code',
    client_id: client.client_id,
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  }
  const { code_verifier: _, ...bare } = good
  const forms: [string, Form][] = [
    ['exchange without a verifier', bare],
    ['code of another client', { ...good, client_id: foreign.client_id }],
    ...Array.from({ length: mutations }, (): [string, Form] => [
      'wrong verifier',
      { ...good, code_verifier: swapOne(verifier, random) },
    ]),
    ...Array.from({ length: mutations }, (): [string, Form] => [
      'exchange with another redirect',
      { ...good, redirect_uri: mutateRedirect(random) },
    ]),
    ...Array.from({ length: mutations }, (): [string, Form] => [
      'mistyped code',
      { ...good, code: swapOne(code, random) },
    ]),
  ]
  for (const [attack, form] of forms) {
    note(attack, (await askToken(api, form)).status === 200)
  }
  const first = await askToken(api, good)
  const works = (await pingMcp(api, first.body.access_token)).status === 200
  note('code used twice', (await askToken(api, good)).status === 200)
  note('token after its code was used twice', (await pingMcp(api, first.body.access_token)).status === 200)
  // The resource is checked after the code is marked as used, so this attempt needs another code.
  const again = await signIn(scene)
  const elsewhere = {
    ...good,
    client_id: again.client.client_id,
    code: again.code,
    code_verifier: again.verifier,
  }
  const { status } = await askToken(api, { ...elsewhere, resource: 'https://other.example/mcp' })
  note('exchange for a foreign resource', status === 200)
  return works ? 1 : 0
}

/** Uses refresh tokens that were already used, belong to another client, or would widen the scope. */
async function attackRefresh(scene: Scene): Promise<number> {
  const { api, note } = scene
  const { client, verifier, code } = await signIn(scene, 'read')
  const exchanged = await askToken(api, {
    grant_type: 'authorization_code',
    client_id: client.client_id,
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  })
  const good = {
    grant_type: 'refresh_token',
    client_id: client.client_id,
    refresh_token: String(exchanged.body.refresh_token),
  }
  const foreign = await registerClient(api, CALLBACK)
  note(
    'refresh by another client',
    (await askToken(api, { ...good, client_id: foreign.client_id })).status === 200,
  )
  note('refresh for more scopes', (await askToken(api, { ...good, scope: 'read draft' })).status === 200)
  const fresh = await askToken(api, good)
  const works = (await pingMcp(api, fresh.body.access_token)).status === 200
  const next = { ...good, refresh_token: String(fresh.body.refresh_token) }
  note('refresh token used twice', (await askToken(api, good)).status === 200)
  note(
    'token after its refresh token was used twice',
    (await pingMcp(api, fresh.body.access_token)).status === 200,
  )
  note('next refresh token after that', (await askToken(api, next)).status === 200)
  return works ? 1 : 0
}

/** Uses expired, revoked, mistyped and foreign tokens at the MCP server and at the other interfaces. */
async function attackResource(scene: Scene): Promise<number> {
  const { api, random, own, other, member, note } = scene
  const em = api.services.orm.em.fork()
  const isIn = async (token: string) => (await pingMcp(api, token)).status === 200
  const { access, refresh, client } = await connectClient(api, member, own)
  let honest = (await isIn(access)) ? 1 : 0
  for (let at = 0; at < MISTYPED; at += 1) note('mistyped access token', await isIn(swapOne(access, random)))
  note('refresh token as access token', await isIn(refresh))
  note('API token at /mcp', await isIn(own.token))
  const tools = await api.request('POST', '/api/v2/tools/list_tags', { token: access, body: {} })
  note('access token at the Tools API', tools.status !== 401)
  const whole = await api.request('POST', '/api/mcp/sse', {
    token: access,
    body: { jsonrpc: '2.0', id: 1, method: 'ping' },
  })
  note('access token at /api/mcp/sse', whole.status !== 401)

  const { subscriber } = await other.data('add_subscriber', { email: `x${random()}@reader.example` })
  const seen = await api.request('POST', '/mcp', {
    token: access,
    headers: { accept: 'application/json, text/event-stream' },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'get_subscriber', arguments: { subscriberId: subscriber.id } },
    },
  })
  note("another organization's subscriber", !JSON.stringify(seen.body).includes('NOT_FOUND'))

  const key = { model: 'AccessToken', id: access }
  const record = (await findRecord(api.services, key)) ?? {}
  await keepRecord(api.services, key, { ...record, aud: 'https://other.example/mcp' }, 3_600)
  note('token of another audience', await isIn(access))
  await keepRecord(api.services, key, record, 3_600)
  honest += (await isIn(access)) ? 1 : 0
  const expired = sql`update oauth_record set expires_at = now() - interval '1 second' where id_hash = ${hashToken(access)}`
  await execute(em, expired)
  note('expired access token', await isIn(access))

  const fresh = await askToken(api, {
    grant_type: 'refresh_token',
    client_id: client.client_id,
    refresh_token: refresh,
  })
  honest += (await isIn(fresh.body.access_token)) ? 1 : 0
  const foreign = await registerClient(api, CALLBACK)
  const revoke = (clientId: string) =>
    fetch(`${api.url}/oauth/revoke`, {
      method: 'POST',
      body: new URLSearchParams({ token: fresh.body.access_token, client_id: clientId }),
    })
  await revoke(foreign.client_id)
  honest += (await isIn(fresh.body.access_token)) ? 1 : 0
  await revoke(client.client_id)
  note('revoked access token', await isIn(fresh.body.access_token))
  return honest
}

/** Attacks the pages: another browser, another site, another organization, no consent. */
async function attackPages({ api, member, own, other, note }: Scene): Promise<number> {
  const client = await registerClient(api, CALLBACK)
  const browser = new TestBrowser(api.url)
  const { challenge } = makePkce()
  const login = await follow(browser, await browser.open(authorizeUrl(api, client, challenge)))
  const stranger = new TestBrowser(api.url)
  note('sign-in page in another browser', (await stranger.open(login.url)).status === 200)
  const { email, password } = member
  const elsewhere = await browser.submit(login.url, { email, password }, { origin: 'https://evil.example' })
  note('form of another site', elsewhere.status < 400)
  const consent = await follow(browser, await browser.submit(login.url, { email, password }))
  note(
    'agreement in another browser',
    (await stranger.submit(consent.url, { decision: 'allow' })).status < 400,
  )
  const unasked = await browser.submit(consent.url, {
    organization: encodeId('org', other.id),
    decision: 'allow',
  })
  note('organization of others', unasked.headers.get('location') !== null)
  const agreed = await browser.submit(consent.url, {
    organization: encodeId('org', own.id),
    decision: 'allow',
  })
  const answered = await follow(browser, agreed)

  const hasty = new TestBrowser(api.url)
  const page = await follow(hasty, await hasty.open(authorizeUrl(api, client, challenge)))
  const skipped = await follow(
    hasty,
    await hasty.open(page.url.replace('/oauth/sign-in/', '/oauth/authorize/')),
  )
  note('on without signing in', (skipped.headers.get('location') ?? '').includes('code='))
  return (answered.headers.get('location') ?? '').startsWith(`${CALLBACK}?code=`) ? 1 : 0
}

/** Lets a member sign in and approve a new client. Returns what the client then has. */
async function signIn(
  { api, member, own }: Scene,
  scope = 'read draft',
): Promise<{ client: TestClient; verifier: string; code: string }> {
  const client = await registerClient(api, CALLBACK)
  const { verifier, challenge } = makePkce()
  const answer = await signInAt(new TestBrowser(api.url), authorizeUrl(api, client, challenge, { scope }), {
    ...member,
    organization: encodeId('org', own.id),
  })
  return { client, verifier, code: answer.searchParams.get('code') ?? '' }
}

function mutateRedirect(random: () => number): string {
  const ways = [
    'https://evil.example/callback',
    `${CALLBACK}/`,
    `${CALLBACK}/../evil`,
    `${CALLBACK}?next=https://evil.example`,
    `${CALLBACK}#fragment`,
    CALLBACK.replace('https', 'http'),
    CALLBACK.replace('app.example', 'app.example:8443'),
    CALLBACK.replace('app.example', 'app.example.evil.example'),
    CALLBACK.replace('app.example', 'app.example@evil.example'),
    CALLBACK.replace('callback', 'Callback'),
    `javascript:alert(1)//${CALLBACK}`,
    swapOne(CALLBACK, random),
  ]
  return ways[Math.floor(random() * ways.length)] ?? ''
}

function swapOne(text: string, random: () => number): string {
  const at = Math.floor(random() * text.length)
  return `${text.slice(0, at)}${text.charAt(at) === 'q' ? 'r' : 'q'}${text.slice(at + 1)}`
}
