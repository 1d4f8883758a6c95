import {
  type Alignment,
  ALIGNMENTS,
  choiceOf,
  colorOf,
  memberOf,
  numberOf,
  readNumber,
  textOf,
} from '../rich/attributes.ts'
import { writeButton } from '../rich/buttons.ts'
import { contrast } from '../rich/color.ts'
import type { Place } from '../rich/entries.ts'
import { writeImageBlock } from '../rich/images.ts'
import { BUTTON_RADII, DEFAULTS, LIMITS, LOGO_SIZES } from './defaults.ts'
import { readPlain } from './inline.ts'
import { type Node, readText, type Spot, type Walk } from './node.ts'

/** Reads the alignment, whose attribute has different names in the two versions of the editor. */
function alignmentOf({ attributes }: Node, fallback: Alignment): Alignment {
  return choiceOf(attributes, 'alignment', ALIGNMENTS, choiceOf(attributes, 'align', ALIGNMENTS, fallback))
}

/**
 * Reads a size in pixels; a percentage refers to `room`, the width of the column. Null leaves the size to the image
 * file.
 */
function sizeOf(value: unknown, room: number): number | null {
  const size = readNumber(value, LIMITS.image, 1)
  if (size === null || typeof value !== 'string' || !value.trim().endsWith('%')) return size
  return Math.max(1, Math.round((Math.min(size, 100) / 100) * room))
}

function radiusOf({ attributes }: Node): number {
  const single = numberOf(attributes, 'borderRadius', 0, LIMITS.radius)
  return numberOf(attributes, 'borderTopLeftRadius', single, LIMITS.radius)
}

/** Writes an `image`, never wider than its column. Without an address, writes nothing and warns. */
export function writeImage(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  const { attributes } = node
  const image = {
    src: readText(walk, node, 'src', 'isSrcVariable'),
    alt: readText(walk, node, 'alt'),
    title: readText(walk, node, 'title'),
    width: sizeOf(memberOf(attributes, 'width'), spot.room),
    height: sizeOf(memberOf(attributes, 'height'), spot.room),
    radius: radiusOf(node),
    alignment: alignmentOf(node, spot.version === 2 ? 'left' : 'center'),
    link: readText(walk, node, 'externalLink', 'isExternalLinkVariable'),
    gap: isLast ? 0 : 24,
  }
  if (image.src === '') return warnMissing(walk, 'An image has no address; set src.')
  writeImageBlock(walk.parts, image, spot.room)
}

/**
 * Writes a `logo`: a square image of a named size or a number of pixels. Without an address, writes nothing and warns.
 */
export function writeLogo(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  const { attributes } = node
  const written = memberOf(attributes, 'size')
  const size = LOGO_SIZES.get(written) ?? readNumber(written, LIMITS.image, 1) ?? 40
  const image = {
    src: readText(walk, node, 'src', 'isSrcVariable'),
    alt: readText(walk, node, 'alt'),
    title: readText(walk, node, 'title'),
    width: size,
    height: size,
    radius: 0,
    alignment: alignmentOf(node, 'left'),
    link: '',
    gap: isLast ? 0 : 24,
  }
  if (image.src === '') return warnMissing(walk, 'A logo has no address; set src.')
  writeImageBlock(walk.parts, image, spot.room)
}

/** Reads a button's text: the editor's first version keeps it in an attribute, the second in the content. */
function buttonText(walk: Walk, node: Node, spot: Spot): string {
  if (node.content.length > 0) return readPlain(walk, node.content, spot.depth + 1)
  if (memberOf(node.attributes, 'text') === undefined) return 'Button'
  return readText(walk, node, 'text', 'isTextVariable')
}

/** Writes a `button`. One without an address is written too, with a warning. */
export function writeButtonNode(walk: Walk, node: Node, spot: Spot, { isLast }: Place): void {
  const { attributes } = node
  const defaults = DEFAULTS.button
  const text = buttonText(walk, node, spot)
  const address = readText(walk, node, 'url', 'isUrlVariable')
  if (address === '')
    warnMissing(walk, `The button "${walk.parts.table.describe(text)}" has no address; set url.`)
  const chosen = colorOf(attributes, 'buttonColor', colorOf(attributes, 'backgroundColor', null))
  const color = chosen ?? defaults.color
  const isOutline = choiceOf(attributes, 'variant', ['filled', 'outline'], 'filled') === 'outline'
  const ink = colorOf(attributes, 'textColor', colorOf(attributes, 'color', null))
  const written = memberOf(attributes, 'borderRadius')
  const round = BUTTON_RADII.get(written) ?? readNumber(written, LIMITS.radius) ?? 6
  const side = (name: string, fallback: number): number =>
    numberOf(attributes, name, fallback, LIMITS.buttonPadding) || fallback
  const vertical = (side('paddingTop', defaults.vertical) + side('paddingBottom', defaults.vertical)) / 2
  writeButton(
    walk.parts,
    {
      text,
      address,
      back: isOutline ? null : color,
      ink: ink ?? (isOutline ? color : readableOn(color)),
      border: colorOf(attributes, 'borderColor', color),
      borderWidth: numberOf(attributes, 'borderTopWidth', defaults.border, LIMITS.border),
      radius: numberOf(attributes, 'borderTopLeftRadius', round, LIMITS.radius),
      padding: {
        vertical: Math.round(vertical),
        left: side('paddingLeft', defaults.horizontal),
        right: side('paddingRight', defaults.horizontal),
      },
      alignment: alignmentOf(node, spot.version === 2 ? 'center' : 'left'),
      isWide: textOf(attributes, 'kind') === 'full-width',
      isStandard: chosen === null && ink === null,
      gap: isLast ? 0 : 20,
    },
    spot.room,
    spot.surface,
  )
}

/** Returns the text colour for a button: white as in the editor, or black if the button is too light for white. */
function readableOn(color: string): string {
  return contrast(color, DEFAULTS.button.ink) >= 2 ? DEFAULTS.button.ink : '#000000'
}

/** Warns that an image, logo, button or link card has no address; `message` names it and the attribute to set. */
export function warnMissing({ parts }: Walk, message: string): void {
  parts.table.warn('MISSING_ADDRESS', message)
}
