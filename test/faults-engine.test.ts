import { restartedApi } from '../faults/r5-restarted-api.ts'
import { lostDispatches } from '../faults/r6-lost-dispatches.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([restartedApi, lostDispatches])
