import type { CompiledEmail } from '../content/compile.ts'
import type { LinkTarget } from '../content/links.ts'
import { narrow, type Slot, type Template } from '../content/template.ts'

/** What RFC 2045 allows a line, and what is left of that before the `=` of a soft break. */
const LONGEST_LINE = 76
const MAXIMUM_LINE = LONGEST_LINE - 1
const SOFT_BREAK = '=\r\n'
const LINE_END = /\r\n?|\n/
/** What may be a line as it is: printable ASCII without `=`, and no dot in front, which SMTP would double. */
const PLAIN = /^[ !-\-/-<>-~][ -<>-~]*$/
/** What is written by codes: runs of other characters, and equals signs. */
const CODED = /=|[^ -~]+/g
const DOT = 46

/**
 * Text in quoted-printable, from the beginning of a line to the beginning of a line: pieces that were quoted apart may
 * be joined in any order, and read as if their texts had been joined. Line ends become CRLF; no line begins with a dot.
 */
export function quote(text: string): string {
  if (PLAIN.test(text)) {
    if (text.length <= MAXIMUM_LINE) return text + SOFT_BREAK
    // An address of ours, mostly: its token is longer than a line has left.
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

/** One line, broken softly where it is too long. A space right before a hard end could get lost, so it is coded. */
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

/** The UTF-8 bytes of a character as codes. `encodeURIComponent` leaves some ASCII as it is, so those go by number. */
function codesOf(character: string): string {
  if (character === '=') return '=3D'
  const point = character.codePointAt(0) ?? 0
  if (point >= 128) return encodeURIComponent(character).replaceAll('%', '=')
  return `=${point.toString(16).toUpperCase().padStart(2, '0')}`
}

/** A compiled email whose parts are in quoted-printable for good; its values are quoted when it is filled. */
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

/** A link whose address no value can make unsafe is never left out, so what surrounds it is fixed text. */
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
