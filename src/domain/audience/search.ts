import { sql } from 'kysely'

import type { Call } from '../../catalogue/tool.ts'
import { array, rows } from '../../database.ts'
import { likeLiteral } from '../text.ts'
import type { Predicate } from './predicate.ts'

/**
 * Free text over email, name and tag names, whatever its letter case: the conditions over `subscriber s`, any of which
 * must hold. Apart they are answered by the trigrams of email and name, and by the index of the tags; as one condition
 * they would be answered by reading everybody.
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
