import { sql } from 'kysely'

import type { Call } from '../../src/catalogue/tool.ts'
import { unitOfWork } from '../../src/catalogue/unit-of-work.ts'
import { execute, row, rows } from '../../src/database.ts'
import type { LaneOptions } from '../../src/delivery/lane.ts'
import { type Lanes, startLanes } from '../../src/delivery/lanes.ts'
import { enqueueMessages, type Enqueued, type NewMessage } from '../../src/domain/emails/messages.ts'
import { newId } from '../../src/ids.ts'
import { type TestServices, testServices } from './database.ts'
import { type Sink, type SinkBehaviour, type SinkGuard, startSmtpSink } from './smtp-sink.ts'

/** A message row, as tests check it. */
export type StoredMessage = {
  status: string
  reason: string | null
  response: string | null
  bounceCategory: string | null
  attempts: number
  resent: boolean
  subject: string | null
  sentAt: string | null
}

/** A recipient. */
export type Person = { organizationId: string; id: string; email: string }

/** Delivery with its own database and relay. The test starts the lanes, with short times. */
export type Mailroom = {
  services: TestServices
  sink: Sink
  organizationId: string
  start(options?: Partial<LaneOptions> & { reviveMs?: number; graceMs?: number }): Promise<Lanes>
  organization(): Promise<string>
  person(fields?: {
    email?: string
    name?: string
    status?: string
    organizationId?: string
  }): Promise<Person>
  /** Creates an active automation with one version and one active run of the person; its step `hello` has an email. */
  automation(id: string, person: Person): Promise<{ versionId: string; runId: string }>
  /** Enqueues one transactional email to a person; `draft` overrides members. */
  send(person: Person, draft?: Partial<NewMessage>): Promise<string>
  enqueue(organizationId: string, drafts: readonly NewMessage[]): Promise<Enqueued[]>
  draftTo(person: Person, draft?: Partial<NewMessage>): NewMessage
  message(id: string): Promise<StoredMessage>
  events(subscriberId: string): Promise<string[]>
  queueSize(): Promise<number>
  close(): Promise<void>
}

/** Returns the relay URL for the configuration if it is more than the address. */
export type RelayUrl = (port: number) => string

/** Times short enough for tests: leases of five seconds, retries after 100 ms. */
export const QUICK: Partial<LaneOptions> = { leaseMs: 5_000, marginMs: 1_000, pollMs: 50, backOff: () => 100 }

export async function openMailroom(
  options: {
    env?: Record<string, string>
    behaviour?: SinkBehaviour
    guard?: SinkGuard
    relay?: RelayUrl
  } = {},
): Promise<Mailroom> {
  const sink = await startSmtpSink(options.behaviour, { ...(options.guard && { guard: options.guard }) })
  const services = await testServices({ RELAY_URL: options.relay?.(sink.port) ?? sink.url, ...options.env })
  const started: Lanes[] = []
  const em = () => services.orm.em.fork()

  async function organization(): Promise<string> {
    const id = newId()
    await execute(
      em(),
      sql`insert into organization (id, name, slug, plan) values (${id}, 'Analytical Engines', ${`org-${id}`}, 'ENTERPRISE')`,
    )
    return id
  }
  const organizationId = await organization()

  function draftTo({ id, email }: Person, draft: Partial<NewMessage> = {}): NewMessage {
    return {
      class: 'TRANSACTIONAL',
      marketing: false,
      subscriberId: id,
      recipient: email,
      fromName: 'Shop',
      fromEmail: 'hello@shop.example',
      source: {
        subject: 'Hello {{name}}',
        content: 'Hi {{name}}, [read](https://shop.example/a).',
        contentType: 'MARKDOWN',
        preview: null,
      },
      ...draft,
    }
  }

  async function enqueue(scope: string, drafts: readonly NewMessage[]): Promise<Enqueued[]> {
    const actor = { kind: 'system', id: 'test', name: 'Test' } as const
    return await unitOfWork(services, { organizationId: scope, actor }, (call: Call) =>
      enqueueMessages(call, drafts),
    )
  }

  return {
    services,
    sink,
    organizationId,
    organization,
    draftTo,
    enqueue,
    async start({ reviveMs = 50, graceMs = 4_000, ...lane } = {}) {
      const lanes = await startLanes(services, {
        workerName: 'test',
        lane: { ...QUICK, ...lane },
        reviveMs,
        graceMs,
      })
      started.push(lanes)
      return lanes
    },
    async person(fields = {}) {
      const id = newId()
      const person = { organizationId, id, email: `${id.slice(-12)}@reader.example`, ...fields }
      await execute(
        em(),
        sql`insert into subscriber (id, organization_id, email, name, status)
          values (${id}, ${person.organizationId}, ${person.email}, ${fields.name ?? 'Lin'}, ${fields.status ?? 'SUBSCRIBED'})`,
      )
      return { organizationId: person.organizationId, id, email: person.email }
    },
    async automation(id, person) {
      const [versionId, runId] = [newId(), newId()]
      const emails = { hello: { subject: 'Welcome {{name}}', content: 'Hi', contentType: 'MARKDOWN' } }
      const definition = JSON.stringify({ steps: [], edges: [], settings: {}, successGoals: [], emails })
      await execute(
        em(),
        sql`insert into automation (id, organization_id, name, status)
          values (${id}, ${person.organizationId}, 'Welcome', 'ACTIVE')`,
      )
      await execute(
        em(),
        sql`insert into automation_version (id, organization_id, automation_id, number, definition)
          values (${versionId}, ${person.organizationId}, ${id}, 1, ${definition}::jsonb)`,
      )
      await execute(
        em(),
        sql`insert into automation_run (id, organization_id, automation_id, version_id, subscriber_id, number, status)
          values (${runId}, ${person.organizationId}, ${id}, ${versionId}, ${person.id}, 1, 'WAITING')`,
      )
      return { versionId, runId }
    },
    async send(person, draft) {
      const [made] = await enqueue(person.organizationId, [draftTo(person, draft)])
      if (!made) throw new Error('nothing was enqueued')
      return made.id
    },
    async message(id) {
      const found = await row<StoredMessage>(
        em(),
        sql`select status, reason, response, bounce_category as "bounceCategory", attempts, resent, subject,
          sent_at as "sentAt" from message where id = ${id}`,
      )
      if (!found) throw new Error(`there is no message ${id}`)
      return found
    },
    async events(subscriberId) {
      const found = await rows<{ type: string }>(
        em(),
        sql`select type from subscriber_event where subscriber_id = ${subscriberId} order by id`,
      )
      return found.map(({ type }) => type)
    },
    async queueSize() {
      return (
        (await row<{ size: number }>(em(), sql`select count(*)::int as size from delivery_queue`))?.size ?? -1
      )
    },
    async close() {
      await Promise.all(started.map((lanes) => lanes.stop()))
      await services.close()
      await sink.close()
    },
  }
}
