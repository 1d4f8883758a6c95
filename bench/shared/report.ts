import { writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'

/** The result of a benchmark: figures by name, and the ratio to the comparison measured in the same run. */
export type Result = {
  benchmark: string
  settings: Record<string, unknown>
  figures: Record<string, Record<string, number | string>>
  ratio: number
  must: string
  aim: string
}

/** Prints a table and the result as JSON. With `--json FILE` the JSON is written to the file instead. */
export function report(result: Result): void {
  const { values } = parseArgs({ options: { json: { type: 'string' } }, strict: false })
  const machine = { cpu: cpus()[0]?.model, cores: cpus().length, memory: totalmem(), node: process.version }
  console.table(result.figures)
  console.log(
    `${result.benchmark}: ratio ${result.ratio.toFixed(2)} (must ${result.must}, aim ${result.aim})`,
  )
  const json = JSON.stringify({ ...result, machine }, null, 2)
  if (typeof values['json'] === 'string') writeFileSync(values['json'], `${json}\n`)
  else console.log(json)
}

/** Rounds to two decimals. */
export function round(value: number): number {
  return Math.round(value * 100) / 100
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

/** Returns the value that a share (0 to 1) of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN
}
