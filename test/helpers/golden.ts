import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const FOLDER = join(import.meta.dirname, '../golden')

/**
 * Returns the content of a golden file. With `UPDATE_GOLDEN=1` it is written first; review it before committing,
 * because it defines how emails look.
 */
export function golden(name: string, actual: string): string {
  const file = join(FOLDER, name)
  if (process.env['UPDATE_GOLDEN'] === '1') {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, actual)
  }
  return existsSync(file)
    ? readFileSync(file, 'utf8')
    : `${file} is not there: run with UPDATE_GOLDEN=1, then read it.`
}
