import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { startRunServices } from '../scripts/services/run-services.ts'
import type { Experiment, Report, SizeName } from './experiment.ts'
import { EXPERIMENTS } from './experiments.ts'

const USAGE = `npm run faults -- NAME... [--size small|full] [--seed NUMBER] [--json FILE]

  Runs experiments at full size (all of them: "all"), says what was injected, what was seen and whether it holds.

${EXPERIMENTS.map(({ id, title }) => `  ${id.padEnd(4)} ${title}`).join('\n')}`

// An injected fault may leave timers or connections that would keep the process alive.
process.exit(await main())

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      size: { type: 'string', default: 'full' },
      seed: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  const asked = positionals.map((name) => name.toUpperCase())
  const chosen = asked.includes('ALL') ? EXPERIMENTS : EXPERIMENTS.filter(({ id }) => asked.includes(id))
  const size = readSize(values.size)
  const seed = values.seed === undefined ? randomInt(1_000_000) : Number(values.seed)
  const isKnown = asked.every((name) => name === 'ALL' || chosen.some(({ id }) => id === name))
  if (values.help || chosen.length === 0 || !isKnown || !size || !Number.isSafeInteger(seed)) {
    console.log(USAGE)
    return values.help || positionals.length === 0 ? 0 : 2
  }
  const reports = await runAll(chosen, size, seed)
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(reports, null, 2)}\n`)
  return reports.length === chosen.length && reports.every(({ holds }) => holds) ? 0 : 1
}

function readSize(text: string): SizeName | undefined {
  return text === 'small' || text === 'full' ? text : undefined
}

/** Runs the experiments one after the other on servers of their own. An experiment that throws has no report. */
async function runAll(chosen: readonly Experiment[], size: SizeName, seed: number): Promise<Report[]> {
  const services = await startRunServices('faults/run.ts', { durable: true })
  for (const [name, value] of Object.entries(services.environment)) {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  const reports: Report[] = []
  try {
    for (const experiment of chosen) {
      const report = await runOne(experiment, size, seed)
      if (report) reports.push(report)
    }
  } finally {
    await services.stop()
  }
  return reports
}

async function runOne({ id, title, run }: Experiment, size: SizeName, seed: number): Promise<Report | null> {
  console.log(`\n${id} ${title} (${size}, seed ${seed})`)
  const began = performance.now()
  const elapsed = () => `${((performance.now() - began) / 1_000).toFixed(1).padStart(7)} s`
  try {
    const report = await run(size, { seed, say: (line) => console.log(`${elapsed()}  ${line}`) })
    print(report)
    console.log(`${id} ${report.holds ? 'holds' : 'DOES NOT HOLD'} after${elapsed()} (seed ${seed})`)
    return report
  } catch (error) {
    console.error(error)
    console.log(`${id} could not be carried out, after${elapsed()} (seed ${seed})`)
    return null
  }
}

function print({ settings, injected, seen, claims }: Report): void {
  for (const [title, figures] of Object.entries({ settings, injected, seen })) {
    const listed = Object.entries(figures).map(([name, value]) => `${name} ${value}`)
    console.log(`  ${title.padEnd(9)} ${listed.join(', ')}`)
  }
  for (const claim of claims) {
    console.log(`  ${claim.holds ? 'holds    ' : 'BROKEN   '} ${claim.claim}: ${claim.seen}`)
  }
}
