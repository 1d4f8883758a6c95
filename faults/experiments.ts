import type { Experiment } from './experiment.ts'
import { randomGraphs } from './g1-random-graphs.ts'
import { killedSender } from './r1-killed-sender.ts'
import { lostAnswers } from './r2-lost-answers.ts'
import { killedDatabase } from './r3-killed-database.ts'
import { killedParts } from './r3-killed-parts.ts'
import { killedEngine } from './r4-killed-engine.ts'
import { restartedApi } from './r5-restarted-api.ts'
import { lostDispatches } from './r6-lost-dispatches.ts'
import { unrulyServers } from './r7-unruly-servers.ts'
import { fullLanes } from './r8-full-lanes.ts'
import { pauses } from './r9-pauses.ts'
import { cancelOrDue } from './r10-cancel-or-due.ts'
import { timeZones } from './r11-time-zones.ts'
import { fastForwards } from './r12-fast-forwards.ts'
import { groupRaces } from './r13-group-races.ts'
import { replays } from './r14-replays.ts'
import { smtpAttacks } from './s4-smtp.ts'
import { headers } from './s5-headers.ts'
import { injection } from './s6-injection.ts'
import { tokens } from './s7-tokens.ts'
import { confirmations } from './s8-confirmations.ts'
import { wrongTokens } from './s9-wrong-tokens.ts'
import { oauthAttacks } from './s12-oauth.ts'

/** All experiments of `npm run faults`, in the order of docs/reliability.md. */
export const EXPERIMENTS: readonly Experiment[] = [
  killedSender,
  lostAnswers,
  killedDatabase,
  killedParts,
  killedEngine,
  restartedApi,
  lostDispatches,
  unrulyServers,
  fullLanes,
  pauses,
  cancelOrDue,
  timeZones,
  fastForwards,
  groupRaces,
  replays,
  randomGraphs,
  smtpAttacks,
  headers,
  injection,
  tokens,
  confirmations,
  wrongTokens,
  oauthAttacks,
]
