import { decodeMarkdown } from './escape.ts'

const SPACES = /[ \n]*/y
const ANGLE_DESTINATION = /<((?:[^<>\n\\]|\\.){0,4096})>/y
const TITLE = /[ \n]+(?:"(?:[^"\\]|\\[^]){0,1000}"|'(?:[^'\\]|\\[^]){0,1000}'|\((?:[^()\\]|\\[^]){0,1000}\))/y
const MAX_PARENTHESES = 32

function matchAt(pattern: RegExp, source: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at
  return pattern.exec(source)
}

/**
 * Returns the end of a destination without angle brackets (no spaces, balanced parentheses), or null if it is invalid.
 */
function endOfDestination(source: string, start: number): number | null {
  let depth = 0
  let at = start
  for (; at < source.length; at += 1) {
    const character = source.charAt(at)
    if (character <= ' ') break
    if (character === '\\') at += 1
    else if (character === '(' && ++depth > MAX_PARENTHESES) return null
    else if (character === ')' && --depth < 0) break
  }
  return depth > 0 ? null : at
}

/** Reads `(destination "title")` after a `]`; null if there is none. The title is not used in mail. */
export function readLinkTail(source: string, start: number): { destination: string; end: number } | null {
  if (source.charAt(start) !== '(') return null
  let at = start + 1 + (matchAt(SPACES, source, start + 1)?.[0].length ?? 0)
  const angle = source.charAt(at) === '<' ? matchAt(ANGLE_DESTINATION, source, at) : null
  if (source.charAt(at) === '<' && angle === null) return null
  const bareEnd = angle === null ? endOfDestination(source, at) : at + angle[0].length
  if (bareEnd === null) return null
  const destination = angle === null ? source.slice(at, bareEnd) : (angle[1] ?? '')
  at = bareEnd
  at += matchAt(TITLE, source, at)?.[0].length ?? 0
  at += matchAt(SPACES, source, at)?.[0].length ?? 0
  return source.charAt(at) === ')' ? { destination, end: at + 1 } : null
}

const ANGLE_LINK = /<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*|[^\s<>@:/\\]+@[A-Za-z0-9.-]+)>/y

/** Reads `<https://…>` or `<someone@example.com>`; null if there is none. */
export function readAngleLink(
  source: string,
  start: number,
): { url: string; text: string; end: number } | null {
  const match = matchAt(ANGLE_LINK, source, start)
  if (match === null) return null
  const text = match[1] ?? ''
  const isAddress = !text.includes(':')
  return { url: isAddress ? `mailto:${text}` : text, text, end: start + match[0].length }
}

const RAW_URL = /(?:https?:\/\/|www\.)[^\s<>[\]"`]*/iy
const RAW_HOST = /(?:https?:\/\/[^\s/?#.,<>[\]"`]|www\.[a-z0-9-]{1,63}\.[a-z])/iy
const MAX_RAW_URL = 4096

/**
 * Cuts off trailing characters that belong to the sentence: punctuation, and closing parentheses that the address did
 * not open.
 */
function trimRawUrl(raw: string): string {
  let open = 0
  for (const character of raw) {
    if (character === '(') open += 1
    if (character === ')') open -= 1
  }
  let end = raw.length
  for (; end > 0; end -= 1) {
    const last = raw.charAt(end - 1)
    if (last === ')' && open < 0) open += 1
    else if (!"?!.,:;*_~'".includes(last)) break
  }
  return raw.slice(0, end)
}

/**
 * Reads a bare address in running text. Null when none begins here; `url` is null when the text up to `end` is only
 * text.
 */
export function readRawUrl(source: string, start: number): { url: string | null; end: number } | null {
  if (start > 0 && /[\p{L}\p{N}]/u.test(source.charAt(start - 1))) return null
  if (matchAt(RAW_HOST, source, start) === null) return null
  const raw = matchAt(RAW_URL, source, start)?.[0] ?? ''
  if (raw.length > MAX_RAW_URL) return { url: null, end: start + raw.length }
  const url = trimRawUrl(raw)
  if (matchAt(RAW_HOST, url, 0) === null) return { url: null, end: start + raw.length }
  return { url: decodeMarkdown(url), end: start + url.length }
}

/**
 * Returns the start of the last run of each number of backticks, so that an unclosed code span is recognized at once.
 */
export function runLengths(source: string): ReadonlyMap<number, number> {
  const lasts = new Map<number, number>()
  for (const match of source.matchAll(/`+/g)) lasts.set(match[0].length, match.index)
  return lasts
}

/** Reads a code span, whose text is literal; null when no later run of the same length closes it. */
export function readCodeSpan(
  source: string,
  start: number,
  lasts: ReadonlyMap<number, number>,
): { text: string; end: number } | null {
  const mark = matchAt(/`+/y, source, start)?.[0] ?? ''
  if ((lasts.get(mark.length) ?? -1) <= start) return null
  const runs = /`+/g
  runs.lastIndex = start + mark.length
  for (let run = runs.exec(source); run !== null; run = runs.exec(source)) {
    if (run[0] !== mark) continue
    const text = source.slice(start + mark.length, run.index).replaceAll('\n', ' ')
    const isPadded = text.startsWith(' ') && text.endsWith(' ') && text.trim() !== ''
    return { text: isPadded ? text.slice(1, -1) : text, end: run.index + mark.length }
  }
  return null
}
