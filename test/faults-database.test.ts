import { killedDatabase } from '../faults/r3-killed-database.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([killedDatabase])
