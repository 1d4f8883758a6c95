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

const DOMAIN = Type.String({
  description: 'The id or host name of a sending domain; `list_domains` lists them.',
})

export const listDomains = defineTool({
  name: 'list_domains',
  title: 'List domains',
  description: 'Returns the sending domains with their status and the DNS records they need.',
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
    'Registers a sending domain, creates its DKIM key, and returns the DNS records to add. The records are checked repeatedly for 72 hours; `verify_domain` checks them at once. Email can be sent from the domain once its status is VERIFIED.',
  group: 'domains',
  effect: 'write',
  permission: 'domains',
  input: closed({ domain: Type.String({ description: 'The host name, such as example.com.' }) }),
  output: closed({ domain: Domain }),
  prepare: prepareDomain,
  handler: async (call, input, pair) => ({ domain: await create(call, input, pair) }),
})

export const getDomain = defineTool({
  name: 'get_domain',
  title: 'Get a domain',
  description: 'Returns one sending domain with its status and DNS records.',
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
    'Sets whether a domain may replace the domains of other senders while those are not VERIFIED, and in which order (`fallbackPriority`). Returns the domain.',
  group: 'domains',
  effect: 'write',
  permission: 'domains',
  listed: false,
  input: closed({
    domain: DOMAIN,
    fallbackPriority: Type.Optional(
      nullable(
        Type.Integer({
          minimum: 0,
          maximum: 1_000,
          description:
            'The position of this domain among the replacement domains; the lowest number is used first. Null means that it never replaces another domain.',
        }),
      ),
    ),
  }),
  output: closed({ domain: Domain }),
  handler: async (call, input) => ({ domain: await changeDomain(call, input) }),
})

export const getDomainDnsRecords = defineTool({
  name: 'get_domain_dns_records',
  title: 'Get the DNS records of a domain',
  description:
    'Returns the DNS records that a domain needs, each with its status, the values found at the last check, and how to repair it.',
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
    'Checks the DNS records of a domain now and returns what was found. While records are missing or wrong, the check is repeated for 72 hours.',
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
    'Creates a new DKIM key and returns its DNS record next to the current one. The new key is used for signing once its record is found. Keep the old record in DNS until it is no longer listed, seven days later.',
  group: 'domains',
  effect: 'write',
  permission: 'domains',
  input: closed({ domain: DOMAIN }),
  output: closed({ domain: Domain }),
  prepare: makeDkimPair,
  handler: async (call, input, pair) => ({ domain: await rotateKey(call, input, pair) }),
})
