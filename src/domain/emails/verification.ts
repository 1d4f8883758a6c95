import { sql } from 'kysely'

import type { EmailVerification } from '../../../schema/email-verification.ts'
import type { Call, Outside } from '../../catalogue/tool.ts'
import { row } from '../../database.ts'
import type { Dns } from '../../ports/dns.ts'
import { asciiDomain, emailFault } from '../addresses.ts'
import { isDisposable } from './disposable-domains.ts'

type Checks = EmailVerification['checks']

/** Role addresses, from RFC 2142 and common use: several people read them, or nobody. */
const ROLES = new Set(
  `abuse accounting accounts admin administrator all billing bounce bounces careers compliance contact customerservice
  devnull dns donotreply everyone finance ftp hello help helpdesk hostmaster hr info inoc invoices it jobs legal list
  list-request mail mailer-daemon marketing media news noc no-reply nobody noreply notifications office orders
  payments postmaster press privacy recruiting root sales security service spam staff subscribe support sysadmin team
  tech undisclosed-recipients unsubscribe usenet uucp webmaster www`
    .split(/\s+/)
    .filter(Boolean),
)

/** Asks DNS whether the domain of an address accepts email; null when it cannot be known. */
export async function lookUpMailServer(
  { services }: Outside,
  { email }: { email: string },
): Promise<boolean | null> {
  const domain = domainOf(email)
  return domain === null ? null : await takesMail(services.dns, domain)
}

/** Judges an address by its syntax, its domain and the organization's suppressions; sends no email. */
export async function verifyEmailAddress(
  call: Call,
  { email }: { email: string },
  mx: boolean | null,
): Promise<EmailVerification> {
  const domain = domainOf(email)
  const checks: Checks = {
    syntax: domain !== null,
    mx,
    disposable: domain !== null && isDisposable(domain),
    role: domain !== null && isRole(email),
    suppressed: domain !== null && (await isRefused(call, email)),
  }
  return { email, ...verdict(checks), checks }
}

function verdict({
  syntax,
  mx,
  disposable,
  role,
  suppressed,
}: Checks): Pick<EmailVerification, 'status' | 'reason'> {
  if (!syntax) return { status: 'invalid', reason: 'invalid_syntax' }
  if (mx === false) return { status: 'invalid', reason: 'no_mail_server' }
  if (suppressed) return { status: 'invalid', reason: 'suppressed' }
  if (disposable) return { status: 'risky', reason: 'disposable' }
  if (role) return { status: 'risky', reason: 'role' }
  return mx === null ? { status: 'risky', reason: 'dns_unavailable' } : { status: 'valid', reason: null }
}

/** Returns the ASCII domain of an address; null when the address is invalid. */
function domainOf(email: string): string | null {
  return emailFault(email) === null ? asciiDomain(email.slice(email.lastIndexOf('@') + 1)) : null
}

/** Judges by the MX records (a null MX accepts none, RFC 7505); without any, by the address (RFC 5321 5.1). */
async function takesMail(dns: Dns, domain: string): Promise<boolean | null> {
  const answers = await dns.lookUp(domain, 'MX')
  const heard = answers.flatMap((answer) => ('records' in answer ? [answer.records] : []))
  const exchanges = heard.flat().flatMap((record) => (record.type === 'MX' ? [record.exchange] : []))
  if (exchanges.length > 0) return exchanges.some((exchange) => exchange !== '' && exchange !== '.')
  return heard.length === 0 ? null : await dns.hasAddress(domain)
}

function isRole(email: string): boolean {
  const [name = ''] = email.slice(0, email.lastIndexOf('@')).toLowerCase().split('+')
  return ROLES.has(name)
}

/** Whether this organization sends no email to the address, not even transactional email. */
async function isRefused({ em, organization }: Call, email: string): Promise<boolean> {
  const found = await row(
    em,
    sql`select from suppression where organization_id = ${organization.id}
        and email_key = any(suppression_keys(${organization.id}, ${email}))
      union all
      select from subscriber where organization_id = ${organization.id} and email_key = lower(${email})
        and consent_refusal(false, status, bounce_category) is not null
      limit 1`,
  )
  return found !== null
}
