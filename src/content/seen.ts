import { decodeAttribute, decodeHtmlText } from './escape.ts'
import type { HtmlAttribute, HtmlToken, StartTag } from './html-scan.ts'
import { OpenElements } from './open-elements.ts'

/** How an element's content is hidden; a child can undo all but `isGone`. Pictures show even where text is tiny. */
export type Cover = { readonly isGone: boolean; readonly isInvisible: boolean; readonly isTiny: boolean }

/** The cover outside of all elements. */
export const UNCOVERED: Cover = { isGone: false, isInvisible: false, isTiny: false }

// U+2800 (blank braille pattern) is a visible symbol for Unicode but shows nothing.
const BLANK = /^[\s\p{Default_Ignorable_Code_Point}\u2800]*$/u
/** Font sizes that are zero when the parent's is zero. */
const RELATIVE_SIZE = /(?:[^r]em|ex|ch|%|smaller|larger|inherit)$/

/** Returns whether the text shows nothing visible. */
export function isBlankText(text: string): boolean {
  return BLANK.test(text)
}

/** Returns whether readers see nothing of an element itself. */
export function isHidden({ isGone, isInvisible }: Cover): boolean {
  return isGone || isInvisible
}

/** Returns the links of an HTML source that have visible content. */
export function seenLinks(tokens: readonly HtmlToken[]): ReadonlySet<HtmlToken> {
  const seen = new Set<HtmlToken>()
  const open = new OpenElements(UNCOVERED)
  let link: StartTag | null = null
  for (const token of tokens) {
    if (token.type === 'start') {
      const cover = open.open(token.name, (parent) => coverIn(parent, token))
      if (token.name === 'a') link = token
      const pictured = isImage(token) ? link : isPicture(token) ? token : null
      if (pictured && !isHidden(cover)) seen.add(pictured)
    } else if (token.type === 'end') {
      open.close(token.name)
      if (token.name === 'a') link = null
    } else if (token.type === 'text' && link) {
      const cover = open.value
      if (!isHidden(cover) && !cover.isTiny && !isBlankText(decodeHtmlText(token.raw))) seen.add(link)
    }
  }
  return seen
}

/** Returns whether an element is an image with an address or an alternative text; without both it shows nothing. */
function isImage({ name: element, attributes }: StartTag): boolean {
  const isSaid = ({ name, value }: HtmlAttribute) =>
    name === 'src' || (name === 'alt' && !isBlankText(decodeAttribute(value)))
  return element === 'img' && attributes.some(isSaid)
}

/** Returns whether an element is itself a picture with a link: an area of an image map, or a shape for Outlook. */
function isPicture({ name }: StartTag): boolean {
  return name === 'area' || name.startsWith('v:')
}

/**
 * Returns the cover of an element in one with the cover `parent`. Considers style attributes, `hidden` and the head,
 * but not style sheets, colours or positions outside of the page.
 */
export function coverIn(parent: Cover, { name: element, attributes }: StartTag): Cover {
  const rules = rulesOf(attributes.find(({ name }) => name === 'style')?.value ?? '')
  const visibility = rules.get('visibility')
  return {
    isGone:
      parent.isGone ||
      element === 'head' ||
      rules.get('display') === 'none' ||
      isZero(rules.get('opacity')) ||
      (isZero(rules.get('max-height')) && /^(?:hidden|clip)\b/.test(rules.get('overflow') ?? '')) ||
      attributes.some(({ name }) => name === 'hidden'),
    isInvisible: visibility === undefined ? parent.isInvisible : /^(?:hidden|collapse)$/.test(visibility),
    isTiny: isTiny(parent, rules.get('font-size') ?? (rules.has('font') ? 'medium' : 'inherit')),
  }
}

function isZero(amount: string | undefined): boolean {
  return Number.parseFloat(amount ?? '') === 0
}

function isTiny(parent: Cover, size: string): boolean {
  return isZero(size) || (parent.isTiny && RELATIVE_SIZE.test(size))
}

/** Returns the declarations of a style attribute in lower case; the last one of a name wins. */
function rulesOf(style: string): Map<string, string> {
  const declarations = decodeAttribute(style).toLowerCase().split(';')
  return new Map(
    declarations.map((declaration) => {
      const colon = declaration.indexOf(':')
      const value = declaration.slice(colon + 1).replace(/!\s*important\s*$/, '')
      return [declaration.slice(0, Math.max(0, colon)).trim(), value.trim()] as const
    }),
  )
}
