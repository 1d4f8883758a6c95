import { groupRaces } from '../faults/r13-group-races.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([groupRaces])
