import type { DomainRecord } from '../../../schema/domain.ts'
import type { Services } from '../../services.ts'

/** A DNS record as it must be published. */
export type NeededRecord = Pick<DomainRecord, 'name' | 'type' | 'value' | 'priority' | 'purpose'>

/** The facts that the records of a domain are made from. */
export type DomainFacts = {
  domain: string
  ownershipToken: string
  keys: readonly { selector: string; publicKey: string }[]
}

/** The values of the installation that the records of every domain contain. */
export type DnsFacts = Pick<Services['config']['dns'], 'bounceHost' | 'spfMechanisms'>

/** The subdomain that receives bounces. Its MX and SPF are ours; those of the domain itself stay unchanged. */
export const RETURN_LABEL = 'send'
const MX_PRIORITY = 10

/** Returns the DNS records of a domain: ownership, DKIM keys, return path and DMARC (decisions, section 8). */
export function neededRecords(
  { domain, ownershipToken, keys }: DomainFacts,
  facts: DnsFacts,
): NeededRecord[] {
  const returnPath = `${RETURN_LABEL}.${domain}`
  return [
    {
      name: `_postloom.${domain}`,
      type: 'TXT',
      value: `postloom-verification=${ownershipToken}`,
      purpose: 'OWNERSHIP',
    },
    ...keys.map(({ selector, publicKey }): NeededRecord => ({
      name: dkimName(selector, domain),
      type: 'TXT',
      value: `v=DKIM1; k=rsa; p=${publicKey}`,
      purpose: 'DKIM',
    })),
    {
      name: returnPath,
      type: 'MX',
      value: facts.bounceHost,
      priority: MX_PRIORITY,
      purpose: 'MAIL_FROM_MX',
    },
    {
      name: returnPath,
      type: 'TXT',
      value: `v=spf1 ${facts.spfMechanisms.join(' ')} ~all`,
      purpose: 'MAIL_FROM_SPF',
    },
    { name: `_dmarc.${domain}`, type: 'TXT', value: 'v=DMARC1; p=none;', purpose: 'DMARC' },
  ]
}

/** Returns the name at which a selector's key is published (RFC 6376 3.6.2.1). */
export function dkimName(selector: string, domain: string): string {
  return `${selector}._domainkey.${domain}`
}

/** Returns needed records with the status from the last check; new records are PENDING. */
export function withStatuses(
  needed: readonly NeededRecord[],
  known: readonly DomainRecord[],
): DomainRecord[] {
  return needed.map((record) => {
    const before = known.find(({ name, purpose, value }) => {
      return name === record.name && purpose === record.purpose && value === record.value
    })
    return before ?? { ...record, status: 'PENDING', checkedAt: null }
  })
}
