import { colorOf, memberOf, readNumber, textOf } from '../rich/attributes.ts'
import { type Look, type Run, textRuns, type TextTag } from '../rich/runs.ts'
import { type PlateNode, type PlateWalk, readImage, readPlateNode, warnUnknown } from './node.ts'

/** Element types that belong in a line of text; '' is a text node. */
export const INLINE_ELEMENTS: ReadonlySet<string> = new Set(['', 'a', 'mention', 'mention_input', 'date'])

const TAGS: readonly (readonly [string, TextTag])[] = [
  ['bold', 'strong'],
  ['italic', 'em'],
  ['underline', 'u'],
  ['strikethrough', 's'],
  ['subscript', 'sub'],
  ['superscript', 'sup'],
]
const HIGHLIGHT = '#fef08a'

/** Reads a text's marks: members of the node that are true or have a value. */
function lookOf({ attributes }: PlateNode): Look {
  const has = (name: string): boolean => memberOf(attributes, name) === true
  return {
    tags: new Set(TAGS.filter(([mark]) => has(mark)).map(([, tag]) => tag)),
    isCode: has('code'),
    color: colorOf(attributes, 'color', null),
    background: colorOf(attributes, 'backgroundColor', has('highlight') ? HIGHLIGHT : null),
    size: readNumber(memberOf(attributes, 'fontSize'), 72, 8),
  }
}

function nodeRuns(walk: PlateWalk, node: PlateNode, link: string | null, depth: number): Run[] {
  if (node.type === '') {
    return textRuns(walk.budget.read(textOf(node.attributes, 'text')), lookOf(node), link)
  }
  if (node.type === 'a') {
    const url = walk.budget.read(textOf(node.attributes, 'url'))
    return readLine(walk, node.children, depth + 1, url === '' ? link : url)
  }
  if (node.type === 'mention') {
    const text = walk.budget.read(textOf(node.attributes, 'value'))
    return text === '' ? [] : [{ type: 'text', text: `@${text}`, look: lookOf(node), link }]
  }
  if (node.type === 'img') return imageRuns(walk, node, link)
  // A paragraph in a line loses nothing when only its content is written, so it gets no warning.
  if (!INLINE_ELEMENTS.has(node.type) && node.type !== 'p') {
    warnUnknown(walk, node, 'is not known in a line of text')
  }
  return readLine(walk, node.children, depth + 1, link)
}

function imageRuns(walk: PlateWalk, { attributes }: PlateNode, link: string | null): Run[] {
  const image = {
    ...readImage(walk, attributes),
    width: readNumber(memberOf(attributes, 'width'), 2_000, 1),
    height: readNumber(memberOf(attributes, 'height'), 2_000, 1),
  }
  return image.src === '' ? [] : [{ type: 'image', image, link }]
}

/** Reads the inline content of an element. Misplaced blocks in it give their own content. */
export function readLine(
  walk: PlateWalk,
  children: readonly unknown[],
  depth: number,
  link: string | null = null,
): Run[] {
  if (children.length === 0 || !walk.budget.mayNest(depth)) return []
  const runs: Run[] = []
  for (const value of children) {
    if (!walk.budget.takeNode()) break
    const node = readPlateNode(value)
    if (node === null) continue
    for (const run of nodeRuns(walk, node, link, depth)) runs.push(run)
  }
  return runs
}
