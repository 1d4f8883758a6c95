import type { CompiledEmail } from '../content/compile.ts'
import type { LinkTarget } from '../content/links.ts'
import { narrow, type Slot, type Template } from '../content/template.ts'

/** The longest line that RFC 2045 allows, and the most that it can hold before the `=` of a soft break. */
const LONGEST_LINE = 76
const MAXIMUM_LINE = LONGEST_LINE - 1
const SOFT_BREAK = '=\r\n'
const LINE_END = /\r\n?|\n/
/** Text that needs no encoding: printable ASCII without `=` that does not begin with a dot, which SMTP would double. */
const PLAIN = /^[ !-\-/-<>-~][ -<>-~]*$/
/** Text that must be encoded: runs of characters other than printable ASCII, and equals signs. */
const CODED = /=|[^ -~]+/g
const DOT = 46

/**
 * Returns text in quoted-printable that starts and ends at the beginning of a line: results can be joined in any order
 * and decode to the joined texts. Line ends become CRLF; no line begins with a dot.
 */
export function quote(text: string): string {
  if (PLAIN.test(text)) {
    if (text.length <= MAXIMUM_LINE) return text + SOFT_BREAK
    // Mostly one of our URLs, whose token makes it longer than a line.
    if (text.length <= 2 * MAXIMUM_LINE && text.charCodeAt(MAXIMUM_LINE) !== DOT) {
      return text.slice(0, MAXIMUM_LINE) + SOFT_BREAK + text.slice(MAXIMUM_LINE) + SOFT_BREAK
    }
  }
  const lines = text.toWellFormed().split(LINE_END)
  const last = lines.pop() ?? ''
  let quoted = ''
  for (const line of lines) quoted += `${quoteLine(line, true)}\r\n`
  return narrow(last === '' ? quoted : quoted + quoteLine(last, false) + SOFT_BREAK)
}

/**
 * Quotes one line, with soft breaks where it is too long. A space right before a hard line end could get lost, so it is
 * encoded.
 */
function quoteLine(line: string, endsHard: boolean): string {
  if (endsHard && line.length <= LONGEST_LINE && PLAIN.test(line) && !line.endsWith(' ')) return line
  const end = endsHard && line.endsWith(' ') ? line.length - 1 : line.length
  const writer = new LineWriter()
  let from = 0
  CODED.lastIndex = 0
  for (let found = CODED.exec(line); found !== null; found = CODED.exec(line)) {
    writer.plain(line, from, found.index)
    from = CODED.lastIndex
    for (const character of found[0]) writer.coded(character)
  }
  writer.plain(line, from, end)
  if (end < line.length) writer.coded(' ')
  return writer.quoted
}

class LineWriter {
  quoted = ''
  #width = 0

  plain(line: string, start: number, end: number): void {
    for (let from = start; from < end;) {
      if (this.#width === MAXIMUM_LINE) this.#break()
      if (this.#width === 0 && line.charCodeAt(from) === DOT) {
        this.coded('.')
        from += 1
      }
      const to = Math.min(end, from + MAXIMUM_LINE - this.#width)
      this.quoted += line.slice(from, to)
      this.#width += to - from
      from = to
    }
  }

  coded(character: string): void {
    const codes = codesOf(character)
    if (this.#width + codes.length > MAXIMUM_LINE) this.#break()
    this.quoted += codes
    this.#width += codes.length
  }

  #break(): void {
    this.quoted += SOFT_BREAK
    this.#width = 0
  }
}

/**
 * Returns the UTF-8 bytes of a character as `=XX` codes. `encodeURIComponent` leaves some ASCII unchanged, so ASCII is
 * encoded by its code point.
 */
function codesOf(character: string): string {
  if (character === '=') return '=3D'
  const point = character.codePointAt(0) ?? 0
  if (point >= 128) return encodeURIComponent(character).replaceAll('%', '=')
  return `=${point.toString(16).toUpperCase().padStart(2, '0')}`
}

/** Returns the compiled email with its fixed text in quoted-printable; its values are quoted when it is filled. */
export function quoteEmail(compiled: CompiledEmail): CompiledEmail {
  const { html, text, targets } = compiled
  return Object.freeze({
    ...compiled,
    html: quoteTemplate(html, targets),
    text: quoteTemplate(text, targets),
  })
}

function quoteTemplate(template: Template, targets: readonly LinkTarget[]): Template {
  const statics: string[] = []
  const slots: Slot[] = []
  let fixed = template.statics[0] ?? ''
  for (const [index, slot] of template.slots.entries()) {
    const next = template.statics[index + 1] ?? ''
    if ('target' in slot && isAlwaysThere(targets[slot.target])) {
      statics.push(quote(fixed + slot.before))
      slots.push(Object.freeze({ ...slot, before: '', after: '' }))
      fixed = slot.after + next
    } else {
      statics.push(quote(fixed))
      slots.push(quoteSlot(slot, targets))
      fixed = next
    }
  }
  return Object.freeze({ statics: Object.freeze([...statics, quote(fixed)]), slots: Object.freeze(slots) })
}

/**
 * Returns whether a link is never left out, because no value can make its URL unsafe. The text around it is then fixed.
 */
function isAlwaysThere(target: LinkTarget | undefined): boolean {
  return target !== undefined && target.url.fixed !== null
}

function quoteSlot(slot: Slot, targets: readonly LinkTarget[]): Slot {
  if ('body' in slot) return Object.freeze({ ...slot, body: quoteTemplate(slot.body, targets) })
  if ('before' in slot) {
    return Object.freeze({ ...slot, before: quote(slot.before), after: quote(slot.after) })
  }
  return slot
}
