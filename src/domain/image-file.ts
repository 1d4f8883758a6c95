import { fileTypeFromBuffer } from 'file-type'
import { imageSize } from 'image-size'

import { IMAGE_ENDINGS, IMAGE_LIMITS, type ImageType } from '../../schema/image.ts'
import { Failure } from '../catalogue/failure.ts'
import { refuse } from './text.ts'

/** What the header of an image file says; width and height as it is shown. */
export type ImageFacts = { contentType: ImageType; width: number; height: number }

/** Enough for every format's signature, and for the size in all but JPEG, which has it after its metadata. */
const HEADER_BYTES = 4_100
const JPEG_SEGMENTS = 1_000
// Start of frame, of every coding; C4, C8 and CC are other segments.
const START_OF_FRAME = new Set([0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf])
// EXIF orientations from the fifth on lie on their side.
const LYING = 5
const NO_IMAGE = 'is not a PNG, JPEG, GIF or WebP image; send the address of the file itself, not of a page.'

/**
 * Reads the type and the size of an image from its header; nothing is ever decoded, so that a small file which unfolds
 * to gigabytes costs nothing. What the server called it does not count.
 */
export async function inspectImage(bytes: Buffer): Promise<ImageFacts> {
  const contentType = await typeOf(bytes)
  const header = contentType === 'image/jpeg' ? jpegHeader(bytes) : bytes.subarray(0, HEADER_BYTES)
  const { width, height, type, orientation = 1 } = sizeOf(header)
  if (type !== IMAGE_ENDINGS[contentType] || !(width > 0) || !(height > 0)) refuse('url', NO_IMAGE)
  if (width * height > IMAGE_LIMITS.pixels) {
    refuse(
      'url',
      `is an image of ${width} × ${height} pixels; send one of at most ${IMAGE_LIMITS.pixels / 1e6} megapixels.`,
    )
  }
  return orientation >= LYING ? { contentType, width: height, height: width } : { contentType, width, height }
}

async function typeOf(bytes: Buffer): Promise<ImageType> {
  const found = await fileTypeFromBuffer(bytes.subarray(0, HEADER_BYTES)).catch(() => undefined)
  // An animated PNG is a PNG to every program that shows it.
  const type = found?.mime === 'image/apng' ? 'image/png' : found?.mime
  if (type !== undefined && type in IMAGE_ENDINGS) return type as ImageType
  throw new Failure('UNSUPPORTED_MEDIA_TYPE', `url ${NO_IMAGE}`, {
    details: [{ path: 'url', message: NO_IMAGE }],
  })
}

/**
 * A JPEG up to its first frame header, when it is made of segments as it should be. Readers that look for the next
 * marker byte by byte can be kept busy for seconds with a file that has none.
 */
function jpegHeader(bytes: Buffer): Buffer {
  let at = 2
  for (let segments = 0; segments < JPEG_SEGMENTS && at + 4 <= bytes.length; segments++) {
    if (bytes[at] !== 0xff) break
    const end = at + 2 + bytes.readUInt16BE(at + 2)
    if (START_OF_FRAME.has(bytes[at + 1] ?? 0)) return bytes.subarray(0, end)
    at = end
  }
  return refuse('url', NO_IMAGE)
}

function sizeOf(bytes: Buffer): ReturnType<typeof imageSize> {
  try {
    return imageSize(bytes)
  } catch {
    return refuse('url', NO_IMAGE)
  }
}
