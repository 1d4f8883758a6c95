import type { EmailParts } from '../email-parts.ts'
import { adaptive, inkClass, inkOf, type Surface } from './surface.ts'

/** Opens a link in the HTML; `color` is the author's colour, or null for the default. */
export function openLink(parts: EmailParts, target: number, surface: Surface, color: string | null): void {
  const adapts = color === null ? adaptive(surface, 'pl-link') : inkClass(surface, color)
  parts.html
    .fixed('<a')
    .slot({ kind: 'link', target, before: ' href="', after: '"' })
    .fixed(`${adapts} style="color:${color ?? inkOf(surface).link};text-decoration:underline">`)
}

/** Writes content as a link, or alone when the address is empty or not safe. */
export function writeLinked(parts: EmailParts, address: string, style: string, write: () => void): void {
  const target = address === '' ? null : parts.links.add(address)
  const mark = parts.text.mark
  if (target !== null) {
    parts.html
      .fixed('<a')
      .slot({ kind: 'link', target, before: ' href="', after: '"' })
      .fixed(` style="${style}">`)
  }
  write()
  if (target === null) return
  parts.html.fixed('</a>')
  parts.addressAfter(target, mark, true)
}
