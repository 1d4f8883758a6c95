import type { EmailParts } from '../email-parts.ts'
import { Budget } from '../rich/budget.ts'
import { CARD } from '../rich/surface.ts'
import { CARD_WIDTH } from '../theme.ts'
import { writeBlocks } from './blocks.ts'
import { readNode, versionOf, type Walk } from './node.ts'
import { readSnippets } from './snippets.ts'

/**
 * Writes a MAILY document (TipTap JSON) as HTML and text in one walk. Accepts any value: parts that cannot be shown are
 * left out with a warning, and time and memory are bounded (rich/budget.ts).
 */
export function writeMaily(parts: EmailParts, source: unknown): void {
  const document = readNode(source)
  if (document === null) {
    parts.table.warn(
      'INVALID_DOCUMENT',
      'The content is not a document, so nothing is shown; write {"type": "doc", "content": […]}.',
    )
    return
  }
  const walk: Walk = {
    parts,
    snippets: readSnippets(source),
    budget: new Budget(parts.table),
    writeBlocks: (content, spot) => writeBlocks(walk, content, spot),
  }
  const spot = {
    room: CARD_WIDTH,
    surface: CARD,
    depth: 2,
    version: versionOf(source),
    snippets: [],
    lists: 0,
    isTight: false,
  } as const
  // A single block is treated as a document of one block.
  walk.writeBlocks(document.type === 'doc' ? document.content : [source], spot)
}
