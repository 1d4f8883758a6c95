import type { ContentType } from '../../schema/values.ts'
import { EmailParts, plainTemplate } from './email-parts.ts'
import { decodeEntities } from './escape.ts'
import { writeFrame } from './frame.ts'
import { writeHtmlSource } from './html-source.ts'
import { type LinkTarget, LinkTable } from './links.ts'
import { writeMaily } from './maily/document.ts'
import { writeMarkdown } from './markdown.ts'
import { writePlate } from './plate/document.ts'
import { type ContentWarning, type VariableReference, ReferenceTable } from './references.ts'
import type { Template } from './template.ts'
import { BUILT_IN_VARIABLES, flatten } from './variables.ts'

/** An email as its author wrote it. */
export type ContentSource = {
  readonly contentType: ContentType | 'HTML'
  /** Text for MARKDOWN and HTML, a document for MAILY and PLATE; as it is stored, so it may be anything. */
  readonly source: unknown
  readonly subject: string
  readonly preview?: string | null
  /** The text part, where its author wrote one; otherwise it is made of the content. */
  readonly text?: string | undefined
  /** Marketing mail always names its sender in a footer. */
  readonly kind: 'marketing' | 'transactional'
  /** Names of custom fields; given, other names without a fallback become warnings. */
  readonly knownVariables?: Iterable<string>
}

/**
 * An email ready to be filled for any number of people. Plain frozen data: it may be cached, cloned and
 * shared. `references` are the variables, `targets` the links that slots point into.
 */
export type CompiledEmail = {
  readonly subject: Template
  readonly preheader: Template
  readonly html: Template
  readonly text: Template
  readonly references: readonly VariableReference[]
  readonly targets: readonly LinkTarget[]
  /** The links whose clicks can be counted, by position; `url` is null when it holds variables. */
  readonly links: readonly { readonly position: number; readonly url: string | null }[]
  /** Whether the author put an unsubscribe link into the content. */
  readonly hasUnsubscribeLink: boolean
  /** Whether a footer with an unsubscribe link was added because there was none. */
  readonly unsubscribeLinkAdded: boolean
  readonly warnings: readonly ContentWarning[]
}

/** Names without case and separators, so that a slip of the pen finds what was meant. */
function bareName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '')
}

function warnUnknown(table: ReferenceTable, custom: Iterable<string>): void {
  const known = new Set([...BUILT_IN_VARIABLES.map((variable) => variable.name), ...custom])
  const near = new Map([...known].map((name) => [bareName(name), name]))
  for (const list of table.lists) {
    table.warn(
      'EMPTY_REPEAT',
      `A block repeats for the items of {{${list}}}, but subscribers have no lists, so it shows nothing to them; write its content once for each item instead.`,
    )
  }
  for (const { name, fallback, isItem } of table.references) {
    if (known.has(name) || fallback !== '' || isItem === true) continue
    const meant = near.get(bareName(name))
    const repair =
      meant === undefined
        ? `make a custom field of that name, or write {{${name} | 'fallback'}}.`
        : `did you mean {{${meant}}}?`
    table.warn('UNKNOWN_VARIABLE', `{{${name}}} is not known and will be empty; ${repair}`)
  }
}

function countedLinks(targets: readonly LinkTarget[]): CompiledEmail['links'] {
  const counted = targets.flatMap(({ position, url }) =>
    position === null ? [] : [Object.freeze({ position, url: url.fixed })],
  )
  return Object.freeze(counted)
}

/** Gmail shows only the first 102 KB of a message and hides the rest, the unsubscribe link with it. */
const CLIPPED_FROM = 102_000

/** About what the address of a link takes when its clicks are counted. */
const ADDRESS_BYTES = 100

/** The bytes of everything that may show. */
function sizeOf({ statics, slots }: Template): number {
  const fixed = statics.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  return slots.reduce((sum, slot) => {
    if ('body' in slot) return sum + sizeOf(slot.body)
    return slot.kind === 'link' ? sum + ADDRESS_BYTES : sum
  }, fixed)
}

function warnLarge(table: ReferenceTable, html: Template): void {
  const size = sizeOf(html)
  if (size <= CLIPPED_FROM) return
  table.warn(
    'LARGE',
    `The HTML has ${Math.ceil(size / 1000)} KB; over 102 KB, Gmail cuts off the end: shorten it.`,
  )
}

/** Writes the content itself; the frame of our own formats comes around it. */
function writeBody(parts: EmailParts, { contentType, source }: ContentSource): void {
  if (contentType === 'MAILY') writeMaily(parts, source)
  else if (contentType === 'PLATE') writePlate(parts, source)
  else writeMarkdown(parts, parts.table.extract(asText(source), { backslashEscapes: true }))
}

function asText(source: unknown): string {
  return typeof source === 'string' ? source : ''
}

/** Reads an email once, so that filling it is only joining strings. Never throws, whatever the source. */
export function compileContent(content: ContentSource): CompiledEmail {
  const { contentType, knownVariables } = content
  const table = new ReferenceTable()
  const links = new LinkTable(table)
  const parts = new EmailParts(table, links)
  const subject = table.extract(flatten(content.subject))
  const preview = table.extract(flatten(content.preview ?? ''))
  const written = content.text === undefined ? null : table.extract(content.text)
  let hasUnsubscribeLink = false
  /** What is in the tables once the author's content is written; the footer adds to them. */
  const noteAuthored = (): void => {
    hasUnsubscribeLink = links.hasUnsubscribe
    if (knownVariables !== undefined) warnUnknown(table, knownVariables)
  }
  let html: Template
  if (contentType === 'HTML') {
    html = writeHtmlSource(parts, table.extract(asText(content.source), { decode: decodeEntities }), preview)
    noteAuthored()
  } else {
    html = writeFrame(parts, { subject, preview, marketing: content.kind === 'marketing' }, () => {
      writeBody(parts, content)
      noteAuthored()
    })
  }
  warnLarge(table, html)
  return Object.freeze({
    subject: plainTemplate(subject),
    preheader: plainTemplate(preview),
    html,
    text: written === null ? parts.buildText() : plainTemplate(written),
    references: Object.freeze(table.references),
    targets: Object.freeze(links.targets),
    links: countedLinks(links.targets),
    hasUnsubscribeLink,
    unsubscribeLinkAdded: links.hasUnsubscribe && !hasUnsubscribeLink,
    warnings: Object.freeze(table.warnings),
  })
}
