// Runs the segment watch as a separate process that tests can kill. DATABASE_URL names its database.
import { readConfig } from '../../src/config.ts'
import { createServices } from '../../src/services.ts'
import { startSegmentWatch } from '../../worker/segment-watch.ts'

startSegmentWatch(await createServices(readConfig(process.env), 'watcher'))
