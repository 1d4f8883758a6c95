import { createPrivateKey, generateKeyPair, type KeyObject, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'

import { sql } from 'kysely'

import { type EntityManager, execute, row } from '../../database.ts'
import { newId } from '../../ids.ts'
import { seal, unseal } from '../../seal.ts'

/** A key pair that is not stored yet: the public half as published in DNS, the private half as PKCS #8. */
export type DkimPair = { selector: string; publicKey: string; privateKey: Buffer }

/** The key that signs the mail of a domain. */
export type SigningKey = { domain: string; selector: string; privateKey: KeyObject }

type Owner = { organizationId: string; domainId: string }
type StoredKey = Owner & { domain: string; selector: string; privateKey: Buffer }

const MODULUS_BITS = 2_048
const generate = promisify(generateKeyPair)

/** Makes a 2048-bit RSA key, which every receiver supports, with a random selector. */
export async function makeDkimPair(): Promise<DkimPair> {
  const { publicKey, privateKey } = await generate('rsa', {
    modulusLength: MODULUS_BITS,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  })
  const selector = `pl${randomBytes(5).toString('hex')}`
  return { selector, publicKey: publicKey.toString('base64'), privateKey }
}

/** Stores a key pair as the signing key of a domain or as the next one; the private half is encrypted. */
export async function insertSigningKey(
  em: EntityManager,
  encryptionKey: Buffer,
  owner: Owner,
  pair: DkimPair,
  state: 'ACTIVE' | 'NEXT' = 'ACTIVE',
): Promise<void> {
  const sealed = seal(encryptionKey, pair.privateKey, contextOf({ ...owner, selector: pair.selector }))
  await execute(
    em,
    sql`insert into dkim_key (id, organization_id, domain_id, selector, public_key, private_key, state)
      values (${newId()}, ${owner.organizationId}, ${owner.domainId}, ${pair.selector}, ${pair.publicKey}, ${sealed}, ${state})`,
  )
}

/** Returns the signing key of a domain (ASCII, lower case) of the organization; null when there is none. */
export async function findSigningKey(
  em: EntityManager,
  encryptionKey: Buffer,
  organizationId: string,
  domain: string,
): Promise<SigningKey | null> {
  const found = await row<StoredKey>(
    em,
    sql`select k.organization_id as "organizationId", k.domain_id as "domainId", d.domain, k.selector,
        k.private_key as "privateKey"
      from domain d join dkim_key k on k.organization_id = d.organization_id and k.domain_id = d.id
      where d.organization_id = ${organizationId} and d.domain = ${domain} and k.state = 'ACTIVE'`,
  )
  return found && { domain: found.domain, selector: found.selector, privateKey: open(found, encryptionKey) }
}

/** Throws when the newest stored key cannot be decrypted, because with a wrong encryption key no mail can be signed. */
export async function checkStoredKeys(em: EntityManager, encryptionKey: Buffer): Promise<void> {
  const newest = await row<StoredKey>(
    em,
    sql`select organization_id as "organizationId", domain_id as "domainId", '' as domain, selector,
        private_key as "privateKey" from dkim_key where private_key is not null order by created_at desc limit 1`,
  )
  if (newest && !isReadable(newest, encryptionKey)) {
    throw new Error(
      'POSTLOOM_ENCRYPTION_KEY is not the one that the stored DKIM keys were encrypted with; set that one.',
    )
  }
}

function isReadable(stored: StoredKey, encryptionKey: Buffer): boolean {
  try {
    open(stored, encryptionKey)
    return true
  } catch {
    return false
  }
}

function open(stored: StoredKey, encryptionKey: Buffer): KeyObject {
  const key = unseal(encryptionKey, stored.privateKey, contextOf(stored))
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' })
}

function contextOf({ organizationId, domainId, selector }: Owner & { selector: string }): string {
  return `dkim/${organizationId}/${domainId}/${selector}`
}
