import type { EmailParts } from '../email-parts.ts'
import { UNSUBSCRIBE } from '../frame.ts'
import { linkMark, referenceMark } from '../references.ts'
import { openLink } from '../rich/links.ts'
import type { Surface } from '../rich/surface.ts'

/** Writes an unsubscribe link, on a new line if it follows other text. */
export function writeUnsubscribe(parts: EmailParts, surface: Surface, isAfterText: boolean): void {
  const target = parts.links.add(referenceMark(parts.table.add({ name: 'unsubscribeUrl', fallback: '' })))
  if (target === null) return
  if (isAfterText) {
    parts.html.fixed('<br>')
    parts.text.lineBreak()
  }
  openLink(parts, target, surface, null)
  parts.html.fixed(`${UNSUBSCRIBE}</a>`)
  parts.text.text(`Unsubscribe: ${linkMark(target)}`)
}
