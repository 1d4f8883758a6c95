import type { NextAction } from './contract.ts'

/** What the Temporal UI shows of a run, in Markdown: where it stands, why and until when it waits, how it came there. */
export function currentDetails(action: NextAction): string {
  const until = action.nextAt === null ? '' : `\n\nnext look: ${new Date(action.nextAt).toISOString()}`
  const reason = action.exitReason === null ? '' : ` (${action.exitReason})`
  const steps = action.recentSteps.map((step) => `\n- ${step}`).join('')
  return `**${action.state}**${reason}: ${action.label}${until}${steps && `\n\nlast steps:${steps}`}`
}
