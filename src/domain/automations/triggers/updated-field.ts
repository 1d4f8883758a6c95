import { CUSTOM_FIELD_PREFIX } from '../../../../schema/audience.ts'
import { BUILT_IN_FIELDS } from '../../../../schema/automation-triggers.ts'

/** A field whose changes FIELD_UPDATED reports; a custom one may have the name of a built-in one. */
export type UpdatedField = { field: string; custom: boolean }

/** Reads the field of a FIELD_UPDATED trigger: a built-in one, or a custom one with or without its prefix. */
export function readUpdatedField(text: string): UpdatedField {
  if (text.startsWith(CUSTOM_FIELD_PREFIX))
    return { field: text.slice(CUSTOM_FIELD_PREFIX.length), custom: true }
  return { field: text, custom: !BUILT_IN_FIELDS.some((name) => name === text) }
}

/** Returns the key by which the event of a change finds its triggers. */
export function keyOfField({ field, custom }: UpdatedField): string {
  return custom ? `${CUSTOM_FIELD_PREFIX}${field}` : field
}
