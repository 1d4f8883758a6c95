import type { EmailParts } from '../email-parts.ts'
import { isBlankText } from '../seen.ts'
import { compileLoaded } from '../url.ts'
import type { Alignment } from './attributes.ts'
import { writeLinked } from './links.ts'

/** An image in a block of its own. Sizes are in pixels; null means the size of the file. */
export type ImageBlock = {
  readonly src: string
  readonly alt: string
  readonly title: string
  readonly width: number | null
  readonly height: number | null
  readonly radius: number
  readonly alignment: Alignment
  readonly link: string
  /** The space below it. */
  readonly gap: number
}

/** Returns whether readers see something of an image: itself, or its alternative text. */
export function isShown({ src, alt }: { readonly src: string; readonly alt: string }): boolean {
  return !isBlankText(alt) || compileLoaded(src) !== null
}

/**
 * Writes an `<img>`, or only its alternative text when its address is not safe. `attributes` must be fixed, safe HTML.
 */
export function writeImageTag(
  parts: EmailParts,
  { src, alt, title }: { src: string; alt: string; title: string },
  attributes: string,
): void {
  const address = parts.links.address(src)
  if (address === null) return parts.escaped(alt)
  parts.html
    .fixed('<img')
    .slot({ kind: 'address', url: address, before: ' src="', after: '"' })
    .fixed(' alt="')
  parts.escaped(alt)
  parts.html.fixed('"')
  if (title !== '') {
    parts.html.fixed(' title="')
    parts.escaped(title)
    parts.html.fixed('"')
  }
  parts.html.fixed(` ${attributes}>`)
}

/** Limits an image to the width of its column; the height shrinks in proportion. */
function fit({ width, height }: ImageBlock, room: number): { width: number | null; height: number | null } {
  if (width === null || width <= room) return { width, height }
  return { width: room, height: height === null ? null : Math.round((height * room) / width) }
}

/** Writes an image on a line of its own, in a column that is `room` pixels wide. */
export function writeImageBlock(parts: EmailParts, image: ImageBlock, room: number): void {
  const { width, height } = fit(image, room)
  const margin = image.alignment === 'center' ? '0 auto' : image.alignment === 'right' ? '0 0 0 auto' : '0'
  const style = [
    'display:block',
    width === null ? 'width:auto' : `width:100%;max-width:${width >= room ? '100%' : `${width}px`}`,
    width === null && 'max-width:100%',
    width === null && height !== null ? `height:${height}px` : 'height:auto',
    `margin:${margin}`,
    image.radius > 0 && `border-radius:${image.radius}px`,
    'border:0;outline:none;text-decoration:none',
  ].filter((rule) => rule !== false)
  // Outlook reads only the attributes, so each known size is also one.
  const size = `${width === null ? '' : `width="${width}" `}${height === null ? '' : `height="${height}" `}`
  parts.html.fixed(
    `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td align="${image.alignment}" style="padding:0 0 ${image.gap}px">`,
  )
  writeLinked(parts, isShown(image) ? image.link : '', 'display:block;text-decoration:none', () => {
    writeImageTag(parts, image, `${size}style="${style.join(';')}"`)
    parts.alternative(image.alt)
  })
  parts.html.fixed('</td></tr></table>\n')
  parts.text.endBlock(1)
}
