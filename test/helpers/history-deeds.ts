import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

import * as contract from '../../temporal/contract.ts'
import type { Recorded } from './histories.ts'

const WORKFLOWS = join(import.meta.dirname, '..', '..', 'temporal', 'workflows')
const NAMES: Readonly<Record<string, unknown>> = contract

/**
 * Returns what the workflow files do that leaves a trace in a history: "AutomationRun hears nudge", "CampaignSend does
 * freezeAudience", "SubscriberImport continues as new". Queries leave no trace.
 */
export async function deedsOfWorkflows(): Promise<string[]> {
  const files = (await readdir(WORKFLOWS)).filter((file) => file !== 'index.ts')
  const sources = await Promise.all(files.map((file) => readFile(join(WORKFLOWS, file), 'utf8')))
  return sources.flatMap(deedsOf).toSorted()
}

function deedsOf(source: string): string[] {
  const name = /export async function (\w+)\(/.exec(source)?.[1] ?? ''
  const messages = [...source.matchAll(/\bdefine(?:Signal|Update)(?:<[^(]*>)?\((\w*)/g)]
  const proxied = [...source.matchAll(/const \{([^}]*)\}\s*=\s*proxy(?:Local)?Activities\b/g)]
  const activities = proxied.flatMap(([, names = '']) => names.match(/\w+/g) ?? [])
  return [
    `${name} begins`,
    ...messages.map(([, constant = '']) => `${name} hears ${String(NAMES[constant])}`),
    ...activities.map((activity) => `${name} does ${activity}`),
    ...(source.includes('isCancellation(') ? [`${name} is canceled`] : []),
    ...(source.includes('continueAsNew<') ? [`${name} continues as new`, `${name} was continued`] : []),
  ]
}

/** Returns what was done in the histories, in the notation of `deedsOfWorkflows`. */
export function deedsIn(histories: Iterable<Recorded>): Set<string> {
  return new Set([...histories].flatMap(deedsInOne))
}

function deedsInOne({ events }: Recorded): string[] {
  const [begun] = events.map((event) => Object(event['workflowExecutionStartedEventAttributes']))
  const name = String(begun.workflowType.name)
  const deeds = events.flatMap((event) => {
    const about = attributesOf(event)
    switch (event['eventType']) {
      case 'EVENT_TYPE_WORKFLOW_EXECUTION_STARTED':
        return about.continuedExecutionRunId ? ['begins', 'was continued'] : ['begins']
      case 'EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED':
        return [`hears ${about.signalName}`]
      case 'EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED':
        return [`hears ${about.acceptedRequest.input.name}`]
      case 'EVENT_TYPE_ACTIVITY_TASK_SCHEDULED':
        return [`does ${about.activityType.name}`]
      case 'EVENT_TYPE_MARKER_RECORDED':
        return [`does ${Object(payloadOf(about.details.data)).activity_type}`]
      case 'EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED':
        return ['is canceled']
      case 'EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW':
        return ['continues as new']
      default:
        return []
    }
  })
  return deeds.map((deed) => `${name} ${deed}`)
}

/** Returns the steps that runs reached in the histories, such as "hello (EMAIL)", from the activities' results. */
export function stepsIn(histories: Iterable<Recorded>): Set<string> {
  const answers = [...histories].flatMap(({ events }) =>
    events.map((event) => Object(payloadOf(attributesOf(event).details?.result))),
  )
  const recent: string[] = answers.flatMap(({ recentSteps = [] }) => recentSteps)
  return new Set(recent.flatMap((words) => /^.* \([A-Z_]+\)(?= )/.exec(words) ?? []))
}

/** Returns the attributes of an event; each event type stores them under a different name. */
function attributesOf(event: Recorded['events'][number]) {
  const [, about] = Object.entries(event).find(([key]) => key.endsWith('EventAttributes')) ?? []
  return Object(about)
}

/** Returns the decoded value of the first payload. */
function payloadOf(payloads: { payloads: { data: string }[] } | null | undefined): unknown {
  const [first] = payloads?.payloads ?? []
  return first ? JSON.parse(Buffer.from(first.data, 'base64').toString()) : undefined
}
