import { smtpAttacks } from '../faults/s4-smtp.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([smtpAttacks])
