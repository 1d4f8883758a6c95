import type {
  CampaignSendProgress,
  DomainChecked,
  DomainPace,
  Fired,
  ImportProgress,
  NextAction,
  IntakeProgress,
} from './contract.ts'

/**
 * Returns the Markdown that the Temporal UI shows of a run: its state, why and until when it waits, and its last steps.
 */
export function currentDetails(action: NextAction): string {
  const reason = action.exitReason === null ? '' : ` (${action.exitReason})`
  // The UI shows only a few lines, so the steps share one.
  const steps = action.recentSteps.length === 0 ? '' : `\n\nlast steps: ${action.recentSteps.join('; ')}`
  return `**${action.state}**${reason}: ${action.error ?? action.label}${steps}`
}

/** Returns the text of an import for the Temporal UI: "**RUNNING**: 412,000 of about 1,000,000 rows, 3 rejected". */
export function importDetails({ state, rows, expectedRows, rejected, error }: ImportProgress): string {
  const of = state === 'RUNNING' ? ` of about ${grouped(expectedRows)}` : ''
  const reason = error === null ? '' : `\n\n${error}`
  return `**${state}**: ${grouped(rows)}${of} rows, ${grouped(rejected)} rejected${reason}`
}

/**
 * Returns the text of a send for the Temporal UI: "**DELIVERING**: 412,000 of 1,000,000, 950 a second, until about …".
 */
export function campaignDetails(progress: CampaignSendProgress): string {
  const { stage, label, total, done, perSecond, expectedEnd, error } = progress
  const counts = stage === 'SCHEDULED' ? '' : `: ${grouped(done)} of ${grouped(total)}`
  const rate = perSecond === null ? '' : `, ${grouped(perSecond)} a second`
  const end = expectedEnd === null ? '' : `, until about ${new Date(expectedEnd).toISOString()}`
  return `**${stage}**${counts}${rate}${end}\n\n${error ?? label}`
}

/** The minutes between the first checks, because users who have just added their records want a quick answer. */
const FIRST_POLLS = [1, 2, 5, 15]

/** Returns the minutes until the next check of a domain, after `polls` checks since a user last asked for one. */
export function domainWaitMinutes(pace: DomainPace, polls: number): number {
  return pace === 'DAILY' ? 24 * 60 : (FIRST_POLLS[polls] ?? 60)
}

/** Returns the text of a domain for the Temporal UI: "**VERIFYING**" and a line for each record. */
export function domainDetails({ status, records }: DomainChecked): string {
  return `**${status}**${records.map((record) => `\n- ${record}`).join('')}`
}

/** Returns the text of an intake for the Temporal UI: "**RUNNING**: 12,000 of 100,000 people, 11,900 let in". */
export function intakeDetails({ state, looked, expected, entered, error }: IntakeProgress): string {
  const reason = error === null ? '' : `\n\n${error}`
  return `**${state}**: ${grouped(looked)} of ${grouped(expected)} people, ${grouped(entered)} let in${reason}`
}

/**
 * Returns the text of a firing for the Temporal UI: "**FIRED**: 12 people were due up to 2026-05-01T07:00:00.000Z,
 * intake/…".
 */
export function firedDetails({ state, until, expected, intake }: Fired): string {
  const upTo = until === null ? '' : `: ${grouped(expected)} people were due up to ${until}`
  return `**${state}**${upTo}${intake === null ? '' : `, ${intake}`}`
}

/** Formats 1000000 as "1,000,000". Does not use Intl, whose data may differ between a run and its replay. */
function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, ',')
}
