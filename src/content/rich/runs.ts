import type { EmailParts } from '../email-parts.ts'
import { isBlankText } from '../seen.ts'
import { CARD_WIDTH, CODE_FONT, PHONE_WIDTH } from '../theme.ts'
import { isShown, writeImageTag } from './images.ts'
import { openLink } from './links.ts'
import { inkClass, inkOf, type Surface, surfaceOf } from './surface.ts'

/** The elements for text marks, in nesting order, outermost first. */
const TEXT_TAGS = ['strong', 'em', 'u', 's', 'sub', 'sup'] as const
export type TextTag = (typeof TEXT_TAGS)[number]

/** The look of a piece of text. Colours are `#rrggbb`, sizes whole pixels; null means inherited. */
export type Look = {
  readonly tags: ReadonlySet<TextTag>
  readonly isCode: boolean
  readonly color: string | null
  readonly background: string | null
  readonly size: number | null
}

/** Text without any mark. */
export const PLAIN: Look = { tags: new Set(), isCode: false, color: null, background: null, size: null }

/** An image in running text. Its texts contain placeholders, like all texts here; a null size is that of the file. */
export type InlineImage = {
  readonly src: string
  readonly alt: string
  readonly title: string
  readonly width: number | null
  readonly height: number | null
}

/** A piece of inline content. Neighbours with the same `link` form one link. */
export type Run =
  | { readonly type: 'text'; readonly text: string; readonly look: Look; readonly link: string | null }
  | { readonly type: 'break'; readonly link: string | null }
  | { readonly type: 'image'; readonly image: InlineImage; readonly link: string | null }

/** The surface that runs stand on, and the width of their column in pixels. */
type RunsPlace = { readonly surface: Surface; readonly room: number }

/** Writes the text of a run with its marks; the text part gets only the text. */
function writeText(parts: EmailParts, text: string, look: Look, surface: Surface): void {
  const { html } = parts
  const tags = TEXT_TAGS.filter((tag) => look.tags.has(tag))
  const style = [
    look.color !== null && `color:${look.color}`,
    look.background !== null && `background-color:${look.background}`,
    look.size !== null && `font-size:${look.size}px`,
  ].filter((rule) => rule !== false)
  // The text gets a colour that suits the background, or dark mode would show light text on a light background.
  if (look.background !== null && look.color === null) {
    style.push(`color:${inkOf(surfaceOf(look.background, surface)).text}`)
  }
  for (const tag of tags) html.fixed(`<${tag}>`)
  if (style.length > 0) {
    const adapts = look.color !== null && look.background === null ? inkClass(surface, look.color) : ''
    html.fixed(`<span${adapts} style="${style.join(';')}">`)
  }
  if (look.isCode) html.fixed(openCode(surface))
  parts.both(text)
  if (look.isCode) html.fixed('</code>')
  if (style.length > 0) html.fixed('</span>')
  for (const tag of tags.toReversed()) html.fixed(`</${tag}>`)
}

function openCode(surface: Surface): string {
  const { code, codeBack } = inkOf(surface)
  const adapts = surface.isCard ? ' class="pl-code"' : ''
  return `<code${adapts} style="padding:2px 4px;border-radius:4px;background-color:${codeBack};color:${code};font-family:${CODE_FONT};font-size:14px">`
}

function writeRun(parts: EmailParts, run: Run, { surface, room }: RunsPlace): void {
  if (run.type === 'text') return writeText(parts, run.text, run.look, surface)
  if (run.type === 'break') {
    parts.html.fixed('<br>\n')
    return parts.text.lineBreak()
  }
  writeImageTag(parts, run.image, sizeOf(run.image, room))
  parts.alternative(run.image.alt)
}

/**
 * Returns the size attributes of an inline image. An image that fits on a phone keeps its size; a larger one shrinks in
 * proportion.
 */
function sizeOf({ width, height }: InlineImage, room: number): string {
  if (width !== null && height !== null && width <= Math.min(room, PHONE_WIDTH)) {
    return `width="${width}" height="${height}" ${imageStyle(`width:${width}px;height:${height}px`)}`
  }
  if (width === null) return imageStyle('max-width:100%;height:auto')
  // Outlook reads only the attribute. In other programs a column may be wider on a phone, where columns are stacked.
  return `width="${Math.min(width, room)}" ${imageStyle(`width:100%;max-width:${Math.min(width, CARD_WIDTH)}px;height:auto`)}`
}

function imageStyle(size: string): string {
  return `style="display:inline;${size};border:0;vertical-align:middle"`
}

/** Groups neighbouring runs that have the same link. */
function groupLinks(runs: readonly Run[]): { link: string | null; runs: Run[] }[] {
  const groups: { link: string | null; runs: Run[] }[] = []
  for (const run of runs) {
    const last = groups.at(-1)
    if (last?.link === run.link) last.runs.push(run)
    else groups.push({ link: run.link, runs: [run] })
  }
  return groups
}

/** Writes inline content to both parts. When a link's address is not safe, only its text is written. */
export function writeRuns(parts: EmailParts, runs: readonly Run[], place: RunsPlace): void {
  const groups = groupLinks(runs)
  for (const group of groups) {
    const target = group.link === null || isUnseen(group.runs) ? null : parts.links.add(group.link)
    const mark = parts.text.mark
    if (target !== null) openLink(parts, target, place.surface, colorOfGroup(group.runs))
    for (const run of group.runs) writeRun(parts, run, place)
    if (target === null) continue
    parts.html.fixed('</a>')
    parts.addressAfter(target, mark, groups.length === 1)
  }
}

/** Returns the colour of a link's first text, so that the underline has the same colour. */
function colorOfGroup(runs: readonly Run[]): string | null {
  const first = runs[0]
  return first?.type === 'text' ? first.look.color : null
}

/** Converts text to runs; its line breaks become breaks, because programs that write documents mean them so. */
export function textRuns(text: string, look: Look, link: string | null): Run[] {
  if (!text.includes('\n')) return [{ type: 'text', text, look, link }]
  return text.split('\n').flatMap((line, index): Run[] => {
    const run: Run[] = line === '' ? [] : [{ type: 'text', text: line, look, link }]
    return index === 0 ? run : [{ type: 'break', link }, ...run]
  })
}

/** Returns whether the runs show nothing visible. */
export function isBlank(runs: readonly Run[]): boolean {
  return runs.every((run) => run.type === 'text' && isBlankText(run.text))
}

/** Returns whether a link of these runs would have no visible content. */
function isUnseen(runs: readonly Run[]): boolean {
  return runs.every((run) => {
    if (run.type === 'image') return !isShown(run.image)
    return run.type === 'break' || isBlankText(run.text)
  })
}
