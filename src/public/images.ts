import type { ImageType } from '../../schema/image.ts'
import { crossOrganization } from '../catalogue/unit-of-work.ts'
import { findImageFile, imageKey, imagePath } from '../domain/library/images.ts'
import { readId } from '../ids.ts'
import type { Services } from '../services.ts'

/** The Content-Security-Policy of images, so that one opened directly can only be shown. */
export const IMAGE_SECURITY_POLICY = "default-src 'none'; sandbox"

/** An image as it is served; `load` reads the bytes, which are not needed if the visitor has them cached. */
export type ServedImage = { contentType: ImageType; tag: string; load(): Promise<Buffer> }

/** Returns the image at exactly this public path, or null if there is none. */
export async function findImage(
  services: Services,
  { organization, file }: { organization: string; file: string },
): Promise<ServedImage | null> {
  const [image = ''] = file.split('.')
  const organizationId = readId('org', organization)
  const id = readId('img', image)
  if (organizationId === null || id === null) return null
  const found = await findImageFile(crossOrganization(services), organizationId, id)
  if (!found || imagePath(organizationId, id, found.contentType) !== `/i/${organization}/${file}`) return null
  return {
    contentType: found.contentType,
    tag: found.hash.toString('hex'),
    async load() {
      const bytes = await services.storage.get(organizationId, imageKey(found.hash))
      if (!bytes) throw new Error(`the stored file of image ${id} is gone`)
      return bytes
    },
  }
}
