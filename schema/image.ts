import Type, { type Static } from 'typebox'

import { closed, nullable, oneOf } from './define.ts'

/** The supported image types, each with the file extension of its URL. */
export const IMAGE_ENDINGS = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
} as const
export type ImageType = keyof typeof IMAGE_ENDINGS

/** The keys of `IMAGE_ENDINGS` as a tuple, for schemas. */
const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const satisfies ImageType[]

/**
 * Limits of images: a file must have fewer bytes than `bytes` and at most `pixels`; texts are counted in characters.
 */
export const IMAGE_LIMITS = { bytes: 2_000_000, pixels: 25_000_000, name: 200, description: 2_000 } as const

/** An image on the wire (decisions, section 5). */
export const Image = closed({
  id: Type.String(),
  url: Type.String({ description: 'The URL at which the image is served, for image blocks and Markdown.' }),
  name: nullable(Type.String()),
  description: nullable(Type.String()),
  contentType: oneOf(IMAGE_TYPES),
  width: Type.Integer(),
  height: Type.Integer(),
  size: Type.Integer({ description: 'The size of the file in bytes.' }),
  capturePageId: nullable(Type.String()),
  createdAt: Type.String(),
})
export type Image = Static<typeof Image>
