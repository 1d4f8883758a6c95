import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Health } from '../../schema/deliverability.ts'
import { Domain } from '../../schema/domain.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readHealth } from '../domain/deliverability/health.ts'
import { resumeSending as resume, summarizeResuming } from '../domain/deliverability/resume.ts'

const DOMAIN = Type.String({ description: 'A domain of list_domains, by id or host name.' })

export const getDeliverabilityHealth = defineTool({
  name: 'get_deliverability_health',
  title: 'Get deliverability health',
  description:
    'Delivery, bounce, complaint and open rates over 1, 7 and 30 days against their lines, for each domain and each mailbox provider it writes to, with what stands out and how to repair it, and what has stopped. Without domain: all of them.',
  group: 'domains',
  effect: 'read',
  permission: 'domains',
  input: closed({ domain: Type.Optional(DOMAIN) }),
  output: closed({ health: Health }),
  handler: async (call, { domain }) => ({ health: await readHealth(call, domain) }),
})

export const resumeSending = defineTool({
  name: 'resume_sending',
  title: 'Resume sending',
  description:
    'Lets a domain send again that stopped by itself because of bounces or complaints; what waited goes on at once. Asks for a confirmation code and says how many emails wait.',
  group: 'domains',
  effect: 'impact',
  permission: 'domains',
  input: closed({ domain: DOMAIN }),
  output: closed({ domain: Domain }),
  summarize: (call, { domain }) => summarizeResuming(call, domain),
  handler: async (call, { domain }) => ({ domain: await resume(call, domain) }),
})
