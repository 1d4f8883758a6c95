import { tokens } from '../faults/s7-tokens.ts'
import { confirmations } from '../faults/s8-confirmations.ts'
import { wrongTokens } from '../faults/s9-wrong-tokens.ts'
import { oauthAttacks } from '../faults/s12-oauth.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([tokens, confirmations, wrongTokens, oauthAttacks])
