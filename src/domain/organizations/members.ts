import { sql } from 'kysely'

import { audit } from '../../catalogue/audit.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { type EntityManager, execute, row, rows } from '../../database.ts'
import { encodeId, missing, newId, readId } from '../../ids.ts'
import { emailFault, readEmail } from '../addresses.ts'
import { oneLine, timestamp, timestampOrNull } from '../text.ts'
import { hashPassword, isPassword } from './passwords.ts'

/** A person who can log in, as one organization sees them. */
export type Member = {
  id: string
  email: string
  name: string
  hasPassword: boolean
  lastLoginAt: string | null
  /** When they joined the organization. */
  createdAt: string
}

/** A logged-in member, and a hash of the stored password, so that a new password ends the login. */
export type Login = { id: string; passwordMark: string }

/** An organization that a member can choose. */
export type MemberOrganization = { id: string; name: string }

type MemberRow = Omit<Member, 'id'> & { uuid: string }

const MAXIMUM_NAME = 100
const COLUMNS = sql`member.id as uuid, member.email, member.name, member.password is not null as "hasPassword",
  member.last_login_at as "lastLoginAt", membership.created_at as "createdAt"`
const MARK = sql`encode(sha256(convert_to(member.password, 'UTF8')), 'base64')`

/**
 * Adds a person to the organization. A person who already belongs to another organization keeps name and password, and
 * a given password is refused.
 */
export async function createMember(
  call: Call,
  input: { email: string; name?: string | undefined; password?: string | undefined },
): Promise<Member> {
  const { em, organization } = call
  const email = readEmail(input.email, 'email')
  const name = oneLine(input.name ?? '', 'name', MAXIMUM_NAME)
  const password = input.password === undefined ? null : await hashPassword(input.password)
  const id = newId()
  // The update changes nothing: it locks a known person, whom a concurrent transaction may be deleting.
  const known = await row<{ id: string }>(
    em,
    sql`insert into member (id, email, name, password) values (${id}, ${email}, ${name}, ${password})
      on conflict (email_key) do update set email = member.email returning id`,
  )
  if (!known) throw new Error('a member was neither made nor found')
  if (known.id !== id && password !== null) {
    refuse('password', 'was sent for somebody who logs in already; leave it out, or set it by itself.')
  }
  const joined = await execute(
    em,
    sql`insert into membership (organization_id, member_id) values (${organization.id}, ${known.id})
      on conflict do nothing`,
  )
  if (joined === 0) {
    throw new Failure('ALREADY_EXISTS', `${JSON.stringify(email)} is a member of this organization already.`)
  }
  const member = await readMember(call, email)
  await audit(call, 'member.created', member.id, {})
  return member
}

/**
 * Sets a member's password, which applies in every organization they belong to, and deletes their OAuth grants. For the
 * operator of the installation.
 */
export async function setMemberPassword(call: Call, member: string, password: string): Promise<Member> {
  const hashed = await hashPassword(password)
  const { id } = await readMember(call, member)
  await execute(call.em, sql`update member set password = ${hashed} where id = ${readId('usr', id)}`)
  await execute(call.em, sql`delete from oauth_grant where member_id = ${readId('usr', id)}`)
  await audit(call, 'member.password_set', id, {})
  return await readMember(call, id)
}

/** Lists the members of the organization by address. */
export async function listMembers({ em, organization }: Call): Promise<Member[]> {
  const found = await rows<MemberRow>(
    em,
    sql`select ${COLUMNS} from membership join member on member.id = membership.member_id
      where membership.organization_id = ${organization.id} order by member.email_key`,
  )
  return found.map(present)
}

/** Removes a member, by id or address, from the organization; deletes them when they belong to no other. */
export async function removeMember(call: Call, member: string): Promise<Member> {
  const { em, organization } = call
  const removed = await readMember(call, member)
  const uuid = readId('usr', removed.id)
  // Waits for a concurrent transaction that adds them to another organization, so that the last statement sees it.
  await execute(em, sql`select id from member where id = ${uuid} for update`)
  await execute(
    em,
    sql`delete from membership where organization_id = ${organization.id} and member_id = ${uuid}`,
  )
  await execute(
    em,
    sql`delete from member where id = ${uuid} and not exists (select from membership where member_id = ${uuid})`,
  )
  await audit(call, 'member.removed', removed.id, {})
  return removed
}

/** Returns the member with this address and password, or null. An unknown address takes equally long. */
export async function logIn(
  em: EntityManager,
  { email, password }: { email: string; password: string },
): Promise<Login | null> {
  // The database cannot compare every text: it refuses NUL.
  const isAddress = emailFault(email) === null
  const found = isAddress
    ? await row<{ id: string; password: string | null; passwordMark: string }>(
        em,
        sql`select id, password, ${MARK} as "passwordMark" from member where email_key = lower(${email})`,
      )
    : null
  const isRight = await isPassword(password, found?.password ?? null)
  if (!found || !isRight) return null
  await execute(em, sql`update member set last_login_at = now() where id = ${found.id}`)
  return { id: encodeId('usr', found.id), passwordMark: found.passwordMark }
}

/** The condition that a `member` row belongs to a login whose password has not changed. */
export function isLogin({ id, passwordMark }: Login): ReturnType<typeof sql> {
  return sql`member.id = ${readId('usr', id)} and ${MARK} = ${passwordMark}`
}

/** Returns a member's address and organizations, or null when the login is no longer valid. */
export async function readMemberships(
  em: EntityManager,
  login: Login,
): Promise<{ email: string; organizations: MemberOrganization[] } | null> {
  const found = await rows<{ email: string } & MemberOrganization>(
    em,
    sql`select member.email, organization.id, organization.name
      from member join membership on membership.member_id = member.id
      join organization on organization.id = membership.organization_id
      where ${isLogin(login)} order by organization.name, organization.id`,
  )
  const [first] = found
  if (!first) return null
  const organizations = found.map(({ id, name }) => ({ id: encodeId('org', id), name }))
  return { email: first.email, organizations }
}

async function readMember({ em, organization }: Call, member: string): Promise<Member> {
  const found = await row<MemberRow>(
    em,
    sql`select ${COLUMNS} from membership join member on member.id = membership.member_id
      where membership.organization_id = ${organization.id}
        and (member.id = ${readId('usr', member)} or member.email_key = lower(${member}))`,
  )
  return found ? present(found) : missing('usr', member)
}

function present({ uuid, ...member }: MemberRow): Member {
  return {
    id: encodeId('usr', uuid),
    email: member.email,
    name: member.name,
    hasPassword: member.hasPassword,
    lastLoginAt: timestampOrNull(member.lastLoginAt),
    createdAt: timestamp(member.createdAt),
  }
}
