import { decodeHtmlText } from '../escape.ts'
import { memberOf, colorOf, readNumber, textOf } from '../rich/attributes.ts'
import { type Look, PLAIN, type Run, textRuns, type TextTag } from '../rich/runs.ts'
import { DEFAULTS, LIMITS } from './defaults.ts'
import { type Node, readNode, readText, readVariable, type Walk } from './node.ts'

/** Node types that belong in a line of text. */
export const INLINE_TYPES: ReadonlySet<string> = new Set(['text', 'variable', 'hardBreak', 'inlineImage'])

const TAGS: ReadonlyMap<unknown, TextTag> = new Map<unknown, TextTag>([
  ['bold', 'strong'],
  ['italic', 'em'],
  ['underline', 'u'],
  ['strike', 's'],
  ['subscript', 'sub'],
  ['superscript', 'sup'],
])

/** Maximum number of marks that are read of a text; it exceeds the number of kinds. */
const MAX_MARKS = 32

/** Reads the marks of a text: its look, and the address of the link it is part of. */
function readMarks(walk: Walk, marks: readonly unknown[]): { look: Look; link: string | null } {
  if (marks.length === 0) return { look: PLAIN, link: null }
  const tags = new Set<TextTag>()
  let look: Look = PLAIN
  let link: string | null = null
  for (const value of marks.slice(0, MAX_MARKS)) {
    const mark = readNode(value)
    if (mark === null) continue
    const tag = TAGS.get(mark.type)
    if (tag !== undefined) tags.add(tag)
    else if (mark.type === 'code') look = { ...look, isCode: true }
    else if (mark.type === 'link') link = readText(walk, mark, 'href', 'isUrlVariable') || null
    else if (mark.type === 'textStyle') look = styled(look, mark)
    else if (mark.type === 'highlight')
      look = { ...look, background: colorOf(mark.attributes, 'color', '#ffff00') }
    else warnUnknown(walk, 'mark', mark.type)
  }
  return { look: { ...look, tags }, link }
}

function styled(look: Look, { attributes }: Node): Look {
  return {
    ...look,
    color: colorOf(attributes, 'color', look.color),
    background: colorOf(attributes, 'backgroundColor', look.background),
    size: readNumber(memberOf(attributes, 'fontSize'), 72, 8) ?? look.size,
  }
}

const UNKNOWN = {
  node: 'is not known; its content is shown without it',
  'node in a line': 'is not known in a line of text; its content is shown without it',
  mark: 'is not known; its text is shown without it',
} as const

/** Warns, once for each type, about a node or mark that this renderer does not know in this place. */
export function warnUnknown({ parts }: Walk, what: keyof typeof UNKNOWN, type: string): void {
  const [kind] = what.split(' ')
  parts.table.warn('UNKNOWN_NODE', `The ${kind} "${parts.table.plain(type.slice(0, 60))}" ${UNKNOWN[what]}.`)
}

/** Reads an image in a line of text. An `inlineImage` without a size is as large as an icon. */
function imageRun(walk: Walk, node: Node): Run {
  const { attributes } = node
  const size = node.type === 'inlineImage' ? DEFAULTS.inlineImage.size : null
  return {
    type: 'image',
    image: {
      src: readText(walk, node, 'src', 'isSrcVariable'),
      alt: readText(walk, node, 'alt'),
      title: readText(walk, node, 'title'),
      width: readNumber(memberOf(attributes, 'width'), LIMITS.image, 1) ?? size,
      height: readNumber(memberOf(attributes, 'height'), LIMITS.image, 1) ?? size,
    },
    link: readText(walk, node, 'externalLink', 'isExternalLinkVariable') || null,
  }
}

function nodeRuns(walk: Walk, node: Node, depth: number): Run[] {
  switch (node.type) {
    case 'text': {
      const { look, link } = readMarks(walk, node.marks)
      return textRuns(walk.budget.read(node.text), look, link)
    }
    case 'variable': {
      const { look, link } = readMarks(walk, node.marks)
      const id = textOf(node.attributes, 'id')
      if (id === '') return []
      const text = readVariable(walk, id, textOf(node.attributes, 'fallback'))
      return [{ type: 'text', text, look, link }]
    }
    case 'hardBreak':
      return [{ type: 'break', link: null }]
    case 'inlineImage':
    case 'image':
      return [imageRun(walk, node)]
    default:
      warnUnknown(walk, 'node in a line', node.type)
      return [
        ...(node.text === '' ? [] : textRuns(walk.budget.read(node.text), PLAIN, null)),
        ...readRuns(walk, node.content, depth + 1),
      ]
  }
}

/** Reads the inline content of a node. Misplaced blocks in it give their own content. */
export function readRuns(walk: Walk, content: readonly unknown[], depth: number): Run[] {
  if (content.length === 0 || !walk.budget.mayNest(depth)) return []
  const runs: Run[] = []
  for (const value of content) {
    if (!walk.budget.takeNode()) break
    const node = readNode(value)
    if (node === null) continue
    for (const run of nodeRuns(walk, node, depth)) runs.push(run)
  }
  return runs
}

/** Reads the inline content of a node as plain text with placeholders, for places without marks. */
export function readPlain(walk: Walk, content: readonly unknown[], depth: number): string {
  return readRuns(walk, content, depth)
    .map((run) => (run.type === 'text' ? run.text : run.type === 'break' ? ' ' : run.image.alt))
    .join('')
}

/** Reads the text of a block of source code: HTML with its variables as placeholders. */
export function readSource(walk: Walk, content: readonly unknown[], depth: number): string {
  if (!walk.budget.mayNest(depth)) return ''
  let source = ''
  for (const value of content) {
    if (!walk.budget.takeNode()) break
    const node = readNode(value)
    if (node?.type === 'text') source += walk.budget.read(node.text, { decode: decodeHtmlText })
    else if (node?.type === 'variable') {
      source += readVariable(walk, textOf(node.attributes, 'id'), textOf(node.attributes, 'fallback'))
    } else if (node?.type === 'hardBreak') source += '\n'
  }
  return source
}
