import { memberOf, numberOf, textOf } from '../rich/attributes.ts'
import { type TextBlock, writeItem, writeList } from '../rich/text-blocks.ts'
import { type PlateNode, type PlateSpot, type PlateWalk, readPlateNode, within } from './node.ts'

type Numbering = (number: number) => string

function letters(number: number): string {
  const before = Math.floor((number - 1) / 26)
  return (before > 0 ? letters(before) : '') + String.fromCharCode(97 + ((number - 1) % 26))
}

const ROMAN = [
  [1000, 'm'],
  [900, 'cm'],
  [500, 'd'],
  [400, 'cd'],
  [100, 'c'],
  [90, 'xc'],
  [50, 'l'],
  [40, 'xl'],
  [10, 'x'],
  [9, 'ix'],
  [5, 'v'],
  [4, 'iv'],
  [1, 'i'],
] as const

function roman(number: number): string {
  // Browsers also write larger numbers in digits.
  if (number >= 4_000) return String(number)
  let left = number
  return ROMAN.map(([value, digits]) => {
    const times = Math.floor(left / value)
    left -= times * value
    return digits.repeat(times)
  }).join('')
}

/** List styles besides discs and plain numbers; the text part shows only the numberings. */
const BULLET_STYLES = new Set(['circle', 'square'])
const NUMBERINGS: ReadonlyMap<string, Numbering> = new Map<string, Numbering>([
  ['lower-alpha', letters],
  ['lower-latin', letters],
  ['lower-roman', roman],
  ['upper-alpha', (number) => letters(number).toUpperCase()],
  ['upper-latin', (number) => letters(number).toUpperCase()],
  ['upper-roman', (number) => roman(number).toUpperCase()],
  ['decimal-leading-zero', (number) => String(number).padStart(2, '0')],
])

/** The deepest indentation that is written; with more, a phone would have no room for the text. */
const MAX_INDENT = 8
const BULLETS = new Set(['disc', 'circle', 'square', 'todo'])

/** Writes a list of `li` elements, which contain lines (`lic`), other blocks and lists. */
export function writeListElement(walk: PlateWalk, node: PlateNode, spot: PlateSpot, block: TextBlock): void {
  const start = node.type === 'ol' ? numberOf(node.attributes, 'start', 1, 999_999) : null
  const inner = within(spot, { lists: spot.lists + 1 })
  if (!walk.budget.mayNest(inner.depth)) return
  writeList(walk.parts, { start, depth: spot.lists, block }, () => {
    let number = start ?? 0
    for (const value of node.children) {
      if (!walk.budget.takeNode()) break
      const item = readPlateNode(value)
      if (item === null) continue
      const marker = start === null ? '- ' : `${number++}. `
      const content = item.type === 'li' ? item.children : [value]
      writeItem(walk.parts, marker, {}, () => walk.writeBlocks(content, within(inner)))
    }
  })
}

/** Returns an element's indentation in levels, and its list style ('' when it is not a list item). */
export function indentOf({ attributes }: PlateNode): { indent: number; style: string } {
  return {
    indent: numberOf(attributes, 'indent', 0, MAX_INDENT),
    style: textOf(attributes, 'listStyleType'),
  }
}

/** Returns whether an element is a list item: the editor keeps such lists flat, as indented elements. */
export function isIndentItem(node: PlateNode): boolean {
  return indentOf(node).style !== ''
}

/** Returns how an item's number is written; null for a bullet. */
function numberingOf(node: PlateNode): Numbering | null {
  const { style } = indentOf(node)
  return BULLETS.has(style) ? null : (NUMBERINGS.get(style) ?? String)
}

/** Returns the CSS list style of an item, where it differs from the default. */
function markingOf(node: PlateNode): string | undefined {
  const { style } = indentOf(node)
  return NUMBERINGS.has(style) || BULLET_STYLES.has(style) ? style : undefined
}

function startOf(node: PlateNode): number {
  return numberOf(node.attributes, 'listStart', 1, 999_999, 1)
}

function markOf({ attributes }: PlateNode): string {
  if (textOf(attributes, 'listStyleType') !== 'todo') return ''
  return memberOf(attributes, 'checked') === true ? '☑ ' : '☐ '
}

/** Writes neighbouring items as nested lists, by their indentation; another list style begins another list. */
export function writeIndentList(
  walk: PlateWalk,
  items: readonly PlateNode[],
  spot: PlateSpot,
  block: TextBlock,
  writeContent: (item: PlateNode, prefix: string, spot: PlateSpot, hasMore: boolean) => void,
): void {
  let at = 0
  const level = Math.max(1, Math.min(...items.map((item) => indentOf(item).indent)))
  while (at < items.length) {
    const first = items[at]
    if (first === undefined) return
    const numbering = numberingOf(first)
    const marking = markingOf(first)
    const isAlike = (item: PlateNode): boolean =>
      numberingOf(item) === numbering && markingOf(item) === marking
    const start = numbering === null ? null : startOf(first)
    let number = start ?? 0
    writeList(walk.parts, { start, marking, depth: spot.lists, block }, () => {
      for (let item = items[at]; item !== undefined && isAlike(item); item = items[at]) {
        at += 1
        const nested = deeperFrom(items, at, level)
        at += nested.length
        const own = item
        const inner = { ...spot, isTight: true, lists: spot.lists + 1 }
        const marker = numbering === null ? '- ' : `${numbering(number++)}. `
        writeItem(walk.parts, marker, { isBare: markOf(own) !== '' }, () => {
          writeContent(own, markOf(own), inner, nested.length > 0)
          if (nested.length > 0) writeIndentList(walk, nested, inner, block, writeContent)
        })
      }
    })
  }
}

function deeperFrom(items: readonly PlateNode[], from: number, level: number): PlateNode[] {
  let to = from
  for (let item = items[to]; item !== undefined && indentOf(item).indent > level; item = items[to]) to += 1
  return items.slice(from, to)
}
