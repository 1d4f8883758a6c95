import { InboundReport } from '../../schema/report.ts'
import { refuseFaults } from '../catalogue/failure.ts'
import { schemaFaults } from '../catalogue/schema-faults.ts'
import { unitOfWork } from '../catalogue/unit-of-work.ts'
import { bounceVerdict } from '../delivery/replies.ts'
import { REPORTER, takeReport } from '../domain/emails/reports.ts'
import type { Services } from '../services.ts'

/** The largest report in bytes, as sent by the inbound listener. */
export const REPORT_BODY_BYTES = 500_000

/**
 * Takes a report from the inbound listener, which knows the email from a signed address. The report is stored when this
 * resolves; a repeated one is recognized (`isNew` is false). Throws when the report is malformed or its email does not
 * exist.
 */
export async function takeInboundReport(services: Services, body: unknown): Promise<{ isNew: boolean }> {
  const report = readReport(body)
  const { organizationId, status, kind, diagnostic } = report
  const isNew = await unitOfWork(services, { organizationId, actor: REPORTER }, (call) =>
    takeReport(call, {
      ...report,
      category: kind === 'BOUNCE' ? bounceVerdict(status ?? '5.0.0', diagnostic ?? '') : null,
      fingerprint: Buffer.from(report.fingerprint, 'hex'),
      raw: Buffer.from(report.raw, 'base64'),
    }),
  )
  return { isNew }
}

function readReport(body: unknown): InboundReport {
  const faults = schemaFaults(InboundReport, body)
  if (faults.length > 0) refuseFaults(faults, 'The report')
  return body as InboundReport
}
