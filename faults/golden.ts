import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { dateDue, waitDue } from '../src/domain/automations/runs/schedule.ts'
import { readDueTime } from '../src/domain/campaigns/due-time.ts'
import { type Claim, is } from './experiment.ts'

/**
 * A schedule and the moment that it means. `is` names the case: a local time that occurs once (plain), twice or never
 * (skipped), a time with an offset, or elapsed time.
 */
type Golden = { zone: string; due: string; is: 'plain' | 'twice' | 'skipped' | 'offset' | 'elapsed' } & (
  | { kind: 'campaign'; date: string; hours?: number; minutes?: number }
  | { kind: 'wait'; begun: string; wait: Parameters<typeof waitDue>[0] }
  | { kind: 'until'; until: string }
)

/**
 * Compares golden-schedules.jsonl with our results. The table was computed from the rule alone (a time that daylight
 * saving skips moves forward; of a time that occurs twice, the first counts), by Python's zoneinfo on the time zone
 * database of an operating system, with none of our code. Its schedules are in the past, because laws can change the
 * future of a zone.
 */
export function judgeGolden(): { count: number; claims: Claim[] } {
  const lines = readFileSync(join(import.meta.dirname, 'golden-schedules.jsonl'), 'utf8')
    .trim()
    .split('\n')
  const judged = lines.map((line) => {
    // The file has one object of this type per line.
    const golden = JSON.parse(line) as Golden
    return { line, lateMs: dueOf(golden) - Date.parse(golden.due) }
  })
  const named = (wrong: typeof judged) =>
    wrong.map(({ line, lateMs }) => `${line} by ${lateMs / 1_000} s`).join('\n')
  return {
    count: judged.length,
    claims: [
      is('golden schedules', judged.length, 200),
      is('golden schedules that are early', named(judged.filter(({ lateMs }) => lateMs < 0)), ''),
      is('golden schedules that are late', named(judged.filter(({ lateMs }) => !(lateMs <= 0))), ''),
    ],
  }
}

/** Returns our result in epoch milliseconds. */
function dueOf(golden: Golden): number {
  const { zone: timezone } = golden
  switch (golden.kind) {
    case 'campaign':
      return readDueTime({ ...golden, timezone }, 0) ?? Number.NaN
    case 'wait':
      return waitDue(golden.wait, { now: Date.parse(golden.begun), timezone })
    case 'until':
      return dateDue({ mode: 'DATE', date: golden.until, onTimeout: 'CONTINUE' }, { now: 0, timezone })
  }
}
