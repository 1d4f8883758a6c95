import { openCampaign } from './campaign.ts'
import { atMost, defineExperiment, is } from './experiment.ts'
import { compare } from './oracle.ts'

/**
 * The relay accepts an email but its answer is lost: the email must be sent again and be recorded as possibly repeated.
 */
export const lostAnswers = defineExperiment({
  id: 'R2',
  title: 'the sink takes email and drops the connection before its 250',
  sizes: {
    small: { recipients: 400, share: 0.05, connections: 4 },
    full: { recipients: 10_000, share: 0.01, connections: 8 },
  },
  async run(lab, { recipients, share, connections }) {
    const dropped: string[] = []
    const campaign = await openCampaign(lab, {
      recipients,
      behaviour: {
        onMessage: ({ recipient }) => {
          if (lab.random() >= share) return 'accept'
          dropped.push(recipient)
          return 'drop'
        },
      },
    })
    await campaign.startHere(connections)
    await campaign.schedule()
    const over = await campaign.over(600_000)
    const { figures, repeats, uncounted, claims } = await compare(campaign)
    return {
      injected: { 'taken without an answer': dropped.length },
      seen: figures,
      claims: [
        is('the campaign is SENT', over.status, 'SENT'),
        is('recipients without an outcome when it was SENT', over.open, 0),
        ...claims,
        atMost('repeated, for the answers that were lost', repeats.length, dropped.length),
        is('repeated and not counted as possibly so', uncounted, 0),
      ],
    }
  },
})
