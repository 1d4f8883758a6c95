import { endProcess } from '../test/helpers/child.ts'
import { eventually } from '../test/helpers/eventually.ts'
import { openCampaign } from './campaign.ts'
import { atMost, defineExperiment, is } from './experiment.ts'
import { compare } from './oracle.ts'

/**
 * Kills the sender with SIGKILL at any point: emails that were handed over but not recorded are sent again, and no
 * others.
 */
export const killedSender = defineExperiment({
  id: 'R1',
  title: 'kill -9 the sender in the middle of a campaign',
  sizes: {
    small: { recipients: 500, kills: 4, connections: 4 },
    full: { recipients: 10_000, kills: 20, connections: 8 },
  },
  async run(lab, { recipients, kills, connections }) {
    const campaign = await openCampaign(lab, {
      recipients,
      behaviour: { onMessage: () => ({ afterMs: 10, reply: 'accept' }) },
    })
    const { sink } = campaign
    let worker = campaign.startWorker(connections)
    await campaign.schedule()
    // The first kill happens between the due time and the first email, the others while emails are sent.
    const isSending = async () => (await campaign.look()).status === 'SENDING'
    await eventually('the campaign to begin', isSending, { withinMs: 60_000 })
    /** The last connection of each killed worker. */
    const lives: number[] = []
    let late = 0
    for (let kill = 0; kill < kills; kill++) {
      const after = kill === 0 ? 0 : Math.floor(((kill - 1 + lab.random()) * recipients) / kills)
      const reached = () => sink.journal.length >= after
      await eventually(`${after} emails`, reached, { withinMs: 120_000, everyMs: 5 })
      if (!(await isSending())) late += 1
      await endProcess(worker)
      lives.push(sink.connections.total)
      lab.say(`kill ${kill + 1} of ${kills} after ${sink.journal.length} emails`)
      worker = campaign.startWorker(connections)
    }
    const over = await campaign.over(600_000)
    const { figures, repeats, uncounted, claims } = await compare(campaign)
    const perKill = lives.map((last, kill) => {
      const first = lives[kill - 1] ?? 0
      return repeats.filter(({ connection }) => connection > first && connection <= last).length
    })
    return {
      injected: { 'kill -9': kills },
      seen: { ...figures, 'most repeated after one kill': Math.max(...perKill) },
      claims: [
        is('every kill met a campaign that was being sent', late, 0),
        is('the campaign is SENT', over.status, 'SENT'),
        is('recipients without an outcome when it was SENT', over.open, 0),
        ...claims,
        atMost('repeated after one kill, for its open connections', Math.max(...perKill), connections),
        is('repetitions that no kill explains', repeats.length - sum(perKill), 0),
        is('repeated and not counted as possibly so', uncounted, 0),
      ],
    }
  },
})

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
