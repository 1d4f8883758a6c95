import { fileTypeFromBuffer } from 'file-type'
import { imageSize } from 'image-size'

import { IMAGE_ENDINGS, IMAGE_LIMITS, type ImageType } from '../../schema/image.ts'
import { Failure } from '../catalogue/failure.ts'
import { refuse } from './text.ts'

/** What the header of an image file says; width and height as it is shown. */
export type ImageFacts = { contentType: ImageType; width: number; height: number }

// From the eighth of a turn on, EXIF orientations lie on their side.
const LYING = 5
const NO_IMAGE = 'is no PNG, JPEG, GIF or WebP image; send the address of the file itself, not of a page.'

/**
 * Reads the type and the size of an image from its header; nothing is ever decoded, so that a small file which unfolds
 * to gigabytes costs nothing. What the server called it does not count.
 */
export async function inspectImage(bytes: Buffer): Promise<ImageFacts> {
  const contentType = await typeOf(bytes)
  const { width, height, type, orientation = 1 } = sizeOf(bytes)
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
  const found = await fileTypeFromBuffer(bytes).catch(() => undefined)
  // An animated PNG is a PNG to every program that shows it.
  const type = found?.mime === 'image/apng' ? 'image/png' : found?.mime
  if (type !== undefined && type in IMAGE_ENDINGS) return type as ImageType
  throw new Failure('UNSUPPORTED_MEDIA_TYPE', `url ${NO_IMAGE}`, {
    details: [{ path: 'url', message: NO_IMAGE }],
  })
}

function sizeOf(bytes: Buffer): ReturnType<typeof imageSize> {
  try {
    return imageSize(bytes)
  } catch {
    return refuse('url', NO_IMAGE)
  }
}
