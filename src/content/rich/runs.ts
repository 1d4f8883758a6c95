import type { EmailParts } from '../email-parts.ts'
import { isBlankText } from '../seen.ts'
import { CARD_WIDTH, CODE_FONT, PHONE_WIDTH } from '../theme.ts'
import { writeImageTag } from './images.ts'
import { openLink } from './links.ts'
import { inkClass, inkOf, type Surface, surfaceOf } from './surface.ts'

/** Elements that text can stand in, outermost first. */
const TEXT_TAGS = ['strong', 'em', 'u', 's', 'sub', 'sup'] as const
export type TextTag = (typeof TEXT_TAGS)[number]

/** How a piece of text looks. Colours are `#rrggbb`, sizes whole pixels. */
export type Look = {
  readonly tags: ReadonlySet<TextTag>
  readonly isCode: boolean
  readonly color: string | null
  readonly background: string | null
  readonly size: number | null
}

/** Text without any mark. */
export const PLAIN: Look = { tags: new Set(), isCode: false, color: null, background: null, size: null }

/** An image in running text. `src` and `alt` hold placeholders, as all texts here do; null is what the file has. */
export type InlineImage = {
  readonly src: string
  readonly alt: string
  readonly title: string
  readonly width: number | null
  readonly height: number | null
}

/** A piece of inline content. Neighbours with the same `link` are one link. */
export type Run =
  | { readonly type: 'text'; readonly text: string; readonly look: Look; readonly link: string | null }
  | { readonly type: 'break'; readonly link: string | null }
  | { readonly type: 'image'; readonly image: InlineImage; readonly link: string | null }

/** Where runs stand: on what, and in a column of how many pixels. */
type RunsPlace = { readonly surface: Surface; readonly room: number }

/** Writes the text of a run with its marks; the text part has only the text. */
function writeText(parts: EmailParts, text: string, look: Look, surface: Surface): void {
  const { html } = parts
  const tags = TEXT_TAGS.filter((tag) => look.tags.has(tag))
  const style = [
    look.color !== null && `color:${look.color}`,
    look.background !== null && `background-color:${look.background}`,
    look.size !== null && `font-size:${look.size}px`,
  ].filter((rule) => rule !== false)
  // A background brings its own ink, or dark mode would write light on light.
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
  const { alt } = run.image
  writeImageTag(parts, run.image, sizeOf(run.image, room))
  if (alt.trim() !== '') parts.text.text(`[${alt}]`)
}

/** An icon is as large as it says; what its column or a phone has no room for shrinks, and its height with it. */
function sizeOf({ width, height }: InlineImage, room: number): string {
  if (width !== null && height !== null && width <= Math.min(room, PHONE_WIDTH)) {
    return `width="${width}" height="${height}" ${imageStyle(`width:${width}px;height:${height}px`)}`
  }
  if (width === null) return imageStyle('max-width:100%;height:auto')
  // Outlook reads only the attribute; elsewhere columns may be wider on a phone, where they stand under one another.
  return `width="${Math.min(width, room)}" ${imageStyle(`width:100%;max-width:${Math.min(width, CARD_WIDTH)}px;height:auto`)}`
}

function imageStyle(size: string): string {
  return `style="display:inline;${size};border:0;vertical-align:middle"`
}

/** The runs cut where the link changes. */
function groupLinks(runs: readonly Run[]): { link: string | null; runs: Run[] }[] {
  const groups: { link: string | null; runs: Run[] }[] = []
  for (const run of runs) {
    const last = groups.at(-1)
    if (last?.link === run.link) last.runs.push(run)
    else groups.push({ link: run.link, runs: [run] })
  }
  return groups
}

/** Writes inline content in both parts; an address that mail must not carry leaves its text behind. */
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

/** A link takes the colour of its text, or its underline would have another one. */
function colorOfGroup(runs: readonly Run[]): string | null {
  const first = runs[0]
  return first?.type === 'text' ? first.look.color : null
}

/** Line breaks in a text are breaks: writers of documents who are no editors mean them so. */
export function textRuns(text: string, look: Look, link: string | null): Run[] {
  if (!text.includes('\n')) return [{ type: 'text', text, look, link }]
  return text.split('\n').flatMap((line, index): Run[] => {
    const run: Run[] = line === '' ? [] : [{ type: 'text', text: line, look, link }]
    return index === 0 ? run : [{ type: 'break', link }, ...run]
  })
}

/** Whether nothing would be seen of these. */
export function isBlank(runs: readonly Run[]): boolean {
  return runs.every((run) => run.type === 'text' && isBlankText(run.text))
}

/** Whether a link of these has nothing to be followed by. */
function isUnseen(runs: readonly Run[]): boolean {
  return isBlank(runs.filter(({ type }) => type !== 'break'))
}
