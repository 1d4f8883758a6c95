import { M001Organizations } from './m001-organizations.ts'
import { M002Audience } from './m002-audience.ts'
import { M003Sending } from './m003-sending.ts'
import { M004Automations } from './m004-automations.ts'
import { M005Delivery } from './m005-delivery.ts'
import { M006Imports } from './m006-imports.ts'
import { M007Segments } from './m007-segments.ts'
import { M008Erasure } from './m008-erasure.ts'
import { M009Library } from './m009-library.ts'
import { M010CampaignSends } from './m010-campaign-sends.ts'
import { M011Domains } from './m011-domains.ts'
import { M012Visits } from './m012-visits.ts'
import { M013AutomationSteps } from './m013-automation-steps.ts'
import { M014Intakes } from './m014-intakes.ts'
import { M015TimedTriggers } from './m015-timed-triggers.ts'
import { M016CampaignBatches } from './m016-campaign-batches.ts'
import { M017Reports } from './m017-reports.ts'
import { M018Deliverability } from './m018-deliverability.ts'
import { M019Webhooks } from './m019-webhooks.ts'
import { M020Quotas } from './m020-quotas.ts'
import { M021Members } from './m021-members.ts'
import { M022Oauth } from './m022-oauth.ts'

/** Every migration in the order it runs; a released one is never edited, a new one is added. */
export const MIGRATIONS = [
  M001Organizations,
  M002Audience,
  M003Sending,
  M004Automations,
  M005Delivery,
  M006Imports,
  M007Segments,
  M008Erasure,
  M009Library,
  M010CampaignSends,
  M011Domains,
  M012Visits,
  M013AutomationSteps,
  M014Intakes,
  M015TimedTriggers,
  M016CampaignBatches,
  M017Reports,
  M018Deliverability,
  M019Webhooks,
  M020Quotas,
  M021Members,
  M022Oauth,
].map((migration) => ({
  name: migration.name,
  class: migration,
}))
