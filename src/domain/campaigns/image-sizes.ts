import { sql } from 'kysely'

import { IMAGE_ENDINGS, IMAGE_LIMITS } from '../../../schema/image.ts'
import { Failure } from '../../catalogue/failure.ts'
import type { Outside } from '../../catalogue/tool.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { array, rows } from '../../database.ts'
import { inspectImage } from '../library/image-file.ts'
import { libraryImageId } from '../library/images.ts'
import { fetchUrl } from '../web.ts'

/** The natural size of an image in pixels, or why it cannot be known. */
export type NaturalSize = { width: number; height: number } | { problem: string }

const AT_ONCE = 4
const EACH_MS = 5_000
const ALL_MS = 20_000
/** The range that is requested: image headers hold the size at their beginning. Servers may ignore the range. */
const HEADER_BYTES = 262_144

/**
 * Returns the natural size of the image at each address: from the media library when it is there, else by a safe fetch.
 * Runs `AT_ONCE` fetches in parallel within `ALL_MS` in total.
 */
export async function measureImages(
  call: Outside,
  addresses: readonly string[],
): Promise<Map<string, NaturalSize>> {
  const sizes = await readLibrary(call, addresses)
  const unknown = [...new Set(addresses)].filter((address) => !sizes.has(address))
  const deadline = performance.now() + ALL_MS
  const next = unknown[Symbol.iterator]()
  async function work(): Promise<void> {
    for (const address of next) {
      sizes.set(address, await fetchSize(call, address, Math.min(EACH_MS, deadline - performance.now())))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  return sizes
}

async function readLibrary(
  { organization, services }: Outside,
  addresses: readonly string[],
): Promise<Map<string, NaturalSize>> {
  const ids = new Map(addresses.map((address) => [address, libraryImageId(organization.id, address)]))
  const wanted = [...new Set(ids.values())].filter((id) => id !== null)
  if (wanted.length === 0) return new Map()
  const found = await rows<{ id: string; width: number; height: number }>(
    crossOrganization(services),
    sql`select id, width, height from image
      where organization_id = ${organization.id} and id = any(${array(wanted, 'uuid')})`,
  )
  const sizes = new Map(found.map(({ id, ...size }) => [id, size]))
  return new Map(
    [...ids].flatMap(([address, id]): [string, NaturalSize][] => {
      const size = sizes.get(id ?? '')
      return size ? [[address, size]] : []
    }),
  )
}

async function fetchSize({ services }: Outside, url: string, milliseconds: number): Promise<NaturalSize> {
  if (milliseconds <= 0)
    return { problem: 'There was no time left for it; select it by its index in another call.' }
  try {
    const { body } = await fetchUrl(services.web, {
      url,
      headers: {
        accept: Object.keys(IMAGE_ENDINGS).join(', '),
        'accept-encoding': 'identity',
        range: `bytes=0-${HEADER_BYTES - 1}`,
      },
      limits: { bytes: IMAGE_LIMITS.bytes, milliseconds: Math.ceil(milliseconds) },
    })
    const { width, height } = await inspectImage(body)
    return { width, height }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { problem: `Its address ${error.message.replace(/^url /, '')}` }
  }
}
