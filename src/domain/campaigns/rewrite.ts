/**
 * Replaces `find` in the joined text of the pieces, at most `most` times from the left. A replacement goes into the
 * piece where the match begins, and so gets its marks. The number of pieces stays the same.
 */
export function rewrite(
  pieces: readonly string[],
  find: string,
  replace: string,
  most: number,
): { pieces: string[]; matched: number } {
  const whole = pieces.join('')
  const starts: number[] = []
  let found = whole.indexOf(find)
  while (found !== -1 && starts.length < most) {
    starts.push(found)
    found = whole.indexOf(find, found + find.length)
  }
  if (starts.length === 0) return { pieces: [...pieces], matched: 0 }
  let next = 0
  let from = 0
  const rewritten = pieces.map((piece) => {
    const to = from + piece.length
    let text = ''
    let at = from
    for (let start = starts[next]; start !== undefined && start < to; start = starts[next]) {
      // A match that begins in an earlier piece was replaced there.
      if (start >= from) text += whole.slice(at, start) + replace
      at = Math.min(start + find.length, to)
      if (start + find.length > to) break
      next++
    }
    text += whole.slice(at, to)
    from = to
    return text
  })
  return { pieces: rewritten, matched: starts.length }
}
