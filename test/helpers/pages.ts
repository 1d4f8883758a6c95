import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const PAGES = join(import.meta.dirname, '..', '..', 'docs')

/**
 * Returns the shell commands of a section of a page, in order and without `export` lines, because callers set the
 * address and token of the service themselves.
 */
export function commandsOf(page: string, section: string): string {
  const text = readFileSync(join(PAGES, page), 'utf8')
  const [, own = ''] = text.split(`\n## ${section}\n`)
  const [body = ''] = own.split('\n## ')
  const blocks = [...body.matchAll(/^```sh\n([^]+?)\n```$/gm)].map(([, commands = '']) => commands)
  return blocks.join('\n').replaceAll(/^export .*$/gm, '')
}
