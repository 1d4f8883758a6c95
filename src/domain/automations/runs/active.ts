import { sql } from 'kysely'

/** Runs that are not over, as SQL; the partial unique index on entries has the same condition. */
export const IS_ACTIVE = sql.raw("status in ('QUEUED', 'ACTIVE', 'WAITING')")
