import { Failure } from '../src/catalogue/failure.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { noteRefusal, performRunWork, type RunWork } from '../src/domain/automations/runs/run-work.ts'
import { type OutboxRow, takeWork } from '../src/domain/outbox.ts'
import { encodeId } from '../src/ids.ts'
import type { Services } from '../src/services.ts'

/**
 * Does what a run asked of another workflow, once: the row is taken in the same transaction. A refusal is an answer
 * too; it stands in a ledger.
 */
export async function performWork(services: Services, row: OutboxRow): Promise<void> {
  const { organizationId, id } = row
  // The step wrote it (src/domain); the type cannot travel through the table.
  const work = row.payload as RunWork
  const actor = {
    kind: 'run' as const,
    id: encodeId('run', work.runId),
    name: 'workflow run',
    depth: work.depth,
  }
  try {
    await unitOfWork(services, { organizationId, actor }, async (call) => {
      if (await takeWork(call, id)) await performRunWork(call, work)
    })
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    await unitOfWork(services, { organizationId, actor }, async (call) => {
      if (await takeWork(call, id)) await noteRefusal(call, work, error)
    })
  }
}
