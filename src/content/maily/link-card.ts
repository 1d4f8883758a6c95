import type { EmailParts } from '../email-parts.ts'
import { linkMark } from '../references.ts'
import { innerWidth, writeBox } from '../rich/boxes.ts'
import { writeImageTag } from '../rich/images.ts'
import { adaptive, inkOf } from '../rich/surface.ts'
import { DEFAULTS } from './defaults.ts'
import { warnMissing } from './media.ts'
import { type Node, type Place, readText, type Spot, type Walk } from './node.ts'

/** Writes something inside the card's link. */
function linked(
  parts: EmailParts,
  target: number | null,
  style: string,
  write: () => void,
  adapts = '',
): void {
  if (target === null) return write()
  parts.html
    .fixed('<a')
    .slot({ kind: 'link', target, before: ' href="', after: '"' })
    .fixed(`${adapts} style="${style}">`)
  write()
  parts.html.fixed('</a>')
}

/** A preview of a page: image, title with a badge, description and link, which all lead to it. */
export function writeLinkCard(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  const { parts } = walk
  const { html, text } = parts
  const read = (name: string): string => readText(walk, node, name)
  const title = read('title')
  const description = read('description')
  const linkTitle = read('linkTitle')
  const badge = read('badgeText')
  const label = badge || read('subTitle')
  const image = read('image')
  const address = readText(walk, node, 'link', 'isUrlVariable')
  if (address === '')
    warnMissing(walk, `The link card "${parts.table.describe(title)}" has no address; set link.`)
  const target = address === '' ? null : parts.links.add(address)
  const { padding, radius, border } = DEFAULTS.linkCard
  const box = {
    background: null,
    margin: [0, 0, isLast ? 0 : 20, 0],
    padding: [0, 0, 0, 0],
    border: [1, 1, 1, 1],
    borderColor: border,
    borderStyle: 'solid',
    radius: [radius, radius, radius, radius],
    alignment: 'left',
    ink: null,
    adapts: adaptive(spot.surface, 'pl-line'),
  } as const
  const ink = inkOf(spot.surface)
  writeBox(parts, box, () => {
    if (image !== '') {
      const room = innerWidth(spot.room, box)
      linked(parts, target, 'display:block;text-decoration:none', () =>
        writeImageTag(
          parts,
          { src: image, alt: title, title: '' },
          `width="${room}" style="display:block;width:100%;max-width:100%;height:auto;border:0;border-radius:${radius}px ${radius}px 0 0"`,
        ),
      )
    }
    html.fixed(`<div style="padding:${padding}px">`)
    if (title !== '' || label !== '') {
      html.fixed('<p style="margin:0 0 8px;font-size:18px;font-weight:600;line-height:1.4">')
      linked(parts, target, 'color:inherit;text-decoration:none', () => parts.both(title))
      if (label !== '') writeLabel(parts, label, badge !== '', adaptive(spot.surface, 'pl-muted'), ink.muted)
      html.fixed('</p>')
      text.endBlock(0)
    }
    html.fixed(`<p${adaptive(spot.surface, 'pl-muted')} style="margin:0;color:${ink.muted}">`)
    parts.both(description)
    text.endBlock(0)
    if (linkTitle !== '') {
      html.fixed(' ')
      const style = `color:${ink.link};font-weight:600;text-decoration:underline`
      linked(parts, target, style, () => parts.both(linkTitle), adaptive(spot.surface, 'pl-link'))
    }
    if (target !== null) text.text(linkMark(target, linkTitle === '' ? '' : ':'))
    html.fixed('</p></div>')
  })
  text.endBlock(1)
}

function writeLabel(parts: EmailParts, label: string, isBadge: boolean, adapts: string, muted: string): void {
  parts.text.text(' (')
  if (isBadge) {
    parts.html.fixed(
      ' <span style="padding:4px 8px;border-radius:8px;background-color:#fef08a;color:#111827;font-size:12px">',
    )
  } else parts.html.fixed(` <span${adapts} style="color:${muted};font-size:12px;font-weight:400">`)
  parts.both(label)
  parts.text.text(')')
  parts.html.fixed('</span>')
}
