import { sql } from 'kysely'

import { hashToken } from '../../catalogue/tokens.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { type EntityManager, execute, row } from '../../database.ts'
import { seal, unseal } from '../../seal.ts'
import type { Services } from '../../services.ts'

/** A record of the OAuth server. It contains secret ids, so it is stored encrypted. */
type Payload = Record<string, unknown> & { grantId?: string | undefined; uid?: string | undefined }

/** Identifies a record: its kind, and the id that a client or browser presents. */
type Key = { model: string; id: string }

/** Stores a payload for `seconds`, or without expiry. `consumed_at` of an existing record stays. */
export async function keepRecord(
  services: Services,
  { model, id }: Key,
  payload: Payload,
  seconds?: number,
): Promise<void> {
  const text = Buffer.from(JSON.stringify(payload))
  const sealed = seal(services.config.encryptionKey, text, contextOf(model, hashToken(id)))
  await execute(
    crossOrganization(services),
    sql`insert into oauth_record (model, id_hash, payload, grant_hash, uid_hash, expires_at)
      values (${model}, ${hashToken(id)}, ${sealed}, ${hashOf(payload.grantId)}, ${hashOf(payload.uid)},
        now() + make_interval(secs => ${seconds ?? null}::float8))
      on conflict (model, id_hash) do update set payload = excluded.payload, grant_hash = excluded.grant_hash,
        uid_hash = excluded.uid_hash, expires_at = excluded.expires_at`,
  )
}

/** Returns a stored, unexpired record; `consumed` is when it was used. A revoked grant is not found. */
export async function findRecord(services: Services, { model, id }: Key): Promise<Payload | undefined> {
  return await find(services, model, sql`id_hash = ${hashToken(id)}`)
}

/** Does the same by the uid of the record. */
export async function findRecordByUid(
  services: Services,
  model: string,
  uid: string,
): Promise<Payload | undefined> {
  return await find(services, model, sql`uid_hash = ${hashToken(uid)}`)
}

/** Marks a record as used; returns true only for the first caller. Another use revokes the whole grant. */
export async function consumeRecord(services: Services, { model, id }: Key): Promise<boolean> {
  const em = crossOrganization(services)
  const consumed = await execute(
    em,
    sql`update oauth_record set consumed_at = now()
      where model = ${model} and id_hash = ${hashToken(id)} and consumed_at is null`,
  )
  if (consumed === 1) return true
  await execute(
    em,
    sql`delete from oauth_grant where grant_hash = (
      select grant_hash from oauth_record where model = ${model} and id_hash = ${hashToken(id)})`,
  )
  return false
}

/** Deletes a record. When a grant is deleted, its tokens stop working. */
export async function dropRecord(services: Services, { model, id }: Key): Promise<void> {
  const em = crossOrganization(services)
  const hash = hashToken(id)
  await execute(em, sql`delete from oauth_record where model = ${model} and id_hash = ${hash}`)
  if (model === 'Grant') await execute(em, sql`delete from oauth_grant where grant_hash = ${hash}`)
}

/** Deletes the records of one kind that belong to a grant. */
export async function dropRecordsOfGrant(services: Services, model: string, grantId: string): Promise<void> {
  await execute(
    crossOrganization(services),
    sql`delete from oauth_record where model = ${model} and grant_hash = ${hashToken(grantId)}`,
  )
}

/** Deletes expired records, and clients older than a week without grants. */
export async function forgetOAuth(em: EntityManager): Promise<void> {
  await execute(em, sql`delete from oauth_grant where expires_at < now()`)
  await execute(em, sql`delete from oauth_record where expires_at < now()`)
  await execute(
    em,
    sql`delete from oauth_record client where model = 'Client' and created_at < now() - interval '7 days'
      and not exists (select from oauth_grant held where held.client_hash = client.id_hash)`,
  )
}

async function find(
  services: Services,
  model: string,
  which: ReturnType<typeof sql>,
): Promise<Payload | undefined> {
  const found = await row<{ hash: Buffer; payload: Buffer; consumed: number | null }>(
    crossOrganization(services),
    sql`select id_hash as hash, payload, extract(epoch from consumed_at)::int as consumed from oauth_record
      where model = ${model} and ${which} and (expires_at is null or expires_at > now())
        and (model <> 'Grant' or exists (select from oauth_grant held where held.grant_hash = id_hash))`,
  )
  if (!found) return undefined
  const { hash, payload, consumed } = found
  const opened = openRecord(services, model, { hash, payload })
  return opened && { ...opened, ...(consumed !== null && { consumed }) }
}

/** Decrypts a record of keepRecord; undefined after a change of the encryption key, so that clients start over. */
export function openRecord(
  { config }: Services,
  model: string,
  { hash, payload }: { hash: Buffer; payload: Buffer },
): Payload | undefined {
  try {
    return JSON.parse(unseal(config.encryptionKey, payload, contextOf(model, hash)).toString())
  } catch {
    return undefined
  }
}

function contextOf(model: string, hash: Buffer): string {
  return `oauth ${model} ${hash.toString('hex')}`
}

function hashOf(text: string | undefined): Buffer | null {
  return text === undefined ? null : hashToken(text)
}
