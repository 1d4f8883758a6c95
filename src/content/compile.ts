import type { ContentType } from '../../schema/values.ts'
import { EmailParts, plainTemplate } from './email-parts.ts'
import { decodeHtmlText } from './escape.ts'
import { type MailKind, writeFrame } from './frame.ts'
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
  /**
   * Text for MARKDOWN and HTML, a document for MAILY and PLATE. It comes unchecked from storage, so it may be any
   * value.
   */
  readonly source: unknown
  readonly subject: string
  readonly preview?: string | null
  /** The text part, if the author wrote one; otherwise it is derived from the content. */
  readonly text?: string | undefined
  readonly kind: MailKind
  /**
   * Names of the custom fields. When given, a variable that is neither one of them nor built in, and has no fallback,
   * gets a warning.
   */
  readonly knownVariables?: Iterable<string>
}

/**
 * An email that can be filled for any number of recipients. It is plain frozen data, so it may be cached, cloned and
 * shared. `references` holds the variables and `targets` the links; slots refer to both by index.
 */
export type CompiledEmail = {
  readonly subject: Template
  readonly preheader: Template
  readonly html: Template
  readonly text: Template
  readonly references: readonly VariableReference[]
  readonly targets: readonly LinkTarget[]
  /** The links whose clicks can be counted, by position. `url` is null when the address contains variables. */
  readonly links: readonly { readonly position: number; readonly url: string | null }[]
  /** Whether the author put an unsubscribe link into the content. */
  readonly hasUnsubscribeLink: boolean
  /** Whether a footer with an unsubscribe link was added because there was none. */
  readonly unsubscribeLinkAdded: boolean
  readonly warnings: readonly ContentWarning[]
}

/** Returns a name without case and separators, so that a misspelt variable finds the one that was meant. */
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

/** Estimated length of a tracked link's address. */
const ADDRESS_BYTES = 100

/** Returns the size of a template in bytes, with all conditional parts included. */
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

/** Writes the content of every format but HTML; `writeFrame` adds the document around it. */
function writeBody(parts: EmailParts, { contentType, source }: ContentSource): void {
  if (contentType === 'MAILY') writeMaily(parts, source)
  else if (contentType === 'PLATE') writePlate(parts, source)
  else writeMarkdown(parts, parts.table.extract(asText(source), { backslashEscapes: true }))
}

function asText(source: unknown): string {
  return typeof source === 'string' ? source : ''
}

/** Compiles an email once, so that filling it only joins strings. Never throws, whatever the source is. */
export function compileContent(content: ContentSource): CompiledEmail {
  const { contentType, knownVariables } = content
  const table = new ReferenceTable()
  const links = new LinkTable(table)
  const parts = new EmailParts(table, links)
  const subject = table.extract(flatten(content.subject))
  const preview = table.extract(flatten(content.preview ?? ''))
  const written = content.text === undefined ? null : table.extract(content.text)
  let hasUnsubscribeLink = false
  /** Warns about unknown variables, and notes whether there is an unsubscribe link, before the footer adds its own. */
  const noteAuthored = (): void => {
    hasUnsubscribeLink = links.hasUnsubscribe
    if (knownVariables !== undefined) warnUnknown(table, knownVariables)
  }
  let html: Template
  if (contentType === 'HTML') {
    html = writeHtmlSource(parts, table.extract(asText(content.source), { decode: decodeHtmlText }), preview)
    noteAuthored()
  } else {
    html = writeFrame(parts, { subject, preview, kind: content.kind }, () => {
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
