import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'

import type { History } from '@temporalio/common/lib/proto-utils.js'
import { Worker } from '@temporalio/worker'

import { workflowBundle } from '../../worker/bundle.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** The directory of recorded histories and of the hashes of the workflow files they were recorded with. */
export const HISTORIES = join(ROOT, 'test', 'histories')
/** The name of the file with the hashes. */
export const SOURCES = 'sources.json'

/** A recorded execution. `events` are Temporal's, in the JSON format of protobufjs. */
export type Recorded = { workflowId: string; events: Record<string, unknown>[] }

type Protobuf<Message> = {
  fromObject(json: object): Message
  toObject(message: object, options: object): object
}
type Messages = { temporal: { api: { history: { v1: { History: Protobuf<History> } } } } }

// Uses the SDK's own copy of its messages, because `historyToJSON` and `historyFromJSON` fail if npm installed
// protobufjs twice.
const sdk = createRequire(createRequire(import.meta.url).resolve('@temporalio/worker'))
// The SDK exports no type for reading and writing a History.
const messages = sdk('@temporalio/proto') as Messages
const HistoryMessage = messages.temporal.api.history.v1.History

/** Returns the events of a history as plain JSON: enums by name, bytes in base64, 64-bit numbers as text. */
export function toPlainEvents(history: History): Recorded['events'] {
  const options = { enums: String, bytes: String, longs: String }
  // The JSON of a History has this member.
  return (HistoryMessage.toObject(history, options) as Pick<Recorded, 'events'>).events
}

/** Returns the SHA-256 of every file that influences replay, by its path. */
export async function hashSources(): Promise<Record<string, string>> {
  const names = await readdir(join(ROOT, 'temporal', 'workflows'), { recursive: true })
  const workflows = names.filter((name) => name.endsWith('.ts')).map((name) => `temporal/workflows/${name}`)
  const files = [...workflows, 'temporal/contract.ts', 'temporal/timer.ts'].toSorted()
  const hashes = files.map(async (file) => {
    const content = await readFile(join(ROOT, file))
    return [file, createHash('sha256').update(content).digest('hex')] as const
  })
  return Object.fromEntries(await Promise.all(hashes))
}

/** Returns the edition in the names of histories recorded with these workflow files: `name.{edition}.json`. */
export function editionOf(sources: Record<string, string>): string {
  return createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 8)
}

/** Returns the recorded histories by file name. */
export async function readHistories(): Promise<Map<string, Recorded>> {
  const names = (await readdir(HISTORIES)).filter((name) => name.endsWith('.json') && name !== SOURCES)
  const read = names.toSorted().map(async (name) => {
    // Written by scripts/record-histories.ts.
    const recorded = JSON.parse(await readFile(join(HISTORIES, name), 'utf8')) as Recorded
    return [name, recorded] as const
  })
  return new Map(await Promise.all(read))
}

/** Replays histories with the current workflows. Returns the error of each that does not match, by file name. */
export async function replay(histories: ReadonlyMap<string, Recorded>): Promise<Map<string, Error>> {
  // The file name serves as the workflow id, because executions that continue each other share one id.
  const given = [...histories].map(([file, { events }]) => ({
    workflowId: file,
    history: HistoryMessage.fromObject({ events }),
  }))
  const failed = new Map<string, Error>()
  const options = { workflowBundle: await workflowBundle() }
  for await (const { workflowId, error } of Worker.runReplayHistories(options, given)) {
    if (error) failed.set(workflowId, error)
  }
  return failed
}
