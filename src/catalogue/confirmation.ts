import { createHash, randomInt } from 'node:crypto'

import { sql } from 'kysely'

import { type EntityManager, execute, row, rows } from '../database.ts'
import { newId } from '../ids.ts'
import { audit } from './audit.ts'
import { hashJson } from './canonical.ts'
import { Failure } from './failure.ts'
import type { Call, ConfirmationSummary, Tool } from './tool.ts'

const VALID_MINUTES = 5
const WRONG_CODES_ALLOWED = 5

/** What a code is valid for, besides the organization: the tool, and its exact input with the defaults filled in. */
type Gate = { tool: Tool; input: unknown }

/**
 * Creates a confirmation challenge and returns the `CONFIRMATION_REQUIRED` failure (428) that carries it: a five-digit
 * code that works once within five minutes, and a summary of the effects (contract, "Confirmation flow"; decisions,
 * section 2). Only a hash of the code is stored. `why` says why an earlier code was not accepted.
 */
export async function challenge(
  call: Call,
  { tool, input }: Gate,
  summary: ConfirmationSummary,
  why: string | undefined,
): Promise<Failure> {
  const id = newId()
  const code = String(randomInt(10_000, 100_000))
  const made = await row<{ expiresAt: Date }>(
    call.em,
    sql`insert into confirmation_challenge (id, organization_id, tool, input_hash, code_hash, expires_at)
      values (${id}, ${call.organization.id}, ${tool.name}, ${hashJson(input)}, ${hashCode(id, code)},
        now() + make_interval(mins => ${VALID_MINUTES}))
      returning expires_at as "expiresAt"`,
  )
  await audit(call, 'confirmation.asked', tool.name, { challenge: id, summary })
  const reason = why ? `${why} ` : ''
  return new Failure(
    'CONFIRMATION_REQUIRED',
    `${reason}${summary.action} needs a confirmation: repeat the same request with "confirmationCode": "${code}" within ${VALID_MINUTES} minutes.`,
    {
      body: {
        confirmationCode: code,
        expiresAt: new Date(made?.expiresAt ?? call.now).toISOString(),
        summary,
      },
    },
  )
}

type Known = { id: string; code: string; spent: boolean; expired: boolean; dead: boolean }

/**
 * Spends a code in the handler's transaction, so that it works exactly once and is not spent when the call is refused.
 * Returns why the code does not work, or null when it was spent.
 */
export async function spendCode(call: Call, gate: Gate, code: string): Promise<string | null> {
  const match = await findChallenge(call.em, call.organization.id, gate, code)
  if (!match) return 'That code does not belong to this request; the input may have changed.'
  const spent = await execute(
    call.em,
    sql`update confirmation_challenge set spent_at = now()
      where organization_id = ${call.organization.id} and id = ${match.id} and spent_at is null
        and expires_at > now() and wrong_codes < ${WRONG_CODES_ALLOWED}`,
  )
  if (spent === 0) return refusalOf(match)
  await audit(call, 'confirmation.used', gate.tool.name, { challenge: match.id })
  return null
}

/**
 * Counts a wrong code against every open challenge for this input. Must run outside the handler's transaction, so that
 * the count is not rolled back with it.
 */
export async function countWrongCode(em: EntityManager, organizationId: string, gate: Gate): Promise<void> {
  await execute(
    em,
    sql`update confirmation_challenge set wrong_codes = wrong_codes + 1
      where organization_id = ${organizationId} and tool = ${gate.tool.name}
        and input_hash = ${hashJson(gate.input)} and spent_at is null and expires_at > now()`,
  )
}

async function findChallenge(
  em: EntityManager,
  organizationId: string,
  { tool, input }: Gate,
  code: string,
): Promise<Known | undefined> {
  const found = await rows<Known>(
    em,
    sql`select id, encode(code_hash, 'hex') as code, spent_at is not null as spent, expires_at <= now() as expired,
        wrong_codes >= ${WRONG_CODES_ALLOWED} as dead
      from confirmation_challenge
      where organization_id = ${organizationId} and tool = ${tool.name} and input_hash = ${hashJson(input)}
      order by id desc`,
  )
  return found.find((known) => hashCode(known.id, code).toString('hex') === known.code)
}

function refusalOf({ dead, expired }: Known): string {
  if (expired) return 'That code has expired.'
  if (dead) return 'That code was closed after too many wrong attempts.'
  return 'That code was already used.'
}

function hashCode(challengeId: string, code: string): Buffer {
  return createHash('sha256').update(`${challengeId}/${code}`).digest()
}
