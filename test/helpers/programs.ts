import { existsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

import type { Implementation, TestFn } from 'ava'

/**
 * Declares a test that needs programs on the PATH, or files by absolute path. If one is missing, the test is skipped
 * and its title says which.
 */
export function where<Context>(test: TestFn<Context>, ...needed: readonly string[]) {
  const missing = needed.find((each) => !isThere(each))
  return (title: string, body: Implementation<[], Context>): void => {
    if (missing === undefined) test(title, body)
    else test.skip(`${title} (not run: ${missing} is not on this machine)`, body)
  }
}

function isThere(program: string): boolean {
  if (isAbsolute(program)) return existsSync(program)
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .some((directory) => existsSync(join(directory, program)))
}
