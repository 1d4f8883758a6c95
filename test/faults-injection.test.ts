import { injection } from '../faults/s6-injection.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([injection])
