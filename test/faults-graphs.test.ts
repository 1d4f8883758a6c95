import { randomGraphs } from '../faults/g1-random-graphs.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([randomGraphs])
