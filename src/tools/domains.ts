import Type from 'typebox'

import { closed, nullable } from '../../schema/define.ts'
import { Domain, DomainRecord } from '../../schema/domain.ts'
import { defineTool } from '../catalogue/tool.ts'
import { createDomain as create, prepareDomain } from '../domain/domains/create.ts'
import {
  findDomain,
  listDomains as readDomains,
  presentDomain,
  changeDomain,
} from '../domain/domains/domains.ts'
import { makeDkimPair } from '../domain/domains/keys.ts'
import { rotateKey } from '../domain/domains/rotate.ts'
import { requestVerification, settleVerification } from '../domain/domains/watch.ts'

const DOMAIN = Type.String({ description: 'A domain of list_domains, by id or host name.' })

export const listDomains = defineTool({
  name: 'list_domains',
  title: 'List domains',
  description: 'Lists the sending domains with their status and the DNS records they need.',
  group: 'domains',
  effect: 'read',
  permission: 'domains',
  input: closed({}),
  output: closed({ domains: Type.Array(Domain) }),
  handler: async (call) => ({ domains: await readDomains(call) }),
})

export const createDomain = defineTool({
  name: 'create_domain',
  title: 'Create a domain',
  description:
    'Registers a sending domain, makes its DKIM key, and answers the DNS records to add. Email can be sent from it once it is VERIFIED.',
  group: 'domains',
  effect: 'write',
  permission: 'domains',
  input: closed({ domain: Type.String({ description: 'A host name, such as example.com.' }) }),
  output: closed({ domain: Domain }),
  prepare: prepareDomain,
  handler: async (call, input, pair) => ({ domain: await create(call, input, pair) }),
})

export const getDomain = defineTool({
  name: 'get_domain',
  title: 'Get a domain',
  description: 'Reads one sending domain with its status and DNS records.',
  group: 'domains',
  effect: 'read',
  permission: 'domains',
  listed: false,
  input: closed({ domain: DOMAIN }),
  output: closed({ domain: Domain }),
  handler: async (call, { domain }) => ({ domain: presentDomain(await findDomain(call, domain)) }),
})

export const updateDomain = defineTool({
  name: 'update_domain',
  title: 'Update a domain',
  description:
    'Lets a domain stand in for those of other senders while they are not VERIFIED, in the order of fallbackPriority; null: never.',
  group: 'domains',
  effect: 'write',
  permission: 'domains',
  listed: false,
  input: closed({
    domain: DOMAIN,
    fallbackPriority: Type.Optional(
      nullable(Type.Integer({ minimum: 0, maximum: 1_000, description: 'The lowest first; null: never.' })),
    ),
  }),
  output: closed({ domain: Domain }),
  handler: async (call, input) => ({ domain: await changeDomain(call, input) }),
})

export const getDomainDnsRecords = defineTool({
  name: 'get_domain_dns_records',
  title: 'Get the DNS records of a domain',
  description:
    'Lists the DNS records that a domain needs, each with its status, what was found at the last check, and how to repair it.',
  group: 'domains',
  effect: 'read',
  permission: 'domains',
  input: closed({ domain: DOMAIN }),
  output: closed({ records: Type.Array(DomainRecord) }),
  handler: async (call, { domain }) => ({ records: (await findDomain(call, domain)).records }),
})

export const verifyDomain = defineTool({
  name: 'verify_domain',
  title: 'Verify a domain',
  description:
    'Looks at the DNS records of a domain now and answers what was found. While they are not right, they are looked at again for 72 hours.',
  group: 'domains',
  effect: 'write',
  permission: 'domains',
  input: closed({ domain: DOMAIN }),
  output: closed({ domain: Domain }),
  handler: async (call, { domain }) => ({ domain: await requestVerification(call, domain) }),
  settle: async (call, _input, { domain }) => ({ domain: await settleVerification(call, domain) }),
})

export const rotateDkimKey = defineTool({
  name: 'rotate_dkim_key',
  title: 'Rotate a DKIM key',
  description:
    'Creates a new DKIM key and answers its record next to the present one. The new key signs once its record is found; leave the old record in DNS until it is no longer listed, seven days later.',
  group: 'domains',
  effect: 'write',
  permission: 'domains',
  input: closed({ domain: DOMAIN }),
  output: closed({ domain: Domain }),
  prepare: makeDkimPair,
  handler: async (call, input, pair) => ({ domain: await rotateKey(call, input, pair) }),
})
