import type { CompiledEmail } from './compile.ts'
import { escapeCss, escapeHtml } from './escape.ts'
import type { VariableReference } from './references.ts'
import type { Slot, Template } from './template.ts'
import { fillUrl, isWebUrl } from './url.ts'
import { CONFIRM_VARIABLE, flatten, formatValue } from './variables.ts'

/** What differs between two people who get the same email. */
export interface FillInput {
  /** Values by variable name: the built-in ones and custom fields. Absent and null mean empty. */
  readonly variables: Readonly<Record<string, unknown>>
  readonly urls: { readonly unsubscribe: string; readonly online: string; readonly confirm?: string }
  /** Absent: nothing is counted. `openUrl` is the pixel's address; `clickUrl` wraps the link at a position. */
  readonly tracking?: {
    readonly openUrl?: string
    readonly clickUrl?: (position: number) => string
  }
}

/** One person's email. `links[position]` is where the link at that position leads; '' when it was dropped. */
export interface FilledEmail {
  readonly subject: string
  readonly preheader: string
  readonly html: string
  readonly text: string
  readonly links: readonly string[]
}

/** What the slots of one email read. */
interface Values {
  /** Plain values by reference, on one line, with fallbacks applied. */
  readonly plain: readonly string[]
  readonly html: readonly string[]
  /** Addresses by target as they show: wrapped when clicks are counted. */
  readonly addresses: readonly string[]
  readonly pixel: string
}

function resolve(reference: VariableReference, input: FillInput): string {
  const { name, fallback } = reference
  if (name === 'unsubscribeUrl') return flatten(input.urls.unsubscribe) || fallback
  if (name === 'onlineUrl') return flatten(input.urls.online) || fallback
  if (name === CONFIRM_VARIABLE) return flatten(input.urls.confirm ?? '') || fallback
  if (!Object.hasOwn(input.variables, name)) return fallback
  return formatValue(input.variables[name]) || fallback
}

function pixelFor(openUrl: string | undefined): string {
  if (openUrl === undefined || openUrl === '') return ''
  return `<img src="${escapeHtml(openUrl)}" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0;overflow:hidden">`
}

/** What one slot shows; a switch over every kind, so that a new kind cannot be forgotten. */
function show(slot: Slot, values: Values): string {
  switch (slot.kind) {
    case 'html':
      return values.html[slot.reference] ?? ''
    case 'plain':
      return values.plain[slot.reference] ?? ''
    case 'link': {
      const url = values.addresses[slot.target] ?? ''
      return url === '' ? '' : slot.before + escapeHtml(url) + slot.after
    }
    case 'plainLink': {
      const url = values.addresses[slot.target] ?? ''
      return url === '' ? '' : slot.before + url + slot.after
    }
    case 'address': {
      const url = fillUrl(slot.url, values.plain)
      return url === '' ? '' : slot.before + escapeHtml(url) + slot.after
    }
    case 'css':
      return escapeCss(values.plain[slot.reference] ?? '')
    case 'pixel':
      return values.pixel
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

/** Fills a compiled email for one person. Pure, and never expands what stands in a value. */
export function fillContent(compiled: CompiledEmail, input: FillInput): FilledEmail {
  const plain = compiled.references.map((reference) => resolve(reference, input))
  const clickUrl = input.tracking?.clickUrl
  const links: string[] = []
  const addresses = compiled.targets.map((target) => {
    const url = fillUrl(target.url, plain)
    if (target.position === null) return url
    links[target.position] = url
    return clickUrl !== undefined && isWebUrl(url) ? clickUrl(target.position) : url
  })
  const values = { plain, html: plain.map(escapeHtml), addresses, pixel: pixelFor(input.tracking?.openUrl) }
  return {
    subject: fillTemplate(compiled.subject, values).trim(),
    preheader: fillTemplate(compiled.preheader, values).trim(),
    html: fillTemplate(compiled.html, values),
    text: fillTemplate(compiled.text, values),
    links,
  }
}
