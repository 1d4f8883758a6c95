import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { array, rows } from '../../database.ts'
import { likeLiteral } from '../text.ts'
import type { Predicate } from './predicate.ts'

/**
 * Returns conditions over `subscriber s` that search email, name and tag names for text, ignoring letter case. Any of
 * them must hold. Separate conditions use the trigram index of email and name and the index of tags; joined with OR
 * they would read all subscribers.
 */
export async function searchConditions({ em, organization }: Call, text: string): Promise<Predicate[]> {
  const pattern = `%${likeLiteral(text)}%`
  const tags = await rows<{ id: string }>(
    em,
    sql`select id from tag where organization_id = ${organization.id} and name_key like lower(${pattern})`,
  )
  const conditions = [sql<boolean>`(s.email_key like lower(${pattern}) or s.name ilike ${pattern})`]
  if (tags.length === 0) return conditions
  const ids = tags.map(({ id }) => id)
  return [
    ...conditions,
    sql<boolean>`exists (select 1 from subscriber_tag st where st.organization_id = ${organization.id}
      and st.subscriber_id = s.id and st.tag_id = any(${array(ids, 'uuid')}))`,
  ]
}
