import { type RawBuilder, sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { rows } from '../../database.ts'
import { timestamp } from '../text.ts'
import { STATUS_WORDS } from './person.ts'

/** A recorded decision not to act. Ids are uuids. */
export type Decision = {
  action: string
  reason: string
  data: Record<string, unknown>
  runId: string | null
  stepId: string | null
  messageId: string | null
  at: string
}

/** How many decisions are read, the latest. */
const MOST = 100

/**
 * Returns decisions about a person that meet a condition on `decision d`, oldest first; null: those about no person.
 */
export async function readDecisions(
  { em, organization }: Call,
  subscriberId: string | null,
  condition: RawBuilder<boolean>,
): Promise<Decision[]> {
  const about = subscriberId === null ? sql`is null` : sql`= ${subscriberId}`
  const found = await rows<Decision>(
    em,
    sql`select d.action, d.reason, d.data, d.run_id as "runId", d.step_id as "stepId", d.message_id as "messageId",
        d.created_at as at
      from decision d where d.organization_id = ${organization.id} and d.subscriber_id ${about} and ${condition}
      order by d.id desc limit ${MOST}`,
  )
  return found.toReversed().map((decision) => ({ ...decision, at: timestamp(decision.at) }))
}

/** Whether a decision only postponed its action. */
export function isDeferral({ action }: Pick<Decision, 'action'>): boolean {
  return action === 'STEP_DEFERRED' || action === 'EMAIL_DEFERRED'
}

const CATEGORIES: Readonly<Record<string, string>> = {
  NO_SUCH_USER:
    'The mail server said that there is no such mailbox, so nothing more is sent to this address.',
  INTERNAL:
    'The mail server said for good that the address cannot be reached, so nothing more is sent to it.',
  MAILBOX_FULL: 'Their mailbox was full.',
  POLICY: 'The mail server refused the email by its policy.',
  CONTENT: 'The mail server refused what the email contains.',
  TRANSIENT: 'The mail server could not take the email for the time being.',
  SENDER_REFUSED: 'The mail server refused the sender.',
  CONNECTION_LOST: 'The connection to the mail server broke.',
  RELAY_UNREACHABLE: 'The mail server could not be reached.',
  CONTENT_UNREADABLE: 'The content of the email could not be read.',
}

const REASONS: Readonly<Record<string, string>> = {
  ...STATUS_WORDS,
  ...CATEGORIES,
  SUPPRESSED: 'Their address was on the suppression list.',
  SUBSCRIBER_DELETED: 'They had been deleted before the email could be written.',
  CAMPAIGN_ENDED: 'The campaign was ended before their turn came.',
  ARCHIVED: 'The workflow was archived.',
  RUN_ENDED: 'Their way through the workflow had ended.',
  PAUSED: 'The workflow was paused when its time came.',
  CAMPAIGN_PAUSED: 'The campaign was paused when its turn came.',
  SENDING_STOPPED: 'Sending from its domain was stopped when its turn came.',
  EXIT_STEP: 'Their way through the workflow had ended.',
  END: 'Their way through the workflow had ended.',
  GROUP_CONFLICT: 'Another workflow of its group took their place.',
  EXPIRED: 'What they waited for did not come in time.',
  EXIT_RULE: 'An exit rule of the workflow took them out.',
  GOAL: 'They had reached the goal of the workflow.',
  QUOTA_EXCEEDED: 'The emails of the month were used up.',
  LATE: 'It had become too late for this email.',
  ERROR: 'Their way through the workflow had failed.',
  ADDRESS_NOT_SENDABLE: 'Their address cannot be written to.',
  CONTENT_MISSING: 'The content of the email was gone.',
  RENDER_FAULT: 'The email could not be made from its content.',
  OUTCOME_REJECTED: 'The outcome of the email could not be stored.',
  MARK_REJECTED: 'The email could not be stored for sending.',
  THROTTLE: 'As many as may pass at a time had passed already.',
  SEND_WINDOW: 'Its hours of sending had not begun.',
  HOLDOUT: 'Chance put them into the holdout group, which the others are compared with.',
  MISSING: 'The date that the step waits for is missing.',
  PAST: 'The date that the step waits for was over.',
  NOT_FOUND: 'Something that the step refers to was deleted.',
  FILTER_REFERENCE_MISSING: 'A filter refers to something that was deleted.',
  CONDITIONS: 'They did not meet the conditions of the step.',
}

/** Returns the words for a decision. */
export function decisionWords(reason: string, data: Record<string, unknown> = {}): string {
  if (reason === 'EXIT_RULE' && typeof data['rule'] === 'string') {
    return `The exit rule “${data['rule']}” of the workflow took them out.`
  }
  if (reason === 'MANUAL') return removalWords(data)
  if (reason !== 'RETRIES_OVER') return REASONS[reason] ?? `The reason was ${reason}.`
  const last = typeof data['reason'] === 'string' ? (CATEGORIES[data['reason']] ?? '') : ''
  const tries = typeof data['attempts'] === 'number' ? ` after ${data['attempts']} tries` : ''
  return `The email was given up${tries}, because a day was over. ${last}`.trim()
}

function removalWords({ reason, by }: Record<string, unknown>): string {
  const isByRun = typeof by === 'string' && by.startsWith('run_')
  const words = isByRun
    ? 'Another workflow had taken them out of this one'
    : 'They had been taken out of the workflow by hand'
  return typeof reason === 'string' ? `${words}: “${reason}”.` : `${words}.`
}
