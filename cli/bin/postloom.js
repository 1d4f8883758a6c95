#!/usr/bin/env node
import { existsSync } from 'node:fs'

// A checkout runs its source; the package has only what is built from it.
const source = new URL('../main.ts', import.meta.url)
const isCheckout = existsSync(source)
const [major, minor] = process.versions.node.split('.').map(Number)
const [oldestMajor, oldestMinor] = isCheckout ? [22, 18] : [22, 13]

if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) {
  await import(isCheckout ? source.href : new URL('../dist/main.js', import.meta.url).href)
} else {
  console.error(
    `Node ${process.versions.node} is too old: postloom needs ${oldestMajor}.${oldestMinor} or later${isCheckout ? '; "npx postloom" uses the one of this checkout' : ''}.`,
  )
  process.exitCode = 1
}
