/** Returns whether a value is an object that is neither an array nor null. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns the value at a path into JSON: names of members, or indexes of lists, joined by dots. Returns undefined if
 * there is none.
 */
export function valueAt(json: unknown, path: string): unknown {
  let value = json
  for (const part of path.split('.')) {
    if (Array.isArray(value)) value = /^\d+$/.test(part) ? value[Number(part)] : undefined
    else value = isRecord(value) && Object.hasOwn(value, part) ? value[part] : undefined
  }
  return value
}
