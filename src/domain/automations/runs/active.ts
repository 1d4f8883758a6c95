import { sql } from 'kysely'

/** SQL condition for runs that are not over. It must equal the condition of the partial unique index on entry keys. */
export const IS_ACTIVE = sql.raw("status in ('QUEUED', 'ACTIVE', 'WAITING')")
