import { createHash, randomBytes } from 'node:crypto'

import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { createMember } from '../../src/domain/organizations/members.ts'
import { encodeId } from '../../src/ids.ts'
import type { TestApi, TestOrganization } from './api.ts'

/** The credentials of a test's member. */
export type Credentials = { email: string; password: string }

const PASSWORD = 'correct horse battery'
const OPERATOR = { kind: 'system', id: 'operator', name: 'operator' } as const

/** Creates a member of these organizations. */
export async function makeMember(
  api: TestApi,
  email: string,
  ...organizations: TestOrganization[]
): Promise<Credentials & { id: string }> {
  let id = ''
  for (const [at, { id: organizationId }] of organizations.entries()) {
    const password = at === 0 ? PASSWORD : undefined
    const member = await unitOfWork(api.services, { organizationId, actor: OPERATOR }, (call) =>
      createMember(call, { email, password }),
    )
    id = member.id
  }
  return { id, email, password: PASSWORD }
}

/** Returns a PKCE verifier and its challenge (RFC 7636). */
export function makePkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** A browser that stores cookies with their paths and does not follow redirects. */
export class TestBrowser {
  readonly #origin: string
  readonly #cookies = new Map<string, { name: string; value: string; path: string }>()

  constructor(origin: string) {
    this.#origin = origin
  }

  async open(url: string): Promise<Response> {
    return await this.#ask(url)
  }

  async submit(
    url: string,
    form: Record<string, string>,
    headers?: Record<string, string>,
  ): Promise<Response> {
    return await this.#ask(url, {
      method: 'POST',
      body: new URLSearchParams(form),
      headers: { origin: this.#origin, 'sec-fetch-site': 'same-origin', ...headers },
    })
  }

  async #ask(
    url: string,
    init: { method?: string; body?: URLSearchParams; headers?: Record<string, string> } = {},
  ) {
    const { pathname } = new URL(url, this.#origin)
    const cookie = [...this.#cookies.values()]
      .filter(({ path }) => pathname.startsWith(path))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
    const answer = await fetch(new URL(url, this.#origin), {
      ...init,
      redirect: 'manual',
      headers: { accept: 'text/html', ...init.headers, ...(cookie && { cookie }) },
    })
    for (const line of answer.headers.getSetCookie()) this.#keep(line)
    return answer
  }

  #keep(line: string): void {
    const [pair = '', ...attributes] = line.split('; ')
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/.exec(pair) ?? []
    const path = attributes.find((each) => each.startsWith('path='))?.slice(5) ?? '/'
    if (value === '') this.#cookies.delete(`${path} ${name}`)
    else this.#cookies.set(`${path} ${name}`, { name, value, path })
  }
}

/** Signs a member in and answers the consent page. Returns the URL to which the client is redirected. */
export async function signInAt(
  browser: TestBrowser,
  url: string,
  {
    email,
    password,
    organization,
    decision = 'allow',
  }: Credentials & { organization?: string; decision?: string },
): Promise<URL> {
  const login = await follow(browser, await browser.open(url))
  const consent = await follow(browser, await browser.submit(login.url, { email, password }))
  const chosen = organization ?? /name="organization" value="([^"]+)"/.exec(await consent.text())?.[1] ?? ''
  const answered = await browser.submit(consent.url, { organization: chosen, decision })
  const last = await follow(browser, answered)
  return new URL(last.headers.get('location') ?? `about:blank?${last.status}`)
}

/** Follows redirects within the service, but not to the client's callback. */
export async function follow(browser: TestBrowser, answer: Response): Promise<Response> {
  const location = answer.headers.get('location')
  if (answer.status < 300 || answer.status > 399 || location === null) return answer
  const next = new URL(location, answer.url)
  if (next.origin !== new URL(answer.url).origin || next.pathname === '/callback') return answer
  return await follow(browser, await browser.open(next.href))
}

/** A registered client. */
export type TestClient = { client_id: string; redirect_uris: string[] }

/** Registers a public client with this redirect URI. */
export async function registerClient(api: TestApi, redirect: string, name = 'Notebook'): Promise<TestClient> {
  const { status, body } = await api.request('POST', '/oauth/register', {
    body: {
      client_name: name,
      redirect_uris: [redirect],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
  })
  if (status !== 201) throw new Error(`the client was not registered: ${JSON.stringify(body)}`)
  return body
}

/** Returns the authorization URL of a client. `change` replaces parameters; null removes one. */
export function authorizeUrl(
  api: TestApi,
  client: TestClient,
  challenge: string,
  change: Record<string, string | null> = {},
): string {
  const params = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: client.redirect_uris[0] ?? '',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    resource: `${api.url}/mcp`,
    scope: 'read draft',
    state: 'a state',
    ...change,
  }
  const given = Object.entries(params).filter((each): each is [string, string] => each[1] !== null)
  return `${api.url}/oauth/authorize?${new URLSearchParams(given).toString()}`
}

/** Returns the response of the token endpoint to a form. */
export async function askToken(api: TestApi, form: Record<string, string>) {
  const answer = await fetch(`${api.url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
  // oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into answers of every shape
  return { status: answer.status, body: (await answer.json()) as any }
}

/** Connects a client that a member approves, and returns its tokens. */
export async function connectClient(api: TestApi, member: Credentials, organization: TestOrganization) {
  const client = await registerClient(api, 'http://127.0.0.1:7777/callback')
  const { verifier, challenge } = makePkce()
  const answer = await signInAt(new TestBrowser(api.url), authorizeUrl(api, client, challenge), {
    ...member,
    organization: encodeId('org', organization.id),
  })
  const code = answer.searchParams.get('code') ?? ''
  const exchange = {
    grant_type: 'authorization_code',
    client_id: client.client_id,
    code,
    redirect_uri: client.redirect_uris[0] ?? '',
    code_verifier: verifier,
  }
  const { body } = await askToken(api, exchange)
  return { client, exchange, access: String(body.access_token), refresh: String(body.refresh_token) }
}

/** Sends one MCP message with this access token and returns the response. */
export async function pingMcp(api: TestApi, token: string | undefined) {
  return await api.request('POST', '/mcp', {
    ...(token !== undefined && { token }),
    body: { jsonrpc: '2.0', id: 1, method: 'ping' },
    headers: { accept: 'application/json, text/event-stream' },
  })
}
