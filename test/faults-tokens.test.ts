import { tokens } from '../faults/s7-tokens.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([tokens])
