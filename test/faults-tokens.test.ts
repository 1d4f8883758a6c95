import { tokens } from '../faults/s7-tokens.ts'
import { wrongTokens } from '../faults/s9-wrong-tokens.ts'
import { oauthAttacks } from '../faults/s12-oauth.ts'
import { testSmall } from './helpers/experiment.ts'

testSmall([tokens, wrongTokens, oauthAttacks])
