import { createServer } from 'node:http'

import { sql } from 'kysely'

import { createApp } from '../../api/app.ts'
import { PERMISSIONS, type Permission, type Plan } from '../../schema/values.ts'
import { CATALOGUE } from '../../src/catalogue/registry.ts'
import { schemaFaults } from '../../src/catalogue/schema-faults.ts'
import { hashToken, makeToken } from '../../src/catalogue/tokens.ts'
import { array, execute } from '../../src/database.ts'
import { countPendingVisits } from '../../src/domain/emails/visits.ts'
import { createAdminKey } from '../../src/domain/organizations/admin-keys.ts'
import { encodeId, newId } from '../../src/ids.ts'
import { createTracking } from '../../src/public/tracking.ts'
import { settleAll } from '../../worker/visits.ts'
import { type TestServices, testServices } from './database.ts'
import { eventually } from './eventually.ts'
import { listenOnLoopback } from './listen.ts'

/** A response over real HTTP. `body` is parsed if it is JSON, else text. */
export type Answer = {
  status: number
  headers: Headers
  // oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into answers of every shape
  body: any
}

/** An organization with a verified domain, a default sender and a token. */
export type TestOrganization = {
  id: string
  token: string
  domain: string
  senderId: string
  /** Calls a tool without answering a request for confirmation. */
  call(tool: string, input?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Calls a gated tool twice: for the confirmation code, and with it. */
  confirmed(tool: string, input?: unknown): Promise<Answer>
  /** Returns `data` of a call; throws unless it succeeds. */
  // oxlint-disable-next-line typescript/no-explicit-any -- as for Answer
  data(tool: string, input?: unknown): Promise<any>
  /** Creates another token with these permissions. */
  tokenWith(permissions: readonly Permission[]): Promise<string>
}

export type TestApi = {
  url: string
  services: TestServices
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>
  organization(options?: {
    plan?: Plan
    doubleOptIn?: boolean
    customLimits?: unknown
  }): Promise<TestOrganization>
  /** Creates an admin key. */
  adminKey(): Promise<string>
  /** Waits until every answered open and click is written, processed and counted. */
  settleVisits(): Promise<void>
  close(): Promise<void>
}

type RequestOptions = { token?: string; body?: unknown; headers?: Record<string, string>; raw?: string }

/** Starts the API on a free port with a database of its own. */
export async function startApi(env: Record<string, string> = {}): Promise<TestApi> {
  const services = await testServices(env)
  const tracking = createTracking(services)
  // A long timeout: on a busy machine a client may otherwise send on a connection just when the server closes it as
  // idle.
  const server = createServer({ keepAliveTimeout: 120_000 }, createApp(services, tracking).callback())
  const port = await listenOnLoopback(server)
  const url = `http://127.0.0.1:${port}`
  services.config.baseUrl = url

  async function request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    const { token, body, headers, raw } = options
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(url + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(content !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(content !== undefined && { body: content }),
    })
    const text = await response.text()
    // A response to HEAD has the content type of a body, but no body.
    const isJson = text !== '' && response.headers.get('content-type')?.includes('json')
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
  }

  async function addToken(organizationId: string, permissions: readonly Permission[]): Promise<string> {
    const token = makeToken()
    await execute(
      services.orm.em.fork(),
      sql`insert into api_token (id, organization_id, name, token_hash, last_four, permissions)
        values (${newId()}, ${organizationId}, 'test', ${hashToken(token)}, ${token.slice(-4)}, ${array(permissions, 'text')})`,
    )
    return token
  }

  return {
    url,
    services,
    request,
    async organization({
      plan = 'ENTERPRISE',
      doubleOptIn = false,
      customLimits = { requestsPerMinute: 0 },
    } = {}) {
      const [id, domainId, senderId] = [newId(), newId(), newId()]
      const slug = `org-${id.slice(-12)}`
      const domain = `${slug}.example`
      const em = services.orm.em.fork()
      await execute(
        em,
        sql`insert into organization (id, name, slug, plan, double_opt_in, custom_limits)
          values (${id}, ${`Organization ${slug}`}, ${slug}, ${plan}, ${doubleOptIn}, ${JSON.stringify(customLimits)}::jsonb)`,
      )
      await execute(
        em,
        sql`insert into domain (id, organization_id, domain, status) values (${domainId}, ${id}, ${domain}, 'VERIFIED')`,
      )
      await execute(
        em,
        sql`insert into sender (id, organization_id, domain_id, name, email, is_default)
          values (${senderId}, ${id}, ${domainId}, 'Sender', ${`hello@${domain}`}, true)`,
      )
      const token = await addToken(id, PERMISSIONS)
      const call: TestOrganization['call'] = async (tool, input = {}, headers) => {
        const answer = await request('POST', `/api/v2/tools/${tool}`, {
          token,
          body: input,
          ...(headers && { headers }),
        })
        checkOutput(tool, answer)
        return answer
      }
      return {
        id,
        token,
        domain,
        senderId: encodeId('snd', senderId),
        call,
        async confirmed(tool, input = {}) {
          const asked = await call(tool, input)
          if (asked.status !== 428) return asked
          return await call(tool, { ...Object(input), confirmationCode: asked.body.confirmationCode })
        },
        async data(tool, input) {
          const answer = await call(tool, input)
          if (answer.status === 200) return answer.body.data
          throw new Error(`${tool} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
        },
        tokenWith: (permissions) => addToken(id, permissions),
      }
    },
    async adminKey() {
      return (await createAdminKey(services.orm.em.fork(), 'test')).key
    },
    async settleVisits() {
      await eventually('the visits to be settled', async () => {
        await settleAll(services)
        return tracking.counts().waiting === 0 && (await countPendingVisits(services.orm.em.fork())) === 0
      })
    },
    async close() {
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
      await tracking.stop()
      await services.close()
    },
  }
}

/**
 * Checks in every call of every test that a successful answer matches the tool's output schema, and that a request for
 * confirmation names the tool.
 */
function checkOutput(name: string, { status, body }: Answer): void {
  if (status === 428 && body.summary.action !== name)
    throw new Error(`${name} asks for ${body.summary.action}`)
  const output = CATALOGUE.get(name)?.output
  if (status !== 200 || !output) return
  const faults = schemaFaults(output, body.data)
  if (faults.length > 0) throw new Error(`${name} broke its output schema: ${JSON.stringify(faults)}`)
}
