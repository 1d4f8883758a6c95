import { createHash, type Hash } from 'node:crypto'

import { sql } from 'kysely'

import type { ImportedStatus } from '../../../schema/import.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Received, Outside } from '../../catalogue/tool.ts'
import { unitOfWork } from '../../catalogue/unit-of-work.ts'
import { type EntityManager, execute, json } from '../../database.ts'
import { newId } from '../../ids.ts'
import { customFieldTypes } from '../audience/references.ts'
import { readTagNames } from '../subscribers/tags.ts'
import { readColumns } from './columns.ts'
import { HEAD_BYTES, readHead } from './csv-file.ts'
import type { ImportSettings } from './records.ts'

/** The maximum size of a file. */
export const IMPORT_BYTES = 1_000_000_000
/** The file is stored in chunks of this size; only the last is smaller. */
export const CHUNK_BYTES = 1_048_576

/** The parameters that come with the file. */
export type ImportInput = {
  mapping?: Record<string, string> | undefined
  resubscribe: boolean
  triggerWorkflows: boolean
  status?: ImportedStatus | undefined
  tags?: string[] | undefined
}

/**
 * Stores a file as it arrives, with at most two chunks in memory. The columns are checked when the first chunk is
 * there. An interrupted upload is deleted; housekeeping deletes uploads whose process crashed.
 */
export async function receiveFile(
  call: Outside,
  input: ImportInput,
  body: AsyncIterable<Buffer>,
): Promise<Received> {
  const id = newId()
  const discard = () => discardUpload(call, id)
  try {
    const digest = await keepFile(call, id, input, body)
    return { id, digest, discard }
  } catch (error) {
    await discard()
    if (error instanceof Failure || !isBrokenOff(error)) throw error
    throw new Failure('MALFORMED_BODY', 'The upload ended early; nothing is stored, send the file again.')
  }
}

/** Deletes an upload that did not become an import. */
async function discardUpload(call: Outside, id: string): Promise<void> {
  await within(call, (em, organizationId) =>
    execute(
      em,
      sql`delete from subscriber_import
        where organization_id = ${organizationId} and id = ${id} and status = 'UPLOADING'`,
    ),
  ).catch((error: unknown) => call.services.log.warn({ err: error, id }, 'an upload is left to the sweep'))
}

async function keepFile(
  call: Outside,
  id: string,
  input: ImportInput,
  body: AsyncIterable<Buffer>,
): Promise<string> {
  const hash = createHash('sha256')
  const tags = readTagNames(input.tags ?? [], 'tags')
  const fields = await within(call, async (em) => [
    ...(await customFieldTypes(em, call.organization.id)).keys(),
  ])
  let settings: ImportSettings | undefined
  let bytes = 0
  for await (const { chunk, isLast } of chunksOf(body, hash)) {
    if (!settings) {
      settings = readSettings(chunk, isLast, fields, { ...input, tags })
      await begin(call, id, settings)
    }
    await keepChunk(call, id, bytes, chunk)
    bytes += chunk.length
  }
  if (settings && bytes > settings.headerBytes) return hash.digest('hex')
  throw new Failure('INVALID_INPUT', 'The file has no rows below its header line; add some.')
}

function readSettings(
  chunk: Buffer,
  isLast: boolean,
  fields: readonly string[],
  { mapping, tags, ...rest }: ImportInput & { tags: string[] },
): ImportSettings {
  const head = readHead(chunk.subarray(0, HEAD_BYTES), isLast && chunk.length <= HEAD_BYTES)
  return { ...head, ...rest, tags, columns: readColumns(head.header, mapping, fields) }
}

/** Splits the body into chunks of one size and marks the last one; an empty body yields one empty chunk. */
async function* chunksOf(
  body: AsyncIterable<Buffer>,
  hash: Hash,
): AsyncGenerator<{ chunk: Buffer; isLast: boolean }> {
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  let used = 0
  let total = 0
  for await (const part of body) {
    hash.update(part)
    total += part.length
    if (total > IMPORT_BYTES) {
      throw new Failure('TOO_LARGE', `The file is larger than ${IMPORT_BYTES} bytes; send it in parts.`)
    }
    for (let from = 0; from < part.length;) {
      const copied = part.copy(chunk, used, from)
      used += copied
      from += copied
      if (used < CHUNK_BYTES) continue
      yield { chunk, isLast: false }
      chunk = Buffer.allocUnsafe(CHUNK_BYTES)
      used = 0
    }
  }
  if (used > 0 || total === 0) yield { chunk: chunk.subarray(0, used), isLast: true }
}

async function begin(call: Outside, id: string, settings: ImportSettings): Promise<void> {
  await within(call, (em, organizationId) =>
    execute(
      em,
      sql`insert into subscriber_import (id, organization_id, settings, actor, next_byte)
        values (${id}, ${organizationId}, ${json(settings)}, ${json(call.actor)}, ${settings.headerBytes})`,
    ),
  )
}

async function keepChunk(call: Outside, id: string, firstByte: number, content: Buffer): Promise<void> {
  await within(call, (em, organizationId) =>
    execute(
      em,
      sql`with kept as (
          insert into import_chunk (organization_id, import_id, first_byte, content)
          values (${organizationId}, ${id}, ${firstByte}, ${content})
        )
        update subscriber_import set bytes = ${firstByte + content.length}
        where organization_id = ${organizationId} and id = ${id}`,
    ),
  )
}

async function within<Result>(
  { services, organization, actor }: Outside,
  work: (em: EntityManager, organizationId: string) => Promise<Result>,
): Promise<Result> {
  return await unitOfWork(services, { organizationId: organization.id, actor }, ({ em }) =>
    work(em, organization.id),
  )
}

function isBrokenOff(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE'
}
