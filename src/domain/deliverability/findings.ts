import {
  type HealthFinding,
  type HealthWindow,
  type Level,
  LEVELS,
  type SendingStop,
  STOP_REASONS,
  type StopReason,
  type Stream,
} from '../../../schema/deliverability.ts'
import type { DomainRow } from '../domains/domains.ts'
import { percent } from './stop-words.ts'
import { type Figures, LEAST_EMAILS, levelOf, rateOf, share, THRESHOLDS } from './thresholds.ts'

type Period = Figures & { days: number }

const CODES: Readonly<Record<StopReason, string>> = { BOUNCES: 'BOUNCE_RATE', COMPLAINTS: 'COMPLAINT_RATE' }
const VERBS: Readonly<Record<StopReason, string>> = {
  BOUNCES: 'bounced',
  COMPLAINTS: 'were reported as spam',
}
const REPAIRS: Readonly<Record<StopReason, string>> = {
  BOUNCES:
    'Find out where these addresses came from and stop using that source: send only to people who confirmed, and leave out those who have not opened anything for months.',
  COMPLAINTS:
    'Send only to people who asked for it and remember that they did, say in the first line who writes and why, and make unsubscribing easier than complaining.',
}
/** When less than this share of the usual open rate is opened, mail probably lands in the spam folder. */
const FEWER_OPENS = 1 / 3
const LEAST_OPENS = 0.05
const MANY_FAILURES = 0.05

/** Returns the findings about a domain, the worst first; at least one. */
export function ownFindings({
  domain,
  stops,
  sums,
}: {
  domain: DomainRow
  stops: readonly SendingStop[]
  sums: readonly (Period & { stream: Stream })[]
}): HealthFinding[] {
  const streams = [...Map.groupBy(sums, ({ stream }) => stream)]
  const found = [
    ...stops.map(({ message }) => ({
      level: 'STOP' as const,
      code: 'SENDING_STOPPED',
      message,
      repair: 'Repair what made it stop, then call resume_sending.',
    })),
    ...streams.flatMap(([stream, periods]) =>
      rateFindings(periods, `${stream.toLowerCase()} emails from ${domain.domain}`),
    ),
    ...streams.flatMap(([, periods]) => failureFindings(periods)),
    ...recordFindings(domain),
  ]
  const longest = sums.filter(({ days }) => days === 30)
  const emails = longest.reduce((sum, each) => sum + each.emails, 0)
  return inOrder(found, emails)
}

/** Returns the findings about a domain's email to one provider, the worst first; at least one. */
export function providerFindings(
  provider: string,
  {
    sums,
    opens: { here, everywhere },
  }: {
    sums: readonly Period[]
    opens: { here: HealthWindow | undefined; everywhere: HealthWindow | undefined }
  },
): HealthFinding[] {
  const found = rateFindings(sums, `emails to ${provider}`)
  const tracked = sums.at(-1)?.tracked ?? 0
  const [rate, usual] = [here?.openRate ?? null, everywhere?.openRate ?? null]
  if (rate !== null && usual !== null && usual >= LEAST_OPENS && tracked >= LEAST_EMAILS) {
    if (rate < usual * FEWER_OPENS) {
      found.push({
        level: 'WARN',
        code: 'LOW_OPENS',
        message: `${percent(rate)} of the email to ${provider} was opened within 30 days, and ${percent(usual)} of all: there it probably lands in the spam folder.`,
        repair: `Send for some weeks only to those at ${provider} who opened something lately, and look at the postmaster pages of ${provider}.`,
      })
    }
  }
  return inOrder(found, sums.at(-1)?.emails ?? 0)
}

/** Returns the worst level of findings. */
export function worstOf(findings: readonly HealthFinding[]): Level {
  return LEVELS.findLast((level) => findings.some((each) => each.level === level)) ?? 'OK'
}

/** Returns one finding per reason for the worst period; of equally bad periods the shortest, which is most recent. */
function rateFindings(periods: readonly Period[], what: string): HealthFinding[] {
  return STOP_REASONS.flatMap((reason) => {
    const bad = periods
      .toSorted((one, other) => one.days - other.days)
      .map((period) => ({ period, level: levelOf(period, reason) }))
    const worst = (['STOP', 'WARN'] as const)
      .map((level) => bad.find((each) => each.level === level))
      .find((each) => each !== undefined)
    return worst ? [rateFinding(worst, reason, what)] : []
  })
}

function rateFinding(
  { period, level }: { period: Period; level: Level },
  reason: StopReason,
  what: string,
): HealthFinding {
  const crossed = level === 'STOP' ? THRESHOLDS[reason].stop : THRESHOLDS[reason].warn
  const within = period.days === 1 ? 'a day' : `${period.days} days`
  return {
    level,
    code: CODES[reason],
    message: `${percent(rateOf(period, reason) ?? 0)} of ${period.emails} ${what} within ${within} ${VERBS[reason]}; the line is ${percent(crossed)}.`,
    repair: REPAIRS[reason],
  }
}

function failureFindings(periods: readonly Period[]): HealthFinding[] {
  const [period] = periods
    .toSorted((one, other) => one.days - other.days)
    .filter(({ emails, failed }) => emails >= LEAST_EMAILS && (share(failed, emails) ?? 0) >= MANY_FAILURES)
  if (!period) return []
  return [
    {
      level: 'WARN',
      code: 'FAILURES',
      message: `${period.failed} of ${period.emails} emails failed because the relay refused their sender.`,
      repair:
        'Read its answer with explain_delivery, and have the operator of the relay allow the domain, or use another sender.',
    },
  ]
}

function recordFindings({ domain, status, records, development }: DomainRow): HealthFinding[] {
  if (development) return []
  if (status !== 'VERIFIED') {
    return [
      {
        level: 'WARN',
        code: 'NOT_VERIFIED',
        message: `${domain} is ${status}, so nothing new is sent from it.`,
        repair:
          'Add or correct the records that get_domain_dns_records lists as not VERIFIED, then call verify_domain.',
      },
    ]
  }
  const dmarc = records.find(
    ({ purpose, status: found }) => purpose === 'DMARC' && (found === 'MISSING' || found === 'MISMATCH'),
  )
  if (!dmarc) return []
  return [
    {
      level: 'WARN',
      code: 'NO_DMARC',
      message: `${domain} has no valid DMARC policy, which large providers require of bulk senders.`,
      repair: dmarc.repair ?? `Add the TXT record ${dmarc.name} with the value: ${dmarc.value}`,
    },
  ]
}

function inOrder(found: readonly HealthFinding[], emails: number): HealthFinding[] {
  if (found.length === 0) return [fine(emails)]
  return found.toSorted((one, other) => LEVELS.indexOf(other.level) - LEVELS.indexOf(one.level))
}

function fine(emails: number): HealthFinding {
  const message =
    emails < LEAST_EMAILS
      ? `${emails} emails within 30 days are too few to judge; rates mean something from ${LEAST_EMAILS} on.`
      : `Nothing stands out among ${emails} emails within 30 days.`
  return { level: 'OK', code: 'NOTHING', message, repair: 'Nothing has to be done.' }
}
