import { createHash } from 'node:crypto'

import { sql } from 'kysely'

import { type Image, IMAGE_ENDINGS, IMAGE_LIMITS, type ImageType } from '../../../schema/image.ts'
import { refuse } from '../../catalogue/failure.ts'
import type { Call, Outside } from '../../catalogue/tool.ts'
import { type EntityManager, row, rows } from '../../database.ts'
import { decodeId, encodeId, missing, newId, readId } from '../../ids.ts'
import { characters, oneLine, searchPattern, timestamp } from '../text.ts'
import { fetchUrl } from '../web.ts'
import { type ImageFacts, inspectImage } from './image-file.ts'

/** The name and description that users give an image; an empty text clears. */
type Labels = { name?: string | undefined; description?: string | undefined }

/** An image whose bytes are stored and whose record does not exist yet. */
export type StoredImage = ImageFacts & { hash: Buffer; size: number; labels: Labels; fileName: string | null }

/** Filters and page of an image list. */
export type ImageQuery = {
  query?: string | undefined
  capturePageId?: string | undefined
  page: number
  pageSize: number
}

type ImageRow = Omit<Image, 'url'>

const FETCH_MS = 10_000
const COLUMNS = sql`image.id, image.name, image.description, image.content_type as "contentType", image.width,
  image.height, image.size, image.capture_page_id as "capturePageId", image.created_at as "createdAt"`

/** Fetches an image, checks its bytes and stores them. `recordImage` makes its record in a later transaction. */
export async function fetchImage(
  { organization, services }: Outside,
  { url, ...given }: { url: string } & Labels,
): Promise<StoredImage> {
  const labels = readLabels(given)
  const { body, url: found } = await fetchUrl(services.web, {
    url,
    headers: { accept: Object.keys(IMAGE_ENDINGS).join(', ') },
    limits: { bytes: IMAGE_LIMITS.bytes - 1, milliseconds: FETCH_MS },
  })
  const facts = await inspectImage(body)
  const hash = createHash('sha256').update(body).digest()
  await services.storage.put(organization.id, imageKey(hash), body)
  return { ...facts, hash, size: body.length, labels, fileName: fileNameOf(found) }
}

/** Creates the record of stored bytes. Identical bytes are one image: a second upload only changes given labels. */
export async function recordImage(call: Call, stored: StoredImage): Promise<Image> {
  const { em, organization } = call
  const { contentType, width, height, size, hash, labels, fileName } = stored
  const { name, description } = labels
  const made = await row<ImageRow>(
    em,
    sql`insert into image (id, organization_id, name, description, content_type, width, height, size, content_hash)
      values (${newId()}, ${organization.id}, ${name || fileName}, ${description || null}, ${contentType}, ${width},
        ${height}, ${size}, ${hash})
      on conflict (organization_id, content_hash) do update
        set name = coalesce(${name || null}, image.name), description = coalesce(${description || null}, image.description)
      returning ${COLUMNS}`,
  )
  if (!made) throw new Error('a new image cannot be read back')
  return present(call, made)
}

/** Lists one page of the images, newest first. */
export async function listImages(
  call: Call,
  { query, capturePageId, page, pageSize }: ImageQuery,
): Promise<{ images: Image[]; page: number; pageSize: number; total: number; hasMore: boolean }> {
  const { em, organization } = call
  const pattern = searchPattern(query)
  const matching = sql`from image where image.organization_id = ${organization.id}
    and (${pattern}::text is null or image.name ilike ${pattern} or image.description ilike ${pattern})
    and (${capturePageId ?? null}::text is null or image.capture_page_id = ${capturePageId ?? null})`
  const counted = await row<{ total: number }>(em, sql`select count(*)::int as total ${matching}`)
  const found = await rows<ImageRow>(
    em,
    sql`select ${COLUMNS} ${matching} order by image.id desc limit ${pageSize} offset ${(page - 1) * pageSize}`,
  )
  const total = counted?.total ?? 0
  return {
    images: found.map((image) => present(call, image)),
    page,
    pageSize,
    total,
    hasMore: page * pageSize < total,
  }
}

/** Sets the description of an image, and its name when one is given. */
export async function describeImage(
  call: Call,
  { imageId, url, ...given }: { imageId?: string | undefined; url?: string | undefined } & Labels,
): Promise<Image> {
  if ((imageId === undefined) === (url === undefined)) {
    refuse('imageId', 'and url stand for the same image: send exactly one of them.')
  }
  const { name, description } = readLabels(given)
  const { em, organization } = call
  const id = imageId === undefined ? idInUrl(call, url ?? '') : decodeId('img', imageId)
  const changed = await row<ImageRow>(
    em,
    sql`update image set description = ${description || null},
        name = ${name === undefined ? sql`name` : sql`${name || null}`}
      where organization_id = ${organization.id} and id = ${id} returning ${COLUMNS}`,
  )
  return changed ? present(call, changed) : missing('img', imageId ?? url ?? '')
}

/** Returns the storage key of an image's bytes. */
export function imageKey(hash: Buffer): string {
  return `images/${hash.toString('hex')}`
}

/** Returns content type and hash of an image by uuid; null when there is none. */
export async function findImageFile(
  em: EntityManager,
  organizationId: string,
  imageId: string,
): Promise<{ contentType: ImageType; hash: Buffer } | null> {
  return await row(
    em,
    sql`select content_type as "contentType", content_hash as hash from image
      where organization_id = ${organizationId} and id = ${imageId}`,
  )
}

/** Returns the public path of an image. It contains the organization, so that the primary key finds the image. */
export function imagePath(organizationId: string, imageId: string, contentType: ImageType): string {
  return `/i/${encodeId('org', organizationId)}/${encodeId('img', imageId)}.${IMAGE_ENDINGS[contentType]}`
}

/**
 * Returns the uuid of the organization's image at an address; null for any other address. Any host will do, because
 * documents keep the addresses they were written with when the installation moves to another host.
 */
export function libraryImageId(organizationId: string, url: string): string | null {
  const [, owner = '', image = ''] = /\/i\/(org_[a-z0-9]{26})\/(img_[a-z0-9]{26})\.[a-z]+$/.exec(url) ?? []
  return readId('org', owner) === organizationId ? readId('img', image) : null
}

function idInUrl({ organization }: Call, url: string): string {
  return libraryImageId(organization.id, url) ?? missing('img', url)
}

function readLabels({ name, description }: Labels): Labels {
  if (description !== undefined && characters(description) > IMAGE_LIMITS.description) {
    refuse('description', `is longer than ${IMAGE_LIMITS.description} characters; shorten it.`)
  }
  return { name: name === undefined ? name : oneLine(name.trim(), 'name', IMAGE_LIMITS.name), description }
}

/** Returns the last part of an address as the default name; null when it gives none. */
function fileNameOf(url: string): string | null {
  const [last = ''] = new URL(url).pathname.split('/').slice(-1)
  try {
    const name = decodeURIComponent(last)
      .replaceAll(/\p{Cc}/gu, '')
      .toWellFormed()
      .trim()
    return name.slice(0, IMAGE_LIMITS.name).toWellFormed() || null
  } catch {
    return null
  }
}

function present({ organization, services }: Call, image: ImageRow): Image {
  return {
    ...image,
    id: encodeId('img', image.id),
    url: services.config.baseUrl + imagePath(organization.id, image.id, image.contentType),
    createdAt: timestamp(image.createdAt),
  }
}
