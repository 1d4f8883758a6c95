import { readConfig } from '../../src/config.ts'
import { applyImport } from '../../src/domain/imports/run.ts'
import { createServices } from '../../src/services.ts'
import { UNFOLLOWED } from './control.ts'

/**
 * `node test/helpers/import-process.ts ORGANIZATION IMPORT`: applies an import as the activity does, in a process that
 * tests can kill.
 */
const [organizationId = '', importId = ''] = process.argv.slice(2)
const services = await createServices(readConfig(process.env), 'import')
console.log('started')
for (;;) {
  const { state } = await applyImport(services, { organizationId, importId }, UNFOLLOWED)
  if (state !== 'RUNNING') break
}
await services.close()
