import type {
  CampaignSendProgress,
  DomainChecked,
  DomainPace,
  Fired,
  ImportProgress,
  NextAction,
  IntakeProgress,
} from './contract.ts'

/** What the Temporal UI shows of a run, in Markdown: where it stands, why and until when it waits, how it came there. */
export function currentDetails(action: NextAction): string {
  const reason = action.exitReason === null ? '' : ` (${action.exitReason})`
  // The UI shows a few lines of it.
  const steps = action.recentSteps.length === 0 ? '' : `\n\nlast steps: ${action.recentSteps.join('; ')}`
  return `**${action.state}**${reason}: ${action.error ?? action.label}${steps}`
}

/** What the Temporal UI shows of an import: "**RUNNING**: 412,000 of about 1,000,000 rows, 3 rejected". */
export function importDetails({ state, rows, expectedRows, rejected, error }: ImportProgress): string {
  const of = state === 'RUNNING' ? ` of about ${grouped(expectedRows)}` : ''
  const reason = error === null ? '' : `\n\n${error}`
  return `**${state}**: ${grouped(rows)}${of} rows, ${grouped(rejected)} rejected${reason}`
}

/** What the Temporal UI shows of a send: "**DELIVERING**: 412,000 of 1,000,000, 950 a second, until about …". */
export function campaignDetails(progress: CampaignSendProgress): string {
  const { stage, label, total, done, perSecond, expectedEnd, error } = progress
  const counts = stage === 'SCHEDULED' ? '' : `: ${grouped(done)} of ${grouped(total)}`
  const rate = perSecond === null ? '' : `, ${grouped(perSecond)} a second`
  const end = expectedEnd === null ? '' : `, until about ${new Date(expectedEnd).toISOString()}`
  return `**${stage}**${counts}${rate}${end}\n\n${error ?? label}`
}

/** People who have just added their records look often; then an hour is soon enough. */
const FIRST_POLLS = [1, 2, 5, 15]

/** How many minutes until a domain is looked at again, after so many looks since somebody asked. */
export function domainWaitMinutes(pace: DomainPace, polls: number): number {
  return pace === 'DAILY' ? 24 * 60 : (FIRST_POLLS[polls] ?? 60)
}

/** What the Temporal UI shows of a domain: "**VERIFYING**" and a line for each record. */
export function domainDetails({ status, records }: DomainChecked): string {
  return `**${status}**${records.map((record) => `\n- ${record}`).join('')}`
}

/** What the Temporal UI shows of an intake: "**RUNNING**: 12,000 of 100,000 people, 11,900 let in". */
export function intakeDetails({ state, looked, expected, entered, error }: IntakeProgress): string {
  const reason = error === null ? '' : `\n\n${error}`
  return `**${state}**: ${grouped(looked)} of ${grouped(expected)} people, ${grouped(entered)} let in${reason}`
}

/** What the Temporal UI shows of a firing: "**FIRED**: 12 people were due up to 2026-05-01T07:00:00.000Z, intake/…". */
export function firedDetails({ state, until, expected, intake }: Fired): string {
  const upTo = until === null ? '' : `: ${grouped(expected)} people were due up to ${until}`
  return `**${state}**${upTo}${intake === null ? '' : `, ${intake}`}`
}

/** 1000000 as "1,000,000": without Intl, whose data may differ between a run and its replay. */
function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, ',')
}
