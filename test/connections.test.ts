import { createRequire } from 'node:module'
import { queryObjects } from 'node:v8'

import test from 'ava'
import { sql } from 'kysely'

import { execute, row } from '../src/database.ts'
import { testServices } from './helpers/database.ts'

test('connections that are lost inside transactions give their places back, and closing waits for none', async (t) => {
  const services = await testServices()
  const admin = await testServices()
  t.teardown(() => admin.close())
  for (let loss = 0; loss < 25; loss++) {
    const lost = services.orm.em.fork().transactional(async (em) => {
      const own = await row<{ pid: number }>(em, sql`select pg_backend_pid() as pid`)
      await execute(admin.orm.em.fork(), sql`select pg_terminate_backend(${own?.pid})`)
      for (;;) await execute(em, sql`select 1`)
    })
    await t.throwsAsync(lost)
  }
  t.deepEqual(await row(services.orm.em.fork(), sql`select 1 as alive`), { alive: 1 })
  await services.close()
})

test('a connection to Temporal that fails leaves nothing behind, however long Temporal is away', async (t) => {
  const services = await testServices({ TEMPORAL_ADDRESS: '127.0.0.1:9' })
  t.teardown(() => services.close())
  t.false(await services.temporal.isReachable())
  const sdk = createRequire(createRequire(import.meta.url).resolve('@temporalio/client'))
  const grpc = sdk('@grpc/grpc-js/build/src/internal-channel.js') as { InternalChannel: new () => unknown }
  t.is(queryObjects(grpc.InternalChannel, { format: 'count' }), 0)
})
