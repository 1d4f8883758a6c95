import { fileTypeFromBuffer } from 'file-type'
import { imageSize } from 'image-size'

import { IMAGE_ENDINGS, IMAGE_LIMITS, type ImageType } from '../../../schema/image.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'

/** The facts in the header of an image file; width and height are as displayed. */
export type ImageFacts = { contentType: ImageType; width: number; height: number }

/** Enough for the signature of every format, and for the size in all but JPEG, where metadata comes first. */
const HEADER_BYTES = 4_100
const JPEG_SEGMENTS = 1_000
// Start-of-frame markers of every coding; C4, C8 and CC mark other segments.
const START_OF_FRAME = new Set([0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf])
// EXIF orientations from 5 on swap width and height.
const LYING = 5
const NO_IMAGE = 'is not a PNG, JPEG, GIF or WebP image; send the address of the file itself, not of a page.'

/**
 * Reads the type and size of an image from its header. Nothing is decoded, so a small file that expands to gigabytes
 * does no harm. The content type that a server declared is ignored.
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
 * Returns a JPEG up to its first frame header, if its segments are well-formed. Parsers that search for the next marker
 * byte by byte can take seconds on a file without one.
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
