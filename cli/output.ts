import { randomUUID } from 'node:crypto'
import { styleText } from 'node:util'

import type { CommandFailure } from './failure.ts'

const ESCAPE = '\u001B'
/** Replaces ESC in our own colours until they are printed. It is random, so that no text from others can contain it. */
const OWN_ESCAPE = randomUUID()

/** A table row, with one cell per column. */
export type Row = readonly (string | number | null)[]

/** The output of a command: results go to standard output, everything else to standard error. */
export type Output = {
  /** Whether standard output is JSON, even for errors. */
  isJson: boolean
  /** Whether a person at the terminal can answer questions. */
  isInteractive: boolean
  /** Whether progress can overwrite its own line. */
  isLive: boolean
  /** Prints the result of the command: the value with --json, else the text. */
  result(value: unknown, text: string): void
  /** Prints one of several results on a line of its own; with --json, as JSON. */
  item(value: unknown, text: string): void
  /** Prints a line for people. */
  note(line: string): void
  /** Prints a line that the next one replaces. An empty line ends it. */
  progress(line: string): void
  failed(failure: CommandFailure): void
}

type Stream = { isTTY?: boolean; write: (text: string) => unknown }

/** The streams of the command: those of `process`, or of a test. */
export type Streams = { stdin: Pick<Stream, 'isTTY'>; stdout: Stream; stderr: Stream }

/**
 * Creates the output. It looks for `--json` itself, because errors in parsing the command line are printed as JSON too.
 */
export function createOutput(
  parameters: readonly string[],
  { stdin, stdout, stderr }: Streams = process,
): Output {
  const isJson = parameters.includes('--json')
  const isLive = stderr.isTTY === true && !isJson
  const say = (stream: Stream, text: string) => void stream.write(`${printable(text)}\n`)
  return {
    isJson,
    isLive,
    isInteractive: !isJson && stdin.isTTY === true && stderr.isTTY === true,
    result(value, text) {
      if (isJson || text !== '') say(stdout, isJson ? toJson(value) : text)
    },
    item: (value, text) => say(stdout, isJson ? toJson(value) : text),
    note: (line) => say(stderr, line),
    progress(line) {
      if (isLive) stderr.write(`\r${ESCAPE}[K${printable(line)}`)
    },
    failed({ code, message, body }) {
      if (isJson) say(stdout, toJson({ error: { code, message, ...body } }))
      say(stderr, `${red('Error')}: ${message}`)
      for (const line of faultLines(body['details'])) say(stderr, line)
    },
  }
}

/** Returns a table with aligned columns; the last one is not padded. */
export function table(head: readonly string[], rows: readonly Row[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => (cell === null ? '–' : String(cell))))
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const lines = cells.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  '),
  )
  return [bold(lines[0] ?? ''), ...lines.slice(1)].join('\n')
}

/** Returns names and values, one pair per line. */
export function facts(entries: readonly (readonly [name: string, value: string | number | null])[]): string {
  const width = Math.max(...entries.map(([name]) => name.length))
  return entries.map(([name, value]) => `${bold(name.padEnd(width))}  ${value ?? '–'}`).join('\n')
}

/** Returns a bold text; plain if NO_COLOR is set or the output is not a terminal. */
export function bold(text: string): string {
  return styled('bold', text, process.stdout)
}

function red(text: string): string {
  return styled('red', text, process.stderr)
}

/** Returns a coloured text; plain if NO_COLOR is set or the output is not a terminal. */
export function coloured(colour: 'green' | 'yellow' | 'red', text: string): string {
  return styled(colour, text, process.stdout)
}

function styled(
  format: 'bold' | 'green' | 'yellow' | 'red',
  text: string,
  stream: NodeJS.WriteStream,
): string {
  return styleText(format, text.replaceAll(ESCAPE, ''), { stream }).replaceAll(ESCAPE, OWN_ESCAPE)
}

/** Returns a line with path and message for each fault in `details`; none if there are fewer than two. */
function faultLines(details: unknown): string[] {
  if (!Array.isArray(details) || details.length < 2) return []
  return details.map((fault: unknown) => {
    const { path, message } = Object(fault)
    return `  ${path ? `${String(path)}: ` : ''}${String(message)}`
  })
}

/** Returns JSON in which control characters are escaped, so that a terminal does not interpret them. */
export function toJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value, undefined, indent)
  return text.replaceAll(/(?!\n)\p{Cc}/gu, (character) => {
    return String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** Removes control characters except our own colours: texts from others must not control the terminal. */
function printable(text: string): string {
  return text.replaceAll(/(?![\n\t])\p{Cc}/gu, '').replaceAll(OWN_ESCAPE, ESCAPE)
}
