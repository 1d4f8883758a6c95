import type { CompiledEmail } from './compile.ts'
import { type Condition, isShown } from './conditions.ts'
import { escapeCss, escapeHtml } from './escape.ts'
import type { VariableReference } from './references.ts'
import type { Slot, Template } from './template.ts'
import { fillUrl, isWebUrl } from './url.ts'
import { asReadersWrite, CONFIRM_VARIABLE, flatten, formatValue } from './variables.ts'

/** The data of one recipient, or of one preview, that a compiled email is filled with. */
export type FillInput = {
  /** Values by variable name: built-in variables and custom fields. A missing or null value is empty. */
  readonly variables: Readonly<Record<string, unknown>>
  readonly urls: {
    readonly unsubscribe: string
    readonly online: string
    readonly confirm?: string | undefined
  }
  /**
   * Without it, nothing is counted. `openUrl` is the pixel's address; `clickUrl` returns the tracked address of the
   * link at a position.
   */
  readonly tracking?:
    | {
        readonly openUrl?: string | undefined
        readonly clickUrl?: (position: number) => string
      }
    | undefined
  /** For a preview without a recipient: every conditional part shows, and repeated parts without a list show once. */
  readonly showAll?: boolean
}

/**
 * The email of one recipient. `links[position]` is the destination of the link at that position, '' when it was dropped
 * as unsafe.
 */
export type FilledEmail = {
  readonly subject: string
  readonly preheader: string
  readonly html: string
  readonly text: string
  readonly links: readonly string[]
}

/** Maximum number of items that one list shows, and maximum number that all lists of one email show together. */
const MAX_ITEMS = 200
const MAX_ROUNDS = 1_000

/**
 * Encodes a value for insertion into the HTML and text templates: unchanged, or in the transfer encoding of the MIME
 * part if the templates' fixed texts are already in it. Encoding pieces separately must give the same result as
 * encoding them joined.
 */
export type WriteValue = (text: string) => string

/** The state that all templates of one recipient's email share. */
type Filling = {
  readonly compiled: CompiledEmail
  readonly input: FillInput
  readonly write: WriteValue
  readonly links: string[]
  /** The values of each list item by its path, so that the HTML and the text of an item share their links. */
  readonly items: Map<string, Values>
}

/** A value or an address as written into the HTML part and into the text part. */
type Shown = {
  readonly html: string
  readonly text: string
}

/** The values that slots read: those of the whole email, or of one list item in it. */
type Values = {
  readonly filling: Filling
  readonly path: string
  /** The list item and the values around its list; null outside of lists. */
  readonly item: { readonly value: unknown; readonly outer: Values } | null
  /** Unescaped values by reference index: one line each, with fallbacks applied. */
  readonly plain: readonly string[]
  /** The same values as they are written. */
  readonly shown: readonly Shown[]
  /** Addresses by target index: tracked when clicks are counted, empty when unsafe. */
  readonly addresses: readonly Shown[]
}

const NOTHING: Shown = { html: '', text: '' }

function resolve(reference: VariableReference, input: FillInput): string {
  const { name, fallback } = reference
  if (name === 'unsubscribeUrl') return flatten(input.urls.unsubscribe) || fallback
  if (name === 'onlineUrl') return flatten(input.urls.online) || fallback
  if (name === CONFIRM_VARIABLE) return flatten(input.urls.confirm ?? '') || fallback
  if (!Object.hasOwn(input.variables, name)) return fallback
  return formatValue(input.variables[name]) || fallback
}

/** Encodes text for both parts; text that needs no escaping is encoded once. */
function showText(text: string, write: WriteValue): Shown {
  if (text === '') return NOTHING
  const written = write(text)
  const escaped = escapeHtml(text)
  return { text: written, html: escaped === text ? written : write(escaped) }
}

/** Returns an item's member of this name. An item that is not an object is its own member `value`. */
function memberOf(item: unknown, name: string): unknown {
  if (typeof item !== 'object' || item === null) return name === 'value' ? item : undefined
  return Object.hasOwn(item, name) ? (item as Readonly<Record<string, unknown>>)[name] : undefined
}

/** Finds a list by name: in the surrounding items from the inside out, then among the recipient's variables. */
function listOf(values: Values, name: string): unknown {
  const { variables } = values.filling.input
  for (let at = values; at.item !== null; at = at.item.outer) {
    const member = memberOf(at.item.value, name)
    if (member !== undefined) return member
  }
  return Object.hasOwn(variables, name) ? variables[name] : undefined
}

/**
 * Returns the values for one item of a list: the item's members first, then the outer values. Null once the email has
 * shown `MAX_ROUNDS` items.
 */
