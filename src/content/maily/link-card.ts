import type { EmailParts } from '../email-parts.ts'
import { linkMark } from '../references.ts'
import { innerWidth, writeBox } from '../rich/boxes.ts'
import type { Place } from '../rich/entries.ts'
import { isShown, writeImageTag } from '../rich/images.ts'
import { adaptive, inkOf, type Surface } from '../rich/surface.ts'
import { isBlankText } from '../seen.ts'
import { DEFAULTS } from './defaults.ts'
import { warnMissing } from './media.ts'
import { type Node, readText, type Spot, type Walk } from './node.ts'

/** Writes content inside the card's link; without a target, the content alone. */
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

/** Reads the texts of a card with their placeholders; missing ones are ''. */
function readCard(walk: Walk, node: Node) {
  const read = (name: string): string => readText(walk, node, name)
  const badge = read('badgeText')
  return {
    title: read('title'),
    description: read('description'),
    linkTitle: read('linkTitle'),
    label: badge || read('subTitle'),
    isBadge: badge !== '',
    image: read('image'),
    address: readText(walk, node, 'link', 'isUrlVariable'),
  }
}

type Card = ReturnType<typeof readCard>

/** Returns whether the card has something besides its description that can be followed as a link. */
function hasWay({ image, title, linkTitle }: Card): boolean {
  return isShown({ src: image, alt: title }) || !isBlankText(linkTitle)
}

/**
 * Writes a link card, the preview of a page: image, title with a badge, description and link text, all linked to the
 * page.
 */
export function writeLinkCard(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  const { parts } = walk
  const card = readCard(walk, node)
  if (card.address === '')
    warnMissing(walk, `The link card "${parts.table.describe(card.title)}" has no address; set link.`)
  const isSeen = hasWay(card) || !isBlankText(card.description)
  const target = card.address === '' ? null : parts.links.add(card.address, isSeen)
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
    adapts: spot.surface.isCard && 'pl-line',
  } as const
  writeBox(parts, box, () => {
    if (card.image !== '') writePicture(parts, card, target, innerWidth(spot.room, box))
    parts.html.fixed(`<div style="padding:${padding}px">`)
    if (card.title !== '' || card.label !== '') writeTitle(parts, card, target, spot.surface)
    writeDescription(parts, card, target, spot.surface)
    parts.html.fixed('</div>')
  })
  parts.text.endBlock(1)
}

function writePicture(parts: EmailParts, { image, title }: Card, target: number | null, room: number): void {
  const { radius } = DEFAULTS.linkCard
  const style = `display:block;width:100%;max-width:100%;height:auto;border:0;border-radius:${radius}px ${radius}px 0 0`
  linked(parts, target, 'display:block;text-decoration:none', () =>
    writeImageTag(parts, { src: image, alt: title, title: '' }, `width="${room}" style="${style}"`),
  )
}

function writeTitle(
  parts: EmailParts,
  { title, label, isBadge }: Card,
  target: number | null,
  surface: Surface,
): void {
  parts.html.fixed('<p style="margin:0 0 8px;font-size:18px;font-weight:600;line-height:1.4">')
  linked(parts, target, 'color:inherit;text-decoration:none', () => parts.both(title))
  if (label !== '') writeLabel(parts, label, isBadge, surface)
  parts.html.fixed('</p>')
  parts.text.endBlock(0)
}

function writeDescription(parts: EmailParts, card: Card, target: number | null, surface: Surface): void {
  const { description, linkTitle } = card
  const ink = inkOf(surface)
  parts.html.fixed(`<p${adaptive(surface, 'pl-muted')} style="margin:0;color:${ink.muted}">`)
  const way = hasWay(card) ? null : target
  linked(parts, way, 'color:inherit;text-decoration:underline', () => parts.both(description))
  parts.text.endBlock(0)
  if (linkTitle !== '') {
    parts.html.fixed(' ')
    const style = `color:${ink.link};font-weight:600;text-decoration:underline`
    linked(parts, target, style, () => parts.both(linkTitle), adaptive(surface, 'pl-link'))
  }
  if (target !== null) parts.text.text(linkMark(target, linkTitle === '' ? '' : ':'))
  parts.html.fixed('</p>')
}

function writeLabel(parts: EmailParts, label: string, isBadge: boolean, surface: Surface): void {
  parts.text.text(' (')
  if (isBadge) {
    parts.html.fixed(
      ' <span style="padding:4px 8px;border-radius:8px;background-color:#fef08a;color:#111827;font-size:12px">',
    )
  } else {
    const adapts = adaptive(surface, 'pl-muted')
    parts.html.fixed(` <span${adapts} style="color:${inkOf(surface).muted};font-size:12px;font-weight:400">`)
  }
  parts.both(label)
  parts.text.text(')')
  parts.html.fixed('</span>')
}
