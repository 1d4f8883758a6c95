import { isRecord } from '../../../schema/json.ts'
import type { EmailParts } from '../email-parts.ts'
import { memberOf } from '../rich/attributes.ts'
import { Budget } from '../rich/budget.ts'
import { CARD } from '../rich/surface.ts'
import { CARD_WIDTH } from '../theme.ts'
import { writeBlocks } from './blocks.ts'
import type { PlateWalk } from './node.ts'

/**
 * Writes a PLATE document (Slate JSON: a list of elements, or an object with `children`) as HTML and text in one walk,
 * with the same limits as a MAILY document.
 */
export function writePlate(parts: EmailParts, source: unknown): void {
  const content = isRecord(source) ? memberOf(source, 'children') : source
  if (!Array.isArray(content)) {
    parts.table.warn(
      'INVALID_DOCUMENT',
      'The content is not a document, so nothing is shown; write a list of elements, or {"children": […]}.',
    )
    return
  }
  const walk: PlateWalk = {
    parts,
    budget: new Budget(parts.table),
    writeBlocks: (children, spot) => writeBlocks(walk, children, spot),
  }
  walk.writeBlocks(content, { room: CARD_WIDTH, surface: CARD, depth: 2, lists: 0, isTight: false })
}
