import { killedSender } from '../faults/r1-killed-sender.ts'
import { lostAnswers } from '../faults/r2-lost-answers.ts'
import { unrulyServers } from '../faults/r7-unruly-servers.ts'
import { fullLanes } from '../faults/r8-full-lanes.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([killedSender, lostAnswers, unrulyServers, fullLanes])
