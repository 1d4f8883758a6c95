/** Decodes bytes with the first character set that is known, or as UTF-8. */
export function decodeText(bytes: Uint8Array, charsets: readonly (string | null | undefined)[]): string {
  for (const charset of charsets) {
    if (!charset) continue
    try {
      return new TextDecoder(charset).decode(bytes)
    } catch {
      // An unknown name is ignored.
    }
  }
  return new TextDecoder().decode(bytes)
}
