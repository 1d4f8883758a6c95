// Downloads a Temporal server with the means of the Temporal SDK: it starts one, which fetches the binary
// into the directory given. A process of its own, because it needs the packages.
import { TestWorkflowEnvironment } from '@temporalio/testing'

const [, , downloadDir, version] = process.argv
const environment = await TestWorkflowEnvironment.createLocal({
  server: {
    executable: { type: 'cached-download', downloadDir, version },
    log: { format: 'json', level: 'error' },
  },
})
await environment.teardown()
process.exit(0)
