import { sql } from 'kysely'

import { PERMISSIONS } from '../schema/values.ts'
import { hashToken, isWellFormedAdminKey, isWellFormedToken } from './catalogue/tokens.ts'
import type { Config } from './config.ts'
import { array, type EntityManager, execute, openDatabase, row } from './database.ts'
import { findSigningKey, insertSigningKey, makeDkimPair } from './domain/domains/keys.ts'
import { createAdminKey } from './domain/organizations/admin-keys.ts'
import { ensureOrganization } from './domain/organizations/organizations.ts'
import { insertToken } from './domain/organizations/tokens.ts'
import { newId } from './ids.ts'

const SLUG = 'development'
// RFC 2606 reserves .test, so this sending domain never belongs to anybody.
const DOMAIN = 'postloom.test'
const SEED_LOCK = 7_305_002

/** The keys of the development organization, in plain text; only their hashes are stored. */
export type DevelopmentKeys = { apiToken: string; adminKey: string }

/**
 * Creates what a developer needs to send a first email: an organization on the largest plan, a sending domain that
 * counts as verified and signs its mail, a default sender, an API token with every permission and an admin key. The
 * keys in `keep` are kept while they are valid. Safe to repeat and in several processes at once.
 */
export async function seedDevelopment(
  config: Pick<Config, 'databaseUrl' | 'encryptionKey'>,
  keep: Partial<Record<keyof DevelopmentKeys, string | undefined>> = {},
): Promise<DevelopmentKeys> {
  const orm = await openDatabase(config.databaseUrl, { poolSize: 2, applicationName: 'postloom seed' })
  try {
    return await orm.em.fork().transactional(async (em) => {
      await execute(em, sql`select pg_advisory_xact_lock(${SEED_LOCK})`)
      const organizationId = await seedOrganization(em)
      await seedSender(em, organizationId)
      await seedKey(em, organizationId, config.encryptionKey)
      return {
        apiToken:
          (await keepToken(em, organizationId, keep.apiToken)) ?? (await addToken(em, organizationId)),
        adminKey: (await keepAdminKey(em, keep.adminKey)) ?? (await createAdminKey(em, 'Development')).key,
      }
    })
  } finally {
    await orm.close()
  }
}

async function seedOrganization(em: EntityManager): Promise<string> {
  const { organizationId } = await ensureOrganization(em, {
    name: 'Development',
    slug: SLUG,
    email: `hello@${DOMAIN}`,
    plan: 'ENTERPRISE',
    verified: true,
  })
  return organizationId
}

async function seedSender(em: EntityManager, organizationId: string): Promise<void> {
  await execute(
    em,
    sql`insert into domain (id, organization_id, domain, status, development)
      values (${newId()}, ${organizationId}, ${DOMAIN}, 'VERIFIED', true)
      on conflict (organization_id, domain) do nothing`,
  )
  await execute(
    em,
    sql`insert into sender (id, organization_id, domain_id, name, email, is_default)
      select ${newId()}, domain.organization_id, domain.id, 'Postloom', ${`hello@${DOMAIN}`},
        not exists (select from sender where organization_id = ${organizationId} and is_default)
      from domain where domain.organization_id = ${organizationId} and domain.domain = ${DOMAIN}
      on conflict (organization_id, email_key) do nothing`,
  )
}

/** Creates the DKIM key. One that was encrypted with another encryption key cannot be read any more and is replaced. */
async function seedKey(em: EntityManager, organizationId: string, encryptionKey: Buffer): Promise<void> {
  const kept = await findSigningKey(em, encryptionKey, organizationId, DOMAIN).catch(() => null)
  if (kept) return
  const domain = await row<{ id: string }>(
    em,
    sql`select id from domain where organization_id = ${organizationId} and domain = ${DOMAIN}`,
  )
  if (!domain) throw new Error('the development domain was not made')
  await execute(
    em,
    sql`delete from dkim_key where organization_id = ${organizationId} and domain_id = ${domain.id}`,
  )
  const owner = { organizationId, domainId: domain.id }
  await insertSigningKey(em, encryptionKey, owner, await makeDkimPair())
}

async function keepToken(
  em: EntityManager,
  organizationId: string,
  token: string | undefined,
): Promise<string | null> {
  if (token === undefined || !isWellFormedToken(token)) return null
  const found = await row(
    em,
    sql`select id from api_token where organization_id = ${organizationId} and token_hash = ${hashToken(token)}
      and revoked_at is null and (expires_at is null or expires_at > now())
      and permissions @> ${array(PERMISSIONS, 'text')}`,
  )
  return found ? token : null
}

async function addToken(em: EntityManager, organizationId: string): Promise<string> {
  const { token } = await insertToken(em, organizationId, { name: 'Development', permissions: PERMISSIONS })
  return token
}

async function keepAdminKey(em: EntityManager, key: string | undefined): Promise<string | null> {
  if (key === undefined || !isWellFormedAdminKey(key)) return null
  const found = await row(
    em,
    sql`select id from admin_key where key_hash = ${hashToken(key)} and revoked_at is null`,
  )
  return found ? key : null
}
