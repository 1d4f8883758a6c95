import { type RawBuilder, sql } from 'kysely'

import { startImport } from '../../src/domain/imports/records.ts'
import { receiveFile } from '../../src/domain/imports/upload.ts'
import { importWorkflowId, SEGMENT_REFRESH, taskQueue } from '../../temporal/contract.ts'
import { cancelWorkflow, holding, untilDoing } from './slow-work.ts'
import type { Studio } from './studio.ts'

/** Imports and a segment refresh whose histories are recorded. Each function starts one and returns its workflow id. */
export const BACKGROUND_SCENES: Record<string, (studio: Studio) => Promise<string>> = {
  import: (studio) => importReaders(studio, 1),
  'import-canceled': async (studio) => {
    const { services } = studio
    return await holding(services, await lockReader(studio, 0), async () => {
      const workflowId = await importReaders(studio, 1)
      await untilDoing(services, workflowId, 'applyImport')
      await cancelWorkflow(services, workflowId)
      await untilDoing(services, workflowId, 'cancelImport')
      return workflowId
    })
  },
  'segment-refresh': async ({ services }) => {
    const client = await services.temporal.client()
    const { workflowId } = await client.workflow.start(SEGMENT_REFRESH, {
      taskQueue: taskQueue(services.config.temporal.taskQueue, 'background'),
      workflowId: 'segments/refresh/histories',
    })
    return workflowId
  },
}

/** Imports a file with readers 0 to `count` - 1 and returns the workflow id. */
export async function importReaders({ services, tenant }: Studio, count: number): Promise<string> {
  const lines = ['email', ...Array.from({ length: count }, (_, number) => emailOf(number)), '']
  const kept = await tenant.within(({ organization, actor }) =>
    receiveFile(
      { services, organization, actor },
      { resubscribe: false, triggerWorkflows: false },
      once(Buffer.from(lines.join('\n'))),
    ),
  )
  const { id } = await tenant.within((call) => startImport(call, kept))
  return importWorkflowId(id)
}

/** Creates the reader with this number and returns the SQL statement that locks its row. */
export async function lockReader({ tenant }: Studio, number: number): Promise<RawBuilder<unknown>> {
  const id = await tenant.subscribe(emailOf(number))
  return sql`select 1 from subscriber where organization_id = ${tenant.id} and id = ${id} for update`
}

function emailOf(number: number): string {
  return `imported${String(number).padStart(4, '0')}@reader.example`
}

async function* once(content: Buffer): AsyncIterable<Buffer> {
  yield await Promise.resolve(content)
}
