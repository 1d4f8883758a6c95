import { type RawBuilder, sql } from 'kysely'

import { row } from '../src/database.ts'
import { decodeId } from '../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../test/helpers/api.ts'
import { type Door, MCP_DOOR, TOOLS_DOOR } from '../test/helpers/doors.ts'
import { makeWorld, type World } from '../test/helpers/world.ts'
import { atOnce, defineExperiment, is } from './experiment.ts'

const AT_ONCE = 50

/** The interfaces that ask for confirmations, and both together. */
const WAYS: Record<string, readonly Door[]> = {
  'Tools API': [TOOLS_DOOR],
  MCP: [MCP_DOOR],
  'both doors': [TOOLS_DOOR, MCP_DOOR],
}

/** A gated tool, its input, and a query that counts how often it took effect. */
type Deed = {
  tool: string
  input: (world: World) => Record<string, unknown>
  done: (world: World, organizationId: string) => RawBuilder<unknown>
}

const DEEDS: readonly Deed[] = [
  {
    tool: 'send_email',
    input: ({ email }) => ({ email, subject: 'Once', content: 'Once' }),
    done: ({ sub }, organizationId) =>
      sql`select count(*)::int as times from message
        where organization_id = ${organizationId} and subscriber_id = ${decodeId('sub', sub)}`,
  },
  {
    tool: 'add_subscribers_to_workflow',
    input: ({ wf }) => ({ workflowId: wf, filters: [] }),
    done: ({ wf }, organizationId) =>
      sql`select count(*)::int as times from automation_intake
        where organization_id = ${organizationId} and automation_id = ${decodeId('wf', wf)}`,
  },
  {
    tool: 'unsubscribe',
    input: ({ sub }) => ({ subscriberId: sub }),
    done: ({ sub }, organizationId) =>
      sql`select count(*)::int as times from subscriber_event where organization_id = ${organizationId}
        and subscriber_id = ${decodeId('sub', sub)} and type = 'UNSUBSCRIBED'`,
  },
  {
    tool: 'delete_tag',
    input: ({ tag }) => ({ tagId: tag }),
    done: ({ tag }, organizationId) =>
      sql`select 1 - count(*)::int as times from tag
        where organization_id = ${organizationId} and id = ${decodeId('tag', tag)}`,
  },
]

/**
 * Sends one confirmation code fifty times at once, over the Tools API, over MCP, and alternating over both, for tools
 * that send, enroll, unsubscribe and delete. The tool must take effect once, for the first call; all others must be
 * refused.
 */
export const confirmations = defineExperiment({
  id: 'S8',
  title: 'fifty confirmations of one code at once, by every door that asks for them',
  sizes: { small: { rounds: 1 }, full: { rounds: 25 } },
  async run(lab, { rounds }) {
    const api = await startApi({ TEMPORAL_TASK_QUEUE: `confirmations-${process.pid}` })
    lab.defer(() => api.close())
    const seen = { codes: 0, confirmations: 0, succeeded: 0, others: 0 }
    const wrong: string[] = []
    for (let round = 0; round < rounds; round += 1) {
      const organization = await api.organization()
      for (const [way, doors] of Object.entries(WAYS)) {
        for (const deed of DEEDS) {
          const outcome = await confirmAtOnce(api, { organization, deed, doors, first: lab.random() })
          seen.codes += 1
          seen.confirmations += AT_ONCE
          seen.succeeded += outcome.succeeded
          seen.others += outcome.others.length
          const { succeeded, done, used } = outcome
          if (succeeded !== 1 || done !== 1 || used !== 1) {
            wrong.push(`${deed.tool} by ${way}: ${succeeded} told, ${done} done, ${used} codes spent`)
          }
          for (const other of outcome.others) if (!REFUSED.has(other)) wrong.push(`${deed.tool}: ${other}`)
        }
      }
      lab.say(`${round + 1} of ${rounds} rounds, ${wrong.length} wrong`)
    }
    return {
      injected: { codes: seen.codes, confirmations: seen.confirmations },
      seen: { succeeded: seen.succeeded, refused: seen.others },
      claims: [
        is('confirmations that succeeded', seen.succeeded, seen.codes),
        is('confirmations that were refused', seen.others, seen.confirmations - seen.codes),
        is('what was not done, told and spent exactly once', wrong.slice(0, 10).join('\n'), ''),
      ],
    }
  },
})

/** The code was used, or its effect has already happened. */
const REFUSED = new Set(['CONFIRMATION_REQUIRED', 'NOT_FOUND', 'WRONG_STATE'])

type Round = { organization: TestOrganization; deed: Deed; doors: readonly Door[]; first: number }
type Outcome = { succeeded: number; others: string[]; done: number; used: number }

async function confirmAtOnce(api: TestApi, { organization, deed, doors, first }: Round): Promise<Outcome> {
  const { id, token } = organization
  const world = await makeWorld(api, organization)
  const input = deed.input(world)
  const times = async () => await count(api, deed.done(world, id))
  const used = async () =>
    await count(
      api,
      sql`select count(*)::int as times from confirmation_challenge
        where organization_id = ${id} and tool = ${deed.tool} and spent_at is not null`,
    )
  const [before, usedBefore] = [await times(), await used()]
  const asked = { token, operation: deed.tool, input }
  const asking = doors[Math.floor(first * doors.length)] ?? TOOLS_DOOR
  const { confirmationCode } = Object((await asking.call(api, asked)).body)
  let [turn, succeeded] = [0, 0]
  const others: string[] = []
  await atOnce(AT_ONCE, async () => {
    const door = doors[(turn += 1) % doors.length] ?? asking
    const { status, body } = await door.call(api, { ...asked, input: { ...input, confirmationCode } })
    const { success, code } = Object(body)
    if (status === 200 && success !== false) succeeded += 1
    else others.push(String(code))
  })
  return { succeeded, others, done: (await times()) - before, used: (await used()) - usedBefore }
}

async function count(api: TestApi, question: RawBuilder<unknown>): Promise<number> {
  return (await row<{ times: number }>(api.services.orm.em.fork(), question))?.times ?? 0
}
