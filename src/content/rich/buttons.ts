import type { EmailParts } from '../email-parts.ts'
import { MARK } from '../references.ts'
import { FONT } from '../theme.ts'
import type { Alignment } from './attributes.ts'
import { sides } from './boxes.ts'
import { inkClass, type Surface } from './surface.ts'

/** A button with all defaults applied; `back` is null for an outlined button. Sizes are in pixels. */
export type Button = {
  readonly text: string
  readonly address: string
  readonly back: string | null
  readonly ink: string
  readonly border: string
  readonly borderWidth: number
  readonly radius: number
  readonly padding: { readonly vertical: number; readonly left: number; readonly right: number }
  readonly alignment: Alignment
  readonly isWide: boolean
  /** The author chose no colour, so dark mode may invert the button. */
  readonly isStandard: boolean
  readonly gap: number
}

const LINE = 20
const FONT_SIZE = 16
/** The estimated width of a letter in pixels: Outlook's shapes have a fixed size, so the text must be measured. */
const LETTER = 9
const VALUE_LETTERS = 10
/** Letters that are as wide as high; they count as two. */
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Extended_Pictographic}\uFF01-\uFF60]/gu

function sizeOf(button: Button, room: number): { width: number; height: number } {
  const { text, padding, borderWidth, isWide } = button
  const letters = text.replace(MARK, 'x'.repeat(VALUE_LETTERS)).replace(WIDE, 'xx').length
  const long = letters * LETTER
  const width = isWide ? room : Math.min(room, Math.max(96, long + padding.left + padding.right))
  const lines = Math.max(1, Math.ceil(long / width))
  return { width, height: lines * LINE + 2 * (padding.vertical + borderWidth) }
}

/** Writes the button for Outlook for Windows: a shape, because links there have neither padding nor round corners. */
function writeShape(parts: EmailParts, button: Button, target: number, room: number): void {
  const { width, height } = sizeOf(button, room)
  const arc = Math.min(50, Math.round((button.radius / height) * 100))
  const stroke =
    button.borderWidth === 0
      ? 'stroked="f"'
      : `strokecolor="${button.border}" strokeweight="${button.borderWidth}px"`
  parts.html
    .fixed(
      '<!--[if mso]><v:roundrect xmlns:v="urn:schemas-microsoft-com:vml" xmlns:w="urn:schemas-microsoft-com:office:word"',
    )
    .slot({ kind: 'link', target, before: ' href="', after: '"' })
    .fixed(
      ` style="height:${height}px;width:${width}px;v-text-anchor:middle" arcsize="${arc}%" ${stroke} ${button.back === null ? 'filled="f"' : `fillcolor="${button.back}"`}><w:anchorlock/><center style="color:${button.ink};font-family:Arial,sans-serif;font-size:${FONT_SIZE}px;font-weight:600">`,
    )
  parts.escaped(button.text)
  parts.html.fixed('</center></v:roundrect><![endif]--><!--[if !mso]><!-->')
}

function classOf({ back, ink, isStandard }: Button, surface: Surface): string {
  if (back === null) return inkClass(surface, ink)
  return isStandard && surface.isCard ? ' class="pl-button"' : ''
}

/** Writes a button as wide as its text, or as its column of `room` pixels. Without an address it is not a link. */
export function writeButton(parts: EmailParts, button: Button, room: number, surface: Surface): void {
  const { padding, borderWidth, border, alignment, gap, isWide } = button
  const target = button.address === '' ? null : parts.links.add(button.address)
  const mark = parts.text.mark
  const tag = target === null ? 'span' : 'a'
  const style = [
    `display:${isWide ? 'block' : 'inline-block'}`,
    `padding:${sides([padding.vertical, padding.right, padding.vertical, padding.left])}`,
    `border:${borderWidth}px solid ${border}`,
    `border-radius:${button.radius}px`,
    button.back !== null && `background-color:${button.back}`,
    `color:${button.ink}`,
    `font-family:${FONT};font-size:${FONT_SIZE}px;font-weight:600;line-height:${LINE}px;text-align:center;text-decoration:none`,
  ].filter((rule) => rule !== false)
  parts.html.fixed(
    `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td align="${alignment}" style="padding:0 0 ${gap}px">`,
  )
  if (target !== null) writeShape(parts, button, target, room)
  parts.html.fixed(`<${tag}`)
  if (target !== null) parts.html.slot({ kind: 'link', target, before: ' href="', after: '"' })
  parts.html.fixed(`${classOf(button, surface)} style="${style.join(';')}">`)
  parts.both(button.text)
  parts.html.fixed(`</${tag}>${target === null ? '' : '<!--<![endif]-->'}</td></tr></table>\n`)
  if (target !== null) parts.addressAfter(target, mark, true)
  parts.text.endBlock(1)
}
