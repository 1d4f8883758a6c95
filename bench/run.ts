import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'

/** Each file of this folder but this one is a benchmark. */
const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== basename(import.meta.filename))
  .map((file) => basename(file, '.ts'))
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
