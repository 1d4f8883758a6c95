import { styleText } from 'node:util'

import type { CommandFailure } from './failure.ts'

const ESCAPE = '\u001B'

/** A row of a table: a text for each column. */
export type Row = readonly (string | number | null)[]

/** Where a command says things: its result on standard output, everything for people on standard error. */
export type Output = {
  /** One JSON document on standard output, whatever happens. */
  isJson: boolean
  /** Somebody is there who can answer. */
  isInteractive: boolean
  /** Progress is drawn over itself. */
  isLive: boolean
  /** What the command was asked for: the value with --json, else the text. */
  result(value: unknown, text: string): void
  /** One of many results: a line of its own, as JSON with --json. */
  item(value: unknown, text: string): void
  /** A line for people. */
  note(line: string): void
  /** A line that the next one takes the place of; an empty one ends it. */
  progress(line: string): void
  failed(failure: CommandFailure): void
}

type Stream = { isTTY?: boolean; write: (text: string) => unknown }

/** Where a command is run: `process`, or a test. */
export type Streams = { stdin: Pick<Stream, 'isTTY'>; stdout: Stream; stderr: Stream }

/** What people see is for the terminal; `--json` is looked for before the command line is understood. */
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

/** Text in columns, the last of which is not padded. */
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

/** Names and what they hold, one a line. */
export function facts(entries: readonly (readonly [name: string, value: string | number | null])[]): string {
  const width = Math.max(...entries.map(([name]) => name.length))
  return entries.map(([name, value]) => `${bold(name.padEnd(width))}  ${value ?? '–'}`).join('\n')
}

/** A heading; plain where NO_COLOR is set or nobody looks. */
export function bold(text: string): string {
  return styleText('bold', text, { stream: process.stdout })
}

export function red(text: string): string {
  return styleText('red', text, { stream: process.stderr })
}

export function coloured(colour: 'green' | 'yellow' | 'red', text: string): string {
  return styleText(colour, text, { stream: process.stdout })
}

/** Every fault that a refusal lists, with where it is. */
function faultLines(details: unknown): string[] {
  if (!Array.isArray(details) || details.length < 2) return []
  return details.map((fault: unknown) => {
    const { path, message } = Object(fault)
    return `  ${path ? `${String(path)}: ` : ''}${String(message)}`
  })
}

/** JSON that no terminal takes for anything else. */
export function toJson(value: unknown, indent = 0): string {
  const text = JSON.stringify(value, undefined, indent)
  return text.replaceAll(/(?!\n)\p{Cc}/gu, (character) => {
    return String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** What somebody else wrote must not steer the terminal; our own colours may. */
function printable(text: string): string {
  return text.replaceAll(/(?![\n\t])\p{Cc}/gu, (character, at: number) =>
    character === ESCAPE && /^\[\d+m/.test(text.slice(at + 1, at + 5)) ? character : '',
  )
}
