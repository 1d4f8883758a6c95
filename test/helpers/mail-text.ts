/** Returns all parts of a message as one text, with quoted-printable decoded. */
export function mailText(raw: Buffer): string {
  const joined = raw.toString('latin1').replaceAll('=\r\n', '')
  const bytes = joined.replaceAll(/=([0-9A-F]{2})/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
  return Buffer.from(bytes, 'latin1').toString()
}
