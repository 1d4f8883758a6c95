import { createHash } from 'node:crypto'

/** Returns the SHA-256 of a JSON value, written with sorted keys so that equal inputs have equal hashes. */
export function hashJson(value: unknown): Buffer {
  return createHash('sha256').update(canonicalJson(value)).digest()
}

/** Returns JSON with the members of every object sorted by name. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member
    return Object.fromEntries(Object.entries(member).sort(([one], [other]) => (one < other ? -1 : 1)))
  })
}
