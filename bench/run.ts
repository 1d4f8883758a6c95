import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const SHARED = new Set([
  'run',
  'report',
  'system',
  'bare-workflows',
  'bare-fanout',
  'engine-peer',
  'listmonk',
  'load',
  'peer',
  'raw-load',
  'audience-data',
  'audience-filters',
  'explain',
])

const names = readdirSync(import.meta.dirname)
  .map((file) => file.replace(/\.ts$/, ''))
  .filter((name) => !SHARED.has(name))
const [asked, ...parameters] = process.argv.slice(2)

if (asked === undefined || !names.includes(asked)) {
  console.log(
    `npm run bench -- NAME [--json FILE]\n\nBenchmarks:\n${names.map((name) => `  ${name}`).join('\n')}`,
  )
  process.exitCode = asked === undefined || asked === '--help' ? 0 : 2
} else {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${asked}.ts`), ...parameters], {
    stdio: 'inherit',
  })
  process.exitCode = status ?? 1
}
