import { killedEngine } from '../faults/r4-killed-engine.ts'
import { pauses } from '../faults/r9-pauses.ts'
import { fastForwards } from '../faults/r12-fast-forwards.ts'
import { replays } from '../faults/r14-replays.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([killedEngine, pauses, fastForwards, replays])
