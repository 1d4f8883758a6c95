import { sql } from 'kysely'

import { type Campaign, CAMPAIGN_LIMITS, type FittedImage } from '../../../schema/campaign.ts'
import { DOCUMENT_LIMITS } from '../../../schema/document.ts'
import { isRecord } from '../../../schema/json.ts'
import { Failure, refuse } from '../../catalogue/failure.ts'
import type { Call, Outside } from '../../catalogue/tool.ts'
import { crossOrganization } from '../../catalogue/unit-of-work.ts'
import { execute, json } from '../../database.ts'
import { DIALECTS, type DocumentNode, openDocument, placesFrom } from './dialects.ts'
import { recordHistory } from './history.ts'
import { measureImages, type NaturalSize } from './image-sizes.ts'
import { type CampaignRow, findCampaign, getCampaign, titleOf } from './records.ts'
import { nextStatus } from './status.ts'

/** The input of auto_fit_campaign_images; sizes in pixels. */
export type Fitting = {
  campaignId: string
  imageIndexes?: readonly number[] | undefined
  maxWidth: number
  maxHeight: number
  dryRun: boolean
}

type DocumentImage = {
  index: number
  node: DocumentNode
  attributes: Record<string, unknown>
  address: string
}

/** Measures the chosen images and returns their natural sizes by address. Runs before the transaction. */
export async function measureCampaignImages(
  call: Outside,
  { campaignId, imageIndexes }: Fitting,
): Promise<Map<string, NaturalSize>> {
  const { organization, services } = call
  const campaign = await findCampaign({ em: crossOrganization(services), organization }, campaignId)
  nextStatus(campaign, 'edit')
  const { chosen } = readImages(campaign, imageIndexes)
  const measurable = chosen.filter((image) => problemOf(image) === null)
  return await measureImages(
    call,
    measurable.map(({ address }) => address),
  )
}

/**
 * Sets images to their natural size, scaled down to fit the bounds and never scaled up. An image whose size cannot be
 * known stays as it is and gets a `problem`. A dry run stores nothing.
 */
export async function fitCampaignImages(
  call: Call,
  { campaignId, imageIndexes, maxWidth, maxHeight, dryRun }: Fitting,
  sizes: ReadonlyMap<string, NaturalSize>,
): Promise<{ campaign: Campaign; images: FittedImage[] }> {
  const campaign = await findCampaign(call, campaignId, { lock: true })
  nextStatus(campaign, 'edit')
  const { chosen, content } = readImages(campaign, imageIndexes)
  const images = chosen.map((image): FittedImage => {
    const before = { width: image.attributes['width'] ?? null, height: image.attributes['height'] ?? null }
    const known = { index: image.index, address: image.address, before }
    const natural = naturalSize(image, sizes)
    if ('problem' in natural)
      return { ...known, natural: null, fitted: null, changed: false, problem: natural.problem }
    const fitted = fit(natural, maxWidth, maxHeight)
    const changed = before.width !== fitted.width || before.height !== fitted.height
    Object.assign(image.attributes, fitted)
    return { ...known, natural, fitted, changed, problem: null }
  })
  if (!dryRun && images.some(({ changed }) => changed)) {
    await execute(
      call.em,
      sql`update campaign set content = ${json(content())}
        where organization_id = ${call.organization.id} and id = ${campaign.id}`,
    )
    await recordHistory(call, campaign.id)
  }
  return { campaign: await getCampaign(call, campaignId), images }
}

/** Returns the chosen images in document order; `content` returns the copied document that holds them. */
function readImages(
  campaign: CampaignRow,
  indexes: readonly number[] | undefined,
): { chosen: DocumentImage[]; content: () => unknown } {
  const { contentType } = campaign
  if (contentType === 'MARKDOWN') {
    throw new Failure(
      'WRONG_STATE',
      `The campaign ${titleOf(campaign)} is written in MARKDOWN, whose images have no size of their own: they are never wider than the text. MAILY and PLATE have sizes.`,
    )
  }
  const dialect = DIALECTS[contentType]
  const { root, contentOf } = openDocument(campaign.content)
  const all = placesFrom(dialect, { node: root, parent: null, index: 0 }, DOCUMENT_LIMITS.nodes)
    .filter(({ node }) => node['type'] === dialect.image.type)
    .map(({ node }, index): DocumentImage => {
      const given = dialect.attributesOf(node)
      const attributes = isRecord(given) ? given : {}
      const address = attributes[dialect.image.address]
      return { index, node, attributes, address: typeof address === 'string' ? address.trim() : '' }
    })
  const chosen = indexes === undefined ? all : all.filter(({ index }) => indexes.includes(index))
  const unknown = indexes?.findIndex((index) => index >= all.length) ?? -1
  if (unknown !== -1) {
    refuse(
      `imageIndexes[${unknown}]`,
      `names no image: the email has ${all.length}, from index 0; dryRun shows them.`,
    )
  }
  if (chosen.length > CAMPAIGN_LIMITS.imagesAtOnce) {
    refuse(
      'imageIndexes',
      `must name at most ${CAMPAIGN_LIMITS.imagesAtOnce} of the ${all.length} images in one call.`,
    )
  }
  return { chosen, content: () => contentOf(root) }
}

function naturalSize(image: DocumentImage, sizes: ReadonlyMap<string, NaturalSize>): NaturalSize {
  const problem = problemOf(image)
  if (problem !== null) return { problem }
  const size = sizes.get(image.address)
  if (size) return size
  throw new Failure(
    'STALE_VERSION',
    'The campaign was edited while its images were measured; repeat the call.',
  )
}

/** Returns why an image has no single size, or null when it can be measured. */
function problemOf({ address, attributes }: DocumentImage): string | null {
  if (address === '') return 'It has no address.'
  if (!address.includes('{{') && attributes['isSrcVariable'] !== true) return null
  return 'Its address holds a variable, so its size can differ from person to person.'
}

function fit({ width, height }: { width: number; height: number }, maxWidth: number, maxHeight: number) {
  const scale = Math.min(1, maxWidth / width, maxHeight / height)
  return { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) }
}
