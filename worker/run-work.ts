import { Failure } from '../src/catalogue/failure.ts'
import { unitOfWork } from '../src/catalogue/unit-of-work.ts'
import { type ArchiveWork, cancelPage } from '../src/domain/automations/runs/archive.ts'
import { noteRefusal, performRunWork, type RunWork } from '../src/domain/automations/runs/run-work.ts'
import { type OutboxRow, takeWork } from '../src/domain/outbox.ts'
import { encodeId } from '../src/ids.ts'
import type { Services } from '../src/services.ts'

/** Performs work from the outbox exactly once: the row is taken in the same transaction. */
export async function performWork(services: Services, row: OutboxRow): Promise<void> {
  // src/domain wrote this payload for a step or an archiving; the table does not keep its type.
  const work = row.payload as RunWork | ArchiveWork
  if (work.work !== 'ARCHIVE') return await performAsked(services, row, work)
  const scope = { organizationId: row.organizationId, actor: work.by }
  await unitOfWork(services, scope, async (call) => {
    if (await takeWork(call, row.id)) await cancelPage(call, work)
  })
}

/** Performs what a run asked of another workflow. A refusal is a result too, which `noteRefusal` records. */
async function performAsked(
  services: Services,
  { organizationId, id }: OutboxRow,
  work: RunWork,
): Promise<void> {
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
