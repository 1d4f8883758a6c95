import { setTimeout as sleep } from 'node:timers/promises'

import type { List, PostloomError, Result, SubscriberEvent } from '@postloom/sdk'
import type { Command } from 'commander'

import { dataOf, refusalOf } from '../api.ts'
import type { Context } from '../context.ts'
import { misused } from '../failure.ts'
import { type Output, toJson } from '../output.ts'

type Reading = { limit: number; before?: string }
type Read = (asked: Reading) => Promise<Result<List<SubscriberEvent>>>
type Options = { type?: string; subscriber?: string; last: string }

const EVERY_MS = 2_000
const PAGE = 100
/** The position before every event: the id with the smallest value. */
const BEGINNING = `evt_${'0'.repeat(26)}`

/** Adds `tail`, which prints events as they happen. */
export function addTail(program: Command, context: Context): void {
  program
    .command('tail')
    .description('show events of subscribers as they happen, until you stop it')
    .option('-t, --type <type>', 'only events of this type, such as EMAIL_CLICKED')
    .option('-s, --subscriber <id or email>', 'only events of this person')
    .option('-n, --last <number>', 'how many earlier events to show first', '10')
    .action((options: Options) => tail(context, options))
}

async function tail({ connect, output }: Context, { type, subscriber, last }: Options): Promise<void> {
  if (!/^\d{1,3}$/.test(last) || Number(last) > PAGE) misused(`--last is a number from 0 to ${PAGE}.`)
  const { client } = await connect()
  const kind = type === undefined ? {} : { eventType: type }
  const read: Read = (asked) =>
    subscriber === undefined
      ? client.events.list({ ...asked, ...kind })
      : client.subscribers.events.list(subscriber, { ...asked, ...kind })
  const { data } = dataOf(await read({ limit: PAGE }))
  const known = data.toReversed()
  for (const event of known.slice(Math.max(0, known.length - Number(last)))) show(output, event)
  await follow(output, read, known)
}

/** Prints new events forever. `known` are the latest events so far, oldest first, which are not printed. */
async function follow(output: Output, read: Read, known: readonly SubscriberEvent[]): Promise<never> {
  let recent = [...known]
  for (;;) {
    await sleep(EVERY_MS)
    const seen = new Set(recent.map(({ id }) => id))
    // Reads from the oldest of the recent events on: an event can appear after a newer one if its transaction took
    // longer.
    const found = await pagesFrom(output, read, recent[0]?.id ?? BEGINNING)
    const fresh = found.filter(({ id }) => !seen.has(id))
    for (const event of fresh) show(output, event)
    recent = [...recent, ...fresh].toSorted((one, other) => (one.id < other.id ? -1 : 1)).slice(-PAGE)
  }
}

/**
 * Returns all events after the id `from`, oldest first. When the service becomes unavailable, returns what was read
 * until then.
 */
async function pagesFrom(output: Output, read: Read, from: string): Promise<SubscriberEvent[]> {
  const found: SubscriberEvent[] = []
  let more = true
  while (more) {
    const { data, error } = await read({ limit: PAGE, before: found.at(-1)?.id ?? from })
    if (error && !isPassing(error)) throw refusalOf(error)
    if (error) output.note(`${error.message} Going on.`)
    found.push(...(data?.data.toReversed() ?? []))
    more = data?.has_more === true
  }
  return found
}

/** Returns whether a later request may succeed. */
function isPassing({ statusCode }: PostloomError): boolean {
  return statusCode === null || statusCode === 429 || statusCode >= 500
}

function show(output: Output, event: SubscriberEvent): void {
  const { createdAt, type, subscriberId, data, cause } = event
  const because = cause.name ? `  (${cause.kind}: ${cause.name})` : ''
  const text = Object.keys(data).length > 0 ? `  ${toJson(data)}` : ''
  output.item(event, `${createdAt}  ${type.padEnd(20)}  ${subscriberId}${text}${because}`)
}
