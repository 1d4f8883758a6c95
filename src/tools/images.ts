import Type from 'typebox'

import { closed, limitOf, numberedPageOf, pageNumber } from '../../schema/define.ts'
import { Image, IMAGE_LIMITS } from '../../schema/image.ts'
import { defineTool } from '../catalogue/tool.ts'
import { describeImage as describe, fetchImage, listImages as list, recordImage } from '../domain/images.ts'

const name = Type.String({ description: `What it is found by, up to ${IMAGE_LIMITS.name} characters.` })
const description = Type.String({
  description: `What it shows, for the alternative text, up to ${IMAGE_LIMITS.description} characters.`,
})

export const uploadImage = defineTool({
  name: 'upload_image',
  title: 'Upload an image',
  description: `Fetches a PNG, JPEG, GIF or WebP from a public address and keeps it, so that email can show it from here. Under ${IMAGE_LIMITS.bytes / 1e6} MB and ${IMAGE_LIMITS.pixels / 1e6} megapixels. The same file is kept once.`,
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({
    url: Type.String({ description: 'The public http or https address of the file.' }),
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
  description: 'Lists the images of the library with their addresses, newest first.',
  group: 'content',
  effect: 'read',
  permission: 'content',
  input: closed({
    query: Type.Optional(Type.String({ description: 'A part of the name or the description.' })),
    capturePageId: Type.Optional(Type.String({ description: 'Only what was captured from this page.' })),
    page: pageNumber(),
    pageSize: limitOf(50),
  }),
  output: numberedPageOf('images', Image),
  handler: list,
})

export const describeImage = defineTool({
  name: 'describe_image',
  title: 'Describe an image',
  description: 'Says what an image shows and, with name, what it is called; "" clears.',
  group: 'content',
  effect: 'draft',
  permission: 'content',
  input: closed({
    imageId: Type.Optional(Type.String({ description: 'The id (img_…). Send this or url, not both.' })),
    url: Type.Optional(Type.String({ description: 'The address it is served at, instead of imageId.' })),
    description,
    name: Type.Optional(name),
  }),
  output: closed({ image: Image }),
  handler: async (call, input) => ({ image: await describe(call, input) }),
})
