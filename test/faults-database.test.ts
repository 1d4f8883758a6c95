import { killedDatabase } from '../faults/r3-killed-database.ts'
import { killedParts } from '../faults/r3-killed-parts.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([killedDatabase, killedParts])
