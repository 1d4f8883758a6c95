import Type from 'typebox'

import { closed } from '../../schema/define.ts'
import { Health } from '../../schema/deliverability.ts'
import { Domain } from '../../schema/domain.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readHealth } from '../domain/deliverability/health.ts'
import { resumeSending as resume, summarizeResuming } from '../domain/deliverability/resume.ts'

const DOMAIN = Type.String({
  description: 'The id or host name of a sending domain; `list_domains` lists them.',
})

export const getDeliverabilityHealth = defineTool({
  name: 'get_deliverability_health',
  title: 'Get deliverability health',
  description:
    'Returns the rates of delivery, bounces, complaints and opens in the last 1, 7 and 30 days with their thresholds, for each sending domain and for each mailbox provider it sends to. Also returns the problems found, how to repair each, and which sending has been stopped. Covers all domains unless `domain` is given.',
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
    'Lets a domain send again after its sending was stopped automatically because of bounces or complaints. Waiting emails are sent at once. Requires a confirmation code; the first answer says how many emails are waiting.',
  group: 'domains',
  effect: 'impact',
  permission: 'domains',
  input: closed({ domain: DOMAIN }),
  output: closed({ domain: Domain }),
  summarize: (call, { domain }) => summarizeResuming(call, domain),
  handler: async (call, { domain }) => ({ domain: await resume(call, domain) }),
})
