import { headers } from '../faults/s5-headers.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([headers])
