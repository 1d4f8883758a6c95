import { setTimeout as sleep } from 'node:timers/promises'

import { sql } from 'kysely'

import { percentile } from '../bench/shared/report.ts'
import { rows } from '../src/database.ts'
import { formatMessageId } from '../src/delivery/identity.ts'
import { endProcess, startProcess } from '../test/helpers/child.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { openMailroom, type Person } from '../test/helpers/mailroom.ts'
import { atMost, defineExperiment, is } from './experiment.ts'

/** A window of T seconds may contain at most rate × (T + this) emails. */
const AHEAD_SECONDS = 0.25
const PEOPLE = 50

/**
 * Runs four sender processes on two lanes with more email than the rates allow. While a lane is behind, its rate is
 * measured. Then transactional email arrives a little slower than its rate while bulk is still behind, and its delay is
 * measured.
 */
export const fullLanes = defineExperiment({
  id: 'R8',
  title: 'both lanes saturated by four workers',
  sizes: {
    small: {
      rate: 40,
      senders: 4,
      transactional: 450,
      bulk: 550,
      arriving: 60,
      perSecond: 30,
      judgesDelay: 'no',
    },
    full: {
      rate: 40,
      senders: 4,
      transactional: 1_600,
      bulk: 5_000,
      arriving: 2_160,
      perSecond: 36,
      judgesDelay: 'yes',
    },
  },
  async run(lab, { rate, senders, transactional, bulk, arriving, perSecond, judgesDelay }) {
    const limits = { LANE_RATE_TRANSACTIONAL: String(rate), LANE_RATE_BULK: String(rate) }
    const room = await openMailroom({ env: limits })
    lab.defer(() => room.close())
    const crowd = async (name: string): Promise<Person[]> =>
      await Promise.all(
        Array.from({ length: PEOPLE }, (_, index) =>
          room.person({ email: `${name}-${index}@reader.example` }),
        ),
      )
    const [waiting, many] = [await crowd('transactional'), await crowd('bulk')]
    const draftTo = (people: readonly Person[], index: number) => {
      const person = people[index % PEOPLE]
      if (!person) throw new Error('there is nobody')
      return room.draftTo(person, people === many ? { class: 'CAMPAIGN', marketing: true } : {})
    }
    const enqueue = (people: readonly Person[], count: number) =>
      room.enqueue(
        room.organizationId,
        Array.from({ length: count }, (_, index) => draftTo(people, index)),
      )
    await enqueue(waiting, transactional)
    await enqueue(many, bulk)
    const sent = (name: string) => room.sink.accepted().filter(({ recipient }) => recipient.startsWith(name))

    for (let sender = 0; sender < senders; sender++) {
      // Few connections, because emails that wait for the busy sink were sent on time and must not look like a burst.
      const child = startProcess(room.services, 'test/helpers/sender-process.ts', {
        env: { CONNECTIONS: '2' },
      })
      lab.defer(() => endProcess(child))
    }
    const caughtUp = () => sent('transactional').length >= transactional
    await eventually('the transactional lane', caughtUp, { withinMs: 300_000, everyMs: 200 })
    lab.say(`${transactional} transactional and ${sent('bulk').length} bulk emails are out`)
    const bulkBehind = bulk - sent('bulk').length
    const began = performance.now()
    for (let index = 0; index < arriving; index++) {
      const early = began + (index * 1_000) / perSecond - performance.now()
      if (early > 0) await sleep(early)
      await room.enqueue(room.organizationId, [draftTo(waiting, index)])
    }
    const stillBehind = bulk - sent('bulk').length
    lab.say(`${arriving} more arrived, ${stillBehind} bulk emails are left`)
    const all = async () => (await room.queueSize()) === 0
    await eventually('an empty queue', all, { withinMs: 600_000, everyMs: 200 })

    const lanes = { transactional: timesOf(sent('transactional')), bulk: timesOf(sent('bulk')) }
    const delays = await delaysOf(room, transactional)
    const p95 = Math.round(percentile(delays, 0.95))
    const claims = Object.entries(lanes).flatMap(([name, times]) => [
      atMost(`${name} within any 10 s`, mostWithin(times, 10_000), rate * (10 + AHEAD_SECONDS)),
      atMost(`${name} within any second`, mostWithin(times, 1_000), rate * (1 + AHEAD_SECONDS)),
    ])
    return {
      injected: {
        'transactional at once': transactional,
        'bulk at once': bulk,
        'transactional one by one': arriving,
      },
      seen: {
        'transactional/s while behind': perSecondOf(lanes.transactional.slice(0, transactional)),
        'bulk/s while behind': perSecondOf(lanes.bulk),
        'transactional p50 ms': Math.round(percentile(delays, 0.5)),
        'transactional p95 ms': p95,
        'bulk behind meanwhile': `${bulkBehind} to ${stillBehind}`,
      },
      claims: [
        is('transactional emails, each once', lanes.transactional.length, transactional + arriving),
        is('bulk emails, each once', lanes.bulk.length, bulk),
        ...claims,
        ...(judgesDelay === 'yes' ? [atMost('transactional p95 in ms', p95, 1_000)] : []),
      ],
    }
  },
})

function timesOf(entries: readonly { time: number }[]): number[] {
  return entries.map(({ time }) => time).toSorted((one, other) => one - other)
}

/** Returns the largest number of the sorted times within any half-open window of `windowMs`. */
function mostWithin(times: readonly number[], windowMs: number): number {
  let most = 0
  let first = 0
  for (const [last, time] of times.entries()) {
    while (time - (times[first] ?? time) >= windowMs) first += 1
    most = Math.max(most, last - first + 1)
  }
  return most
}

function perSecondOf(times: readonly number[]): number {
  const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1_000
  return Math.round((10 * (times.length - 1)) / seconds) / 10
}

/** Returns the milliseconds from acceptance to the sink for the transactional emails after the first `skipped`. */
async function delaysOf(
  { services, sink, organizationId }: Awaited<ReturnType<typeof openMailroom>>,
  skipped: number,
): Promise<number[]> {
  const arrivals = new Map(sink.accepted().map(({ messageId, time }) => [messageId, time]))
  const stored = await rows<{ id: string; fromEmail: string; acceptedAt: number }>(
    services.orm.em.fork(),
    sql`select m.id, from_email as "fromEmail", extract(epoch from m.created_at)::float8 * 1000 as "acceptedAt"
      from message m where organization_id = ${organizationId} and class = 'TRANSACTIONAL'
      order by m.id offset ${skipped}`,
  )
  return stored.map((mail) => (arrivals.get(`<${formatMessageId(mail)}>`) ?? Number.NaN) - mail.acceptedAt)
}
