import { AUTOMATION_LIMITS } from '../../../../schema/automation-parts.ts'
import type { StepConfigs } from '../../../../schema/automation-steps.ts'
import type { StepType } from '../../../../schema/automation.ts'
import { SERVICE_EVENT_TYPES } from '../../../../schema/event.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { joinPath } from '../../../catalogue/schema-faults.ts'
import { emailFault } from '../../addresses.ts'
import { shapeFaults } from '../../subscribers/fields.ts'
import { amountFault, isCurrency, METADATA_BYTES } from '../../subscribers/history.ts'

const WEBHOOK_BYTES = 65_536

type Judge<Type extends keyof StepConfigs> = (config: StepConfigs[Type], path: string) => Fault[]

const JUDGES: { [Type in keyof StepConfigs]?: Judge<Type> } = {
  SPLIT: splitFaults,
  UPDATE_FIELD: fieldFaults,
  CREATE_EVENT: eventFaults,
  NOTIFY: notifyFaults,
  WEBHOOK: webhookFaults,
}

/** Checks what the schema of a configuration cannot express. The caller has checked the configuration against it. */
export function detailFaults(type: StepType, config: unknown, path: string): Fault[] {
  const judge = type === 'TRIGGER' || type === 'WAIT_UNTIL' ? undefined : JUDGES[type]
  // The casts are safe: `JUDGES` is keyed by type, and the schema of the type has accepted the configuration.
  return judge ? (judge as Judge<keyof StepConfigs>)(config as StepConfigs[keyof StepConfigs], path) : []
}

function splitFaults({ variants, holdoutVariantId }: StepConfigs['SPLIT'], path: string): Fault[] {
  const faults: Fault[] = []
  if (variants.every(({ weight }) => weight === 0)) {
    faults.push({ path: joinPath(path, 'variants'), message: 'need a weight above 0 in one of them' })
  }
  if (holdoutVariantId !== undefined && !variants.some(({ id }) => id === holdoutVariantId)) {
    const known = variants.map(({ id }) => id).join(', ')
    faults.push({
      path: joinPath(path, 'holdoutVariantId'),
      message: `is none of the variants; they are ${known}`,
    })
  }
  return faults
}

function fieldFaults(
  { set = {}, increment = {}, clear = [] }: StepConfigs['UPDATE_FIELD'],
  path: string,
): Fault[] {
  const named = [
    ...Object.keys(set).map((name) => ({ name, at: `set.${name}` })),
    ...Object.keys(increment).map((name) => ({ name, at: `increment.${name}` })),
    ...clear.map((name, index) => ({ name, at: `clear[${index}]` })),
  ]
  const most = AUTOMATION_LIMITS.fields
  if (named.length === 0)
    return [{ path, message: 'changes nothing; name a field in set, increment or clear' }]
  if (named.length > most) return [{ path, message: `changes more than ${most} fields; use several steps` }]
  const seen = new Set<string>()
  const twice = named.filter(({ name }) => seen.size === seen.add(name).size)
  const nulls = Object.keys(set).filter((name) => set[name] === null)
  return [
    ...shapeFaults(Object.entries(set), joinPath(path, 'set')),
    ...shapeFaults(Object.entries(increment), joinPath(path, 'increment')),
    ...shapeFaults(
      clear.map((name) => [name, null]),
      joinPath(path, 'clear'),
    ),
    ...nulls.map((name) => ({
      path: joinPath(path, `set.${name}`),
      message: 'is null; name the field in clear instead',
    })),
    ...twice.map(({ name, at }) => ({
      path: joinPath(path, at),
      message: `"${name}" is changed twice; name it once`,
    })),
  ]
}

function eventFaults(
  { eventType, amount, currency, metadata }: StepConfigs['CREATE_EVENT'],
  path: string,
): Fault[] {
  const faults: Fault[] = []
  const fault = (member: string, message: string) => faults.push({ path: joinPath(path, member), message })
  if (SERVICE_EVENT_TYPES.has(eventType)) {
    fault('eventType', `${eventType} is written by the service itself; choose a name of your own`)
  }
  const wrongAmount = amount === undefined ? null : amountFault(amount)
  if (wrongAmount !== null) fault('amount', wrongAmount)
  if (currency !== undefined && !isCurrency(currency)) {
    fault('currency', 'is not an ISO 4217 code; write three capital letters, such as "USD"')
  }
  if (Buffer.byteLength(JSON.stringify(metadata ?? {})) > METADATA_BYTES) {
    fault('metadata', `is larger than ${METADATA_BYTES} bytes of JSON; shorten it`)
  }
  return faults
}

// Headers that the HTTP request or its signature sets.
const OWN_HEADERS =
  /^(host|content-length|connection|transfer-encoding|upgrade|te|trailer|expect|webhook-.*)$/i
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/

/** Returns the address of a WEBHOOK step with stand-ins for its variables, or null if it is none. */
export function requestUrl(url: string): URL | null {
  return URL.parse(url.replaceAll(/\{\{[^{}]*\}\}/g, 'x'))
}

function urlFault(url: string): string | null {
  const read = requestUrl(url)
  const [origin = ''] = /^https?:\/\/[^/?#]*/i.exec(url) ?? []
  if (!read || origin === '') return 'is not an http or https address'
  if (origin.includes('{')) return 'has a variable in its host; variables may stand in path and query'
  return read.username || read.password ? 'holds a user or password; send a header instead' : null
}

function webhookFaults({ url, method, headers = {}, body }: StepConfigs['WEBHOOK'], path: string): Fault[] {
  const faults: Fault[] = []
  const fault = (member: string, message: string) => faults.push({ path: joinPath(path, member), message })
  const wrongUrl = urlFault(url)
  if (wrongUrl !== null) fault('url', wrongUrl)
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name)) fault(`headers.${name.slice(0, 100)}`, 'is not the name of a header')
    else if (OWN_HEADERS.test(name)) fault(`headers.${name}`, 'is set by the request itself; leave it out')
    if (/[^\t\u0020-\u007e\u00a0-\u00ff]/.test(value)) {
      fault(`headers.${name.slice(0, 100)}`, 'holds a character that a header cannot carry; write one line')
    }
  }
  if (Object.keys(headers).length > 50) fault('headers', 'are more than 50; send less')
  if (method === 'GET' && body !== undefined) fault('body', 'goes with any method but GET; leave it out')
  const size = Buffer.byteLength(typeof body === 'string' ? body : JSON.stringify(body ?? ''))
  if (size > WEBHOOK_BYTES) fault('body', `is larger than ${WEBHOOK_BYTES} bytes; send less`)
  return faults
}

function notifyFaults({ to, subject }: StepConfigs['NOTIFY'], path: string): Fault[] {
  const faults: Fault[] = []
  const wrong = emailFault(to)
  if (wrong !== null)
    faults.push({ path: joinPath(path, 'to'), message: `is not an email address: ${wrong}` })
  if (/\p{Cc}/u.test(subject)) {
    faults.push({
      path: joinPath(path, 'subject'),
      message: 'holds a control character; write one line of text',
    })
  }
  return faults
}
