import Type from 'typebox'

import { closed, limitOf, numberedPageOf, pageNumber } from '../../schema/define.ts'
import { Image, IMAGE_LIMITS } from '../../schema/image.ts'
import { defineTool } from '../catalogue/tool.ts'
import {
  describeImage as describe,
  fetchImage,
  listImages as list,
  recordImage,
} from '../domain/library/images.ts'

const name = Type.String({
  description: `The name of the image, up to ${IMAGE_LIMITS.name} characters. \`list_images\` searches it.`,
})
const description = Type.String({
  description: `A description of the picture for its alternative text, up to ${IMAGE_LIMITS.description} characters.`,
})

export const uploadImage = defineTool({
  name: 'upload_image',
  title: 'Upload an image',
  description: `Downloads a PNG, JPEG, GIF or WebP image from a public URL and stores it in the image library. Returns the image with the URL to use in email content. The file must be smaller than ${IMAGE_LIMITS.bytes / 1e6} MB and have at most ${IMAGE_LIMITS.pixels / 1e6} megapixels. Uploading the same file again returns the existing image.`,
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({
    url: Type.String({ description: 'The public http or https URL of the image file.' }),
    name: Type.Optional(name),
    description: Type.Optional(description),
  }),
  output: closed({ image: Image }),
  prepare: fetchImage,
  handler: async (call, _input, stored) => ({ image: await recordImage(call, stored) }),
})

export const listImages = defineTool({
  name: 'list_images',
  title: 'List images',
  description: 'Returns the images of the library with their URLs, newest first.',
  group: 'content',
  effect: 'read',
  permission: 'content',
  input: closed({
    query: Type.Optional(Type.String({ description: 'Text to find in the name or the description.' })),
    capturePageId: Type.Optional(
      Type.String({ description: 'Only images that were captured from the page with this id.' }),
    ),
    page: pageNumber(),
    pageSize: limitOf(50),
  }),
  output: numberedPageOf('images', Image),
  handler: list,
})

export const describeImage = defineTool({
  name: 'describe_image',
  title: 'Describe an image',
  description:
    'Sets the description of an image and, if `name` is given, its name. An empty string clears either. Send exactly one of `imageId` and `url`. Returns the image.',
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({
    imageId: Type.Optional(
      Type.String({ description: 'The id of the image (`img_…`). Send this or `url`, not both.' }),
    ),
    url: Type.Optional(
      Type.String({ description: 'The URL at which the image is served. Send this or `imageId`, not both.' }),
    ),
    description,
    name: Type.Optional(name),
  }),
  output: closed({ image: Image }),
  handler: async (call, input) => ({ image: await describe(call, input) }),
})
