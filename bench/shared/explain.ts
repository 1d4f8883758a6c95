/** The members of EXPLAIN (ANALYZE, FORMAT JSON) that are used here. */
export type PlanNode = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Join Type'?: string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  Plans?: PlanNode[]
}

/** Reading a partition with up to this many rows from end to end is acceptable. */
const SMALL = 20_000

/** Nodes that only pass rows on. */
const SILENT =
  /^(Limit|Result|Gather|Gather Merge|Subquery Scan|Materialize|Memoize|Hash|Unique|Bitmap Heap Scan)$/

/**
 * Summarizes a plan in one line: how each table is read (node, index, rows), outermost first, with the partitions of a
 * table combined. `eventScans` lists the partitions of the event table that are read from end to end.
 */
export function summarizePlan(plan: PlanNode | undefined): { text: string; eventScans: string[] } {
  const steps = new Map<string, number>()
  const eventScans: string[] = []
  function visit(node: PlanNode): void {
    const kind = node['Node Type']
    const table = node['Relation Name']
    const loops = node['Actual Loops'] ?? 1
    const read = Math.round((node['Actual Rows'] ?? 0) * loops)
    const touched = read + Math.round((node['Rows Removed by Filter'] ?? 0) * loops)
    if (kind === 'Seq Scan' && table?.startsWith('subscriber_event') && touched > SMALL)
      eventScans.push(table)
    const index = node['Index Name']
    const on = index ?? table
    const isEmpty = kind === 'Seq Scan' && touched === 0
    if (on !== undefined && !SILENT.test(kind) && loops > 0 && !isEmpty) {
      const step = `${kind} ${withoutMonth(on)}`
      steps.set(step, (steps.get(step) ?? 0) + read)
    } else if (/Join|Nested Loop|Aggregate|Sort/.test(kind) && on === undefined) {
      const join = node['Join Type']
      steps.set(join === undefined || join === 'Inner' ? kind : `${kind} (${join})`, read)
    }
    for (const child of node.Plans ?? []) visit(child)
  }
  if (plan) visit(plan)
  const text = [...steps].map(([step, count]) => `${step} ${count.toLocaleString('en')}`).join(' ← ')
  return { text, eventScans }
}

function withoutMonth(name: string): string {
  return name.replace(/_(\d{4}_\d{2}|rest)(?=_|$)/, '')
}
