import { isRecord } from '../../../../schema/json.ts'
import type { Fault } from '../../../catalogue/failure.ts'
import { joinPath } from '../../../catalogue/schema-faults.ts'
import { isTimeZone } from '../../audience/moment.ts'
import { pathFault, validateWhere } from '../../audience/validate.ts'
import { lengthFaults, timeZoneSentence, windowFaults } from './read-step.ts'

type Raw = Record<string, unknown>

/** Checks what the schema of settings cannot express. Members of the wrong shape are left to the schema. */
export function settingFaults(settings: Raw, path: string): Fault[] {
  const { timezone, reEntry, exitRules, sendWindow, lateSend } = settings
  const at = (member: string) => joinPath(path, member)
  const faults: Fault[] = []
  if (typeof timezone === 'string' && !isTimeZone(timezone)) {
    faults.push({ path: at('timezone'), message: timeZoneSentence(timezone) })
  }
  if (isRecord(reEntry)) faults.push(...reEntryFaults(reEntry, at('reEntry.keyPath')))
  if (Array.isArray(exitRules)) faults.push(...ruleFaults(exitRules, at('exitRules')))
  if (isRecord(sendWindow)) faults.push(...windowFaults(sendWindow, at('sendWindow')))
  if (isRecord(lateSend) && isRecord(lateSend.maxLateness)) {
    faults.push(...lengthFaults(lateSend.maxLateness, at('lateSend.maxLateness')))
  }
  return faults
}

function reEntryFaults({ mode, keyPath }: Raw, path: string): Fault[] {
  const faults: Fault[] = []
  if (mode === 'PER_KEY' && keyPath === undefined) {
    const message = 'PER_KEY needs the path of the key in what the run is started with, such as "orderId"'
    faults.push({ path, message })
  }
  if (mode !== 'PER_KEY' && keyPath !== undefined) {
    faults.push({ path, message: 'goes with the mode PER_KEY only; leave it out' })
  }
  const wrong = typeof keyPath === 'string' ? pathFault(keyPath) : null
  return wrong === null ? faults : [...faults, { path, message: wrong }]
}

function ruleFaults(rules: readonly unknown[], path: string): Fault[] {
  const seen = new Set<unknown>()
  return rules.flatMap((rule, index) => {
    if (!isRecord(rule)) return []
    const at = joinPath(path, index)
    const faults = Array.isArray(rule.where) ? validateWhere(rule.where, joinPath(at, 'where')) : []
    if (seen.size === seen.add(rule.id).size) {
      const message = 'is the id of another rule already; choose another one'
      faults.push({ path: joinPath(at, 'id'), message })
    }
    return faults
  })
}
