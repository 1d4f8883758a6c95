import { cancelOrDue } from '../faults/r10-cancel-or-due.ts'
import { timeZones } from '../faults/r11-time-zones.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([cancelOrDue, timeZones])