function itemValues(outer: Values, value: unknown, repeat: number, index: number): Values | null {
  const { filling } = outer
  const path = `${outer.path}/${repeat}.${index}`
  const known = filling.items.get(path)
  if (known !== undefined) return known
  if (filling.items.size >= MAX_ROUNDS) return null
  const { references, targets } = filling.compiled
  const plain = references.map(({ name, isItem }, index) => {
    const own = isItem === true ? formatValue(memberOf(value, name)) : ''
    return own || (outer.plain[index] ?? '')
  })
  const addresses = targets.map((target, index) => {
    if (target.repeat !== repeat) return outer.addresses[index] ?? NOTHING
    const url = fillUrl(target.url, plain)
    if (!isWebUrl(url)) return showText(url, filling.write)
    const position = filling.links.push(url) - 1
    return showText(filling.input.tracking?.clickUrl?.(position) ?? url, filling.write)
  })
  const shown = plain.map((text) => showText(asReadersWrite(text), filling.write))
  const values: Values = { filling, path, item: { value, outer }, plain, shown, addresses }
  filling.items.set(path, values)
  return values
}

function isVisible(condition: Condition, { filling, plain }: Values): boolean {
  return filling.input.showAll === true || isShown(condition, plain[condition.reference] ?? '')
}

function showEach(slot: Slot & { kind: 'each' }, values: Values): string {
  const list = listOf(values, slot.list)
  if (!Array.isArray(list))
    return values.filling.input.showAll === true ? fillTemplate(slot.body, values) : ''
  let shown = ''
  for (const [index, value] of list.slice(0, MAX_ITEMS).entries()) {
    const inner = itemValues(values, value, slot.id, index)
    if (inner === null) break
    shown += fillTemplate(slot.body, inner)
  }
  return shown
}

function dress(slot: { before: string; after: string }, text: string): string {
  return text === '' ? '' : slot.before + text + slot.after
}

/** Returns the text of one slot. The switch covers every kind, so that the compiler reports a missing one. */
function show(slot: Slot, values: Values): string {
  const { write, input } = values.filling
  switch (slot.kind) {
    case 'html':
      return values.shown[slot.reference]?.html ?? ''
    case 'plain':
      return values.shown[slot.reference]?.text ?? ''
    case 'bracketed':
      return dress(slot, values.shown[slot.reference]?.text ?? '')
    case 'link':
      return dress(slot, values.addresses[slot.target]?.html ?? '')
    case 'plainLink':
      return dress(slot, values.addresses[slot.target]?.text ?? '')
    case 'address':
      return dress(slot, showText(fillUrl(slot.url, values.plain), write).html)
    case 'css':
      return write(escapeCss(values.plain[slot.reference] ?? ''))
    case 'pixel':
      return dress(slot, showText(input.tracking?.openUrl ?? '', write).html)
    case 'when':
      return isVisible(slot.condition, values) ? fillTemplate(slot.body, values) : ''
    case 'each':
      return showEach(slot, values)
  }
}

function fillTemplate(template: Template, values: Values): string {
  const { statics, slots } = template
  let filled = statics[0] ?? ''
  for (let index = 0; index < slots.length; index += 1) {
    const slot = slots[index]
    if (slot !== undefined) filled += show(slot, values)
    filled += statics[index + 1] ?? ''
  }
  return filled
}

/**
 * Fills the text part. When a conditional part at its beginning is hidden, the blank lines after that part are removed.
 */
function fillText(template: Template, values: Values): string {
  const text = fillTemplate(template, values)
  const [first] = template.slots
  const mayBeHidden = template.statics[0] === '' && first !== undefined && 'body' in first
  return mayBeHidden ? text.replace(/^[\r\n]+/, '') : text
}

/** Fills the text of a header. It has only plain slots, and the header is encoded later. */
function fillHeader({ statics, slots }: Template, plain: readonly string[]): string {
  let filled = statics[0] ?? ''
  for (const [index, slot] of slots.entries()) {
    if (slot.kind === 'plain') filled += asReadersWrite(plain[slot.reference] ?? '')
    filled += statics[index + 1] ?? ''
  }
  return filled.trim()
}

const asItIs: WriteValue = (text) => text

/**
 * Fills a compiled email for one recipient. Pure, and never expands variables inside values. `write` must match the
 * encoding of the fixed texts in the HTML and text templates.
 */
export function fillContent(
  compiled: CompiledEmail,
  input: FillInput,
  write: WriteValue = asItIs,
): FilledEmail {
  const plain = compiled.references.map((reference) => resolve(reference, input))
  const clickUrl = input.tracking?.clickUrl
  const links: string[] = []
  const addresses = compiled.targets.map(({ url: template, position }) => {
    const url = fillUrl(template, plain)
    if (position === null) return showText(url, write)
    links[position] = url
    const isWeb = template.fixed !== null || isWebUrl(url)
    return showText(clickUrl !== undefined && isWeb ? clickUrl(position) : url, write)
  })
  const filling: Filling = { compiled, input, write, links, items: new Map() }
  const shown = plain.map((text) => showText(asReadersWrite(text), write))
  const values: Values = { filling, path: '', item: null, plain, shown, addresses }
  return {
    subject: fillHeader(compiled.subject, plain),
    preheader: fillHeader(compiled.preheader, plain),
    html: fillTemplate(compiled.html, values),
    text: fillText(compiled.text, values),
    links,
  }
}
