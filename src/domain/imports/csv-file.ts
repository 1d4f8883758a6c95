import { isUtf8 } from 'node:buffer'
import { finished } from 'node:stream'

import { CsvError, parse, type Options } from 'csv-parse'
import { parse as parseSync } from 'csv-parse/sync'

import { Failure } from '../../catalogue/failure.ts'

/** A record of a file: its cells and the byte position after it. */
export type CsvRecord = { cells: string[]; end: number }

/** The header of a file, its delimiter and the bytes before the first row. */
export type CsvHead = { header: string[]; delimiter: string; headerBytes: number }

/** The header must end within this many bytes. */
export const HEAD_BYTES = 65_536
const RECORD_BYTES = 200_000
/** Parsing is synchronous, so pieces of this size let other work of the process run in between. */
const PIECE_BYTES = 65_536
const DELIMITERS = [',', ';', '\t', '|']
const BOM = Buffer.from([0xef, 0xbb, 0xbf])
const windows1252 = new TextDecoder('windows-1252')

// The parser treats bytes as characters one to one; cleanCell() decodes each cell.
const OPTIONS = {
  encoding: 'latin1',
  record_delimiter: ['\r\n', '\n', '\r'],
  relax_column_count: true,
  relax_quotes: true,
  skip_empty_lines: true,
  skip_records_with_empty_values: true,
  max_record_size: RECORD_BYTES,
} as const satisfies Options

/** Reads the header from the first bytes of a file; `isAll` means that these are the whole file. */
export function readHead(start: Buffer, isAll: boolean): CsvHead {
  if (start.length === 0) refuseFile('The file is empty; send a CSV file whose first line names the columns.')
  if (
    (start[0] === 0xff && start[1] === 0xfe) ||
    (start[0] === 0xfe && start[1] === 0xff) ||
    start.includes(0)
  ) {
    refuseFile('The file is not CSV in UTF-8 or Windows-1252; save it as "CSV UTF-8" and send that.')
  }
  const bomBytes = start.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0
  const text = start.subarray(bomBytes)
  const delimiter = delimiterOf(text.toString('latin1'))
  const head = firstRecord(text, delimiter)
  const headerBytes = head && bomBytes + head.end
  if (!head || (headerBytes === start.length && !isAll)) {
    refuseFile(
      `The first line is longer than ${HEAD_BYTES} bytes or has an open quote; it must name the columns.`,
    )
  }
  return { header: head.cells.map((cell) => cleanCell(cell)), delimiter, headerBytes: bomBytes + head.end }
}

function firstRecord(text: Buffer, delimiter: string): CsvRecord | undefined {
  let found: CsvRecord | undefined
  try {
    parseSync(text, {
      ...OPTIONS,
      delimiter,
      to: 1,
      on_record(cells: string[], { bytes }) {
        found ??= { cells, end: bytes }
        return cells
      },
    })
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
  }
  return found
}

/** Returns the delimiter that occurs most often in the first line outside quotes. */
function delimiterOf(text: string): string {
  const line = (/^(?:"(?:[^"]|"")*"|[^"\r\n])*/.exec(text)?.[0] ?? '').replaceAll(/"(?:[^"]|"")*"/g, '')
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter).length - 1)
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ','
}

/**
 * Reads the records of a file from byte `from` on, in pages of at most `size`. When a quote is never closed, it yields
 * the records before the quote and then throws a `Failure`.
 */
export async function* readPages(
  pieces: AsyncIterable<Buffer>,
  { delimiter, from, size }: { delimiter: string; from: number; size: number },
): AsyncGenerator<CsvRecord[]> {
  let records: CsvRecord[] = []
  const parser = parse({
    ...OPTIONS,
    delimiter,
    on_record(cells: string[], { bytes }) {
      records.push({ cells, end: from + bytes })
      return null
    },
  })
  // Each write reports the error as well; without a listener, the event would end the process.
  parser.on('error', () => undefined)
  const feed = (piece: Buffer) =>
    new Promise<Error | null | undefined>((resolve) => parser.write(piece, resolve))
  const end = () =>
    new Promise<Error | null | undefined>((resolve) => {
      finished(parser, resolve)
      parser.resume().end()
    })
  let fault: Error | null | undefined
  for await (const piece of smallPieces(pieces)) {
    fault = await feed(piece)
    while (records.length >= size) yield records.splice(0, size)
    if (fault) break
  }
  fault ??= await end()
  while (records.length > 0) yield records.splice(0, size)
  if (fault) throw asFailure(fault)
}

async function* smallPieces(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const bytes of pieces) {
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
      yield bytes.subarray(start, start + PIECE_BYTES)
    }
  }
}

function asFailure(error: unknown): unknown {
  if (!(error instanceof CsvError)) return error
  return new Failure(
    'INVALID_INPUT',
    'A quote is opened and not closed after the last row that was read; correct the file and upload it again: people who were imported already are updated.',
    { cause: error },
  )
}

/**
 * Returns the text of a cell, decoded as UTF-8 or else Windows-1252: one line without surrounding blanks, and without
 * the apostrophe that keeps a spreadsheet from running it as a formula.
 */
export function cleanCell(bytes: string): string {
  // oxlint-disable-next-line no-control-regex -- ASCII is what most cells are, and needs no decoding
  const text = /^[\x00-\x7f]*$/.test(bytes) ? bytes : decode(Buffer.from(bytes, 'latin1'))
  const trimmed = /[\r\n\t]/.test(text) ? oneLineOf(text) : text.trim()
  return /^'[=+\-@]/.test(trimmed) ? trimmed.slice(1) : trimmed
}

/** Joins lines in linear time; a pattern for blanks around line breaks would take quadratic time. */
function oneLineOf(text: string): string {
  return text
    .split(/[\r\n\t]/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' ')
}

function decode(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString('utf8') : windows1252.decode(bytes)
}

function refuseFile(message: string): never {
  throw new Failure('INVALID_INPUT', message, { details: [{ path: 'file', message }] })
}
