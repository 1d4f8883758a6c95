// Measures simulating a year over HTTP: an email each week, a branch each month, and all of its ways. The comparison is
// the simulation of a single TRIGGER, which is the fixed cost of such a call.
// Run alone: node bench/simulate.ts [--json FILE]
import assert from 'node:assert/strict'

import type { Simulation } from '../schema/simulation.ts'
import { median, percentile, report } from './shared/report.ts'
import { startSystem } from './shared/system.ts'

const WEEKS = 52
const ROUNDS = 60
const WARM_UP = 10
const START = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const EMAIL = { type: 'EMAIL', config: { subject: "News, {{name | 'friend'}}", content: 'Hello {{name}}' } }
const WAIT = { type: 'WAIT', config: { amount: 1, unit: 'WEEKS', at: '09:00' } }

const system = await startSystem({ worker: false })
try {
  const year = await timed(yearLong())
  const single = await timed({ steps: [START], edges: [] })
  const { answer } = year
  const { ways } = answer
  const [likely] = ways
  assert.ok(Date.parse(likely?.end.at ?? '') - Date.parse(answer.from) > 360 * 86_400_000)
  report({
    benchmark: 'simulate',
    settings: {
      steps: yearLong().steps.length,
      ways: ways.length,
      visits: ways.reduce((sum, { timeline }) => sum + timeline.length, 0),
      rounds: ROUNDS,
    },
    figures: { 'a year': year.figures, 'a trigger': single.figures },
    ratio: year.p50 / single.p50,
    must: 'a year in under 100 ms (p50)',
    aim: '≤ 10',
  })
} finally {
  await system.stop()
}

/** Measures the durations of consecutive calls, and the processor time of the API and the database for each. */
async function timed(definition: object) {
  const processor = () => [system.processorMs('api'), system.processorMs('postgres')] as const
  for (let round = 0; round < WARM_UP; round++) await simulate(definition)
  const times: number[] = []
  const [api, postgres] = processor()
  let answer = await simulate(definition)
  for (let round = 1; round < ROUNDS; round++) {
    const begun = performance.now()
    answer = await simulate(definition)
    times.push(performance.now() - begun)
  }
  const [apiAfter, postgresAfter] = processor()
  const figures = {
    'p50 ms': median(times).toFixed(1),
    'p95 ms': percentile(times, 0.95).toFixed(1),
    'API processor ms': ((apiAfter - api) / ROUNDS).toFixed(1),
    'PostgreSQL processor ms': ((postgresAfter - postgres) / ROUNDS).toFixed(1),
  }
  return { answer, figures, p50: median(times) }
}

async function simulate(definition: object): Promise<Simulation> {
  const response = await fetch(`${system.url}/api/v2/tools/simulate_workflow`, {
    method: 'POST',
    headers: { authorization: `Bearer ${system.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ definition, sample: { name: 'Ada' } }),
  })
  const body: unknown = await response.json()
  assert.equal(response.status, 200, JSON.stringify(body))
  // The documented shape of a successful answer.
  return (body as { data: Simulation }).data
}

function yearLong(): { steps: object[]; edges: object[] } {
  const steps: object[] = [START]
  const edges: object[] = []
  let last = 'start'
  let port = 'next'
  const add = (step: { id: string; type: string; config: object }) => {
    steps.push(step)
    edges.push({ from: last, to: step.id, port })
    last = step.id
    port = 'next'
  }
  for (let week = 1; week <= WEEKS; week++) {
    const [mail, fork, tag] = [`mail-${week}`, `fork-${week}`, `tag-${week}`]
    add({ id: mail, ...EMAIL })
    add({ id: `wait-${week}`, ...WAIT })
    if (week % 4 !== 0) continue
    const filters = [{ field: 'campaign', operator: 'clicked', value: { stepId: mail } }]
    add({ id: fork, type: 'BRANCH', config: { paths: [{ id: 'clicked', filters }] } })
    steps.push({ id: tag, type: 'ADD_TAG', config: { tagNames: [`clicked-${week}`] } })
    edges.push({ from: fork, to: tag, port: 'clicked' })
    if (week < WEEKS) edges.push({ from: tag, to: `mail-${week + 1}` })
    port = 'else'
  }
  return { steps, edges }
}
