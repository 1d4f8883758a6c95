import { WEBHOOK_LIMITS } from '../schema/webhook.ts'
import { crossOrganization, unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { clearDeleted, closePending, replayPage } from '../src/domain/webhooks/pages.ts'
import { type DeliveryResult, reportResults } from '../src/domain/webhooks/results.ts'
import { signatureHeaders } from '../src/domain/webhooks/signature.ts'
import {
  claimTurns,
  type DueDelivery,
  type Endpoint,
  endTurn,
  readDue,
  readEndpoint,
  type RoundPlace,
  type Turn,
} from '../src/domain/webhooks/turns.ts'
import { encodeId } from '../src/ids.ts'
import { describeFault } from '../src/log.ts'
import { WebFault } from '../src/ports/web-fault.ts'
import { createWeb, type Web, type WebLine } from '../src/ports/web.ts'
import type { Services } from '../src/services.ts'
import { askedSeconds } from './retry-after.ts'
import { startServing } from './rounds.ts'

const POLL_MS = 500
/** How many endpoints this process serves at once, and how many requests to each. */
const MOST_TURNS = 64
const MOST_REQUESTS = 8
/** How many deliveries are read at once. */
const BATCH = 100
/** A turn ends after this time, so that other endpoints get theirs, or after so many failures in a row. */
const TURN_MS = 10_000
const MOST_FAILURES = 3
/** Results are saved at least this often, so that little is repeated after a crash. */
const NOTE_MS = 1_000
const ACTOR = { kind: 'system' as const, id: 'webhooks', name: 'webhooks' }

/** How long an endpoint may take to answer (ms); tests allow less. `graceMs` is the grace period of the process. */
export type WebhookOptions = { requestMs?: number; graceMs?: number }

/**
 * Delivers events to webhook endpoints. An endpoint belongs to one worker for a turn, so that the requests to it at one
 * time are limited however many workers there are, and a slow endpoint holds up no other. The turns of a worker that
 * dies go to others when their lease ends; events whose results were not saved are delivered again under the same id.
 */
export function startWebhookTurns(
  services: Services,
  { requestMs = 15_000, graceMs = 4_000 }: WebhookOptions = {},
): { stop(): Promise<void> } {
  const web = createWeb({
    allowPrivate: services.config.webAllowPrivate,
    concurrent: MOST_TURNS * MOST_REQUESTS,
  })
  let place: RoundPlace = null

  /** Claims turns; goes on until it gets one or the round is over. */
  async function claim(free: number): Promise<Turn[]> {
    for (;;) {
      const claimed = await claimTurns(crossOrganization(services), free, place)
      place = claimed.place
      if (claimed.turns.length > 0 || place === null) return claimed.turns
    }
  }

  async function serve(turn: Turn, signal: AbortSignal): Promise<void> {
    try {
      await takeTurn({ services, web, requestMs, signal }, turn)
    } catch (error) {
      // The turn is claimed again when its lease ends.
      services.log.warn({ fault: describeFault(error), webhookId: turn.webhookId }, 'a turn broke off')
    }
  }

  return startServing(services, {
    graceMs,
    pollMs: POLL_MS,
    most: MOST_TURNS,
    complaint: 'events cannot be told to webhooks',
    claim,
    serve,
  })
}

type Desk = { services: Services; web: Web; requestMs: number; signal: AbortSignal }
type OpenDesk = Desk & { line: WebLine }

async function takeTurn(desk: Desk, turn: Turn): Promise<void> {
  const { services } = desk
  const em = crossOrganization(services)
  if (turn.isDeleted) {
    await clearDeleted(em, turn)
  } else if (!turn.enabled) {
    await closePending(em, turn, { isLate: false })
  } else {
    if (turn.isReplaying) {
      const scope = { organizationId: turn.organizationId, actor: ACTOR }
      await unitOfWork(services, scope, (call) => replayPage(call, turn.webhookId))
    }
    const line = desk.web.openLine()
    const goesWell = await tellAll({ ...desk, line }, turn).finally(() => line.close())
    if (!goesWell) await closePending(em, turn, { isLate: true })
  }
  await endTurn(em, turn)
}

/**
 * Delivers what is due until nothing is, the turn is over or the endpoint fails. Returns whether the last attempt went
 * well.
 */
async function tellAll(desk: OpenDesk, turn: Turn): Promise<boolean> {
  const { services, signal } = desk
  const em = crossOrganization(services)
  const until = performance.now() + TURN_MS
  let failuresInRow = turn.failures
  while (!signal.aborted && performance.now() < until) {
    const due = await readDue(em, turn, BATCH)
    const endpoint = due.length > 0 && (await readEndpoint(em, services.config.encryptionKey, turn))
    if (!endpoint) break
    failuresInRow = await tellBatch(desk, { turn, endpoint, due, until, goesWell: failuresInRow === 0 })
    if (failuresInRow >= MOST_FAILURES) break
  }
  return failuresInRow === 0
}

type Batch = { turn: Turn; endpoint: Endpoint; due: DueDelivery[]; until: number; goesWell: boolean }

/**
 * Delivers one batch. A failing endpoint gets one request at a time, and the most at once as soon as it answers well.
 * Returns the number of failures in a row.
 */
async function tellBatch(desk: OpenDesk, { turn, endpoint, due, until, goesWell }: Batch): Promise<number> {
  const waiting = [...due]
  const asking: Promise<void>[] = []
  const notes = createNotes(desk.services, turn)
  let failuresInRow = 0

  async function ask(): Promise<void> {
    while (!desk.signal.aborted && failuresInRow < MOST_FAILURES && performance.now() < until) {
      const next = notes.isOver() ? undefined : waiting.shift()
      if (!next) return
      const result = await attempt(desk, endpoint, next)
      notes.add(result)
      if (result.error === null) {
        failuresInRow = 0
        while (asking.length < MOST_REQUESTS) asking.push(ask())
      } else if (result.wasAsked) {
        failuresInRow += 1
      }
    }
  }

  while (asking.length < (goesWell ? MOST_REQUESTS : 1)) asking.push(ask())
  // `ask` adds to this list while it is iterated.
  for (const each of asking) await each
  await notes.end()
  return notes.isOver() ? MOST_FAILURES : failuresInRow
}

/** Saves the results of attempts, from time to time and at the end. */
function createNotes(services: Services, { organizationId, webhookId }: Turn) {
  let results: DeliveryResult[] = []
  let writtenAt = performance.now()
  let writing: Promise<void> = Promise.resolve()
  let isOver = false

  async function write(told: readonly DeliveryResult[]): Promise<void> {
    const scope = { organizationId, actor: ACTOR }
    try {
      const isDisabled = await unitOfWork(services, scope, (call) => reportResults(call, webhookId, told))
      isOver ||= isDisabled
    } catch (error) {
      // These events are delivered again, under the same ids.
      isOver = true
      services.log.warn({ fault: describeFault(error), webhookId }, 'what a webhook was told was not noted')
    }
  }

  function flush(): void {
    const told = results
    results = []
    writtenAt = performance.now()
    if (told.length > 0) writing = writing.then(() => write(told))
  }

  return {
    /** Returns whether the endpoint must get no more requests: it was disabled, or results cannot be saved. */
    isOver: () => isOver,
    add(result: DeliveryResult) {
      results.push(result)
      if (performance.now() - writtenAt > NOTE_MS) flush()
    },
    async end() {
      flush()
      await writing
    },
  }
}

async function attempt(
  { services, line, requestMs }: OpenDesk,
  { url, secrets }: Endpoint,
  { eventId, attempt: number, body, isOnce }: DueDelivery,
): Promise<DeliveryResult> {
  const told = { eventId, attempt: number, wasAsked: true, status: null, body: null, waitSeconds: 0 }
  if (body === null) {
    const error = 'The event is gone: what it told was taken back.'
    return { ...told, wasAsked: false, isOver: true, error }
  }
  const message = { id: encodeId('evt', eventId), seconds: Math.floor(Date.now() / 1_000), body }
  try {
    const answer = await line.request({
      url,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...signatureHeaders(secrets, message) },
      body,
      limits: { bytes: WEBHOOK_LIMITS.responseBytes, milliseconds: requestMs },
      startOnly: true,
    })
    const { status } = answer
    const isDelivered = status >= 200 && status < 300
    return {
      ...told,
      status,
      body: answer.body.toString('utf8').replaceAll('\u0000', ''),
      error: isDelivered ? null : `The endpoint answered ${status}.`,
      waitSeconds: askedSeconds(answer.headers),
      isOver: isOnce,
    }
  } catch (error) {
    if (!(error instanceof WebFault))
      services.log.warn({ fault: describeFault(error) }, 'a webhook failed oddly')
    const why = error instanceof WebFault ? error.message : 'could not be asked'
    return { ...told, error: `The endpoint ${why}.`, isOver: isOnce }
  }
}
