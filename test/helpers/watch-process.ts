// A watch of its own, to be killed: DATABASE_URL says what it works on.
import { readConfig } from '../../src/config.ts'
import { createServices } from '../../src/services.ts'
import { startSegmentWatch } from '../../worker/segment-watch.ts'

startSegmentWatch(await createServices(readConfig(process.env), 'watcher'))
