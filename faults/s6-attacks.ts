/** Values that try to be more than text: in HTML, Markdown, URLs, styles, variables and lines. */
const FRAGMENTS: readonly string[] = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '" onclick="x',
  '" style="position:fixed" x="',
  '</title><svg/onload=1>',
  '</td></tr></table></div></p>',
  '</textarea><script>',
  '<td><tr><table>',
  '--><b>',
  '<![endif]--><script>alert(1)</script>',
  '<!--',
  '--!><script>',
  ']]><b>',
  '</style><script>',
  'expression(alert(1))',
  'red;background:url(//evil.test)',
  '#fff;position:fixed',
  '\\',
  '`',
  '```',
  '&lt;script&gt;',
  '&#x3c;b&#x3e;',
  '&quot;',
  '&',
  'javascript:alert(1)',
  'jAvA\tscript:alert(1)',
  'script:alert(1)',
  '\u0001javascript:alert(1)',
  'javascript&colon;alert(1)',
  'data:text/html,<b>',
  'vbscript:x',
  'file:///etc/passwd',
  '//evil.test',
  '@evil.test/',
  '.evil.test',
  'evil.test/.x',
  ':80@evil.test/',
  '\\\\evil.test\\',
  'https://ok.test/"><b>',
  "https://ok.test/' x='",
  'https://ok.test/a b',
  'a@b.test?bcc=evil@x.test',
  '../../',
  '..',
  '?a=b&c=d#e',
  '%0d%0aBcc: x',
  '%22%3e%3cscript%3e',
  '\r\nBcc: evil@x.test',
  '\r\n\r\n<html>',
  '\n\n--\n',
  '\n.\n',
  '\u2028',
  '\u202E',
  '\uFDD00\uFDD1',
  '\uFDD20(\uFDD3',
  '{{email}}',
  "{{x | '<b>'}}",
  '{{unsubscribeUrl}}',
  '{{constructor}}',
  '[x](javascript:1)',
  '![x](https://evil.test/x.png)',
  '<https://evil.test>',
  '**b** _i_ ~~s~~',
  '# h',
  '\n# h\n- l\n> q',
  '| a | b |',
  '=?utf-8?B?PGI+?=',
  'only for one ?',
  '😀',
  'é',
]

/** Returns all fragments, then random combinations of fragments and characters until there are `count`. */
export function attacks(count: number, random: () => number): string[] {
  const among = (most: number) => Math.floor(random() * most)
  function combination(): string {
    const parts = Array.from({ length: 2 + among(3) }, () =>
      among(5) === 0 ? anything() : (FRAGMENTS[among(FRAGMENTS.length)] ?? ''),
    )
    return parts.join(among(3) === 0 ? ' ' : '')
  }
  function anything(): string {
    return Array.from({ length: 1 + among(6) }, () =>
      // Neither rows nor documents can contain NUL.
      String.fromCodePoint(1 + (among(2) === 0 ? among(0x7f) : among(0x2fff))),
    ).join('')
  }
  const made = [...FRAGMENTS]
  while (made.length < count) made.push(combination())
  // Values that mean "no" or "nothing" rightly hide conditional content, so they are left out.
  return made.filter((attack) => !/^(?:0|false)?$/i.test(onOneLine(attack)))
}

/** Returns the part of an attack that the syntax of a Markdown fallback can contain. */
export function markdownFallback(attack: string): string {
  return (
    onOneLine(attack)
      .replaceAll(/['\\{}]/g, '')
      .trim() || 'x'
  )
}

/** Returns a value as it may be shown: one line of printable text. */
export function onOneLine(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069\ufdd0-\ufdd5]+/gu, ' ')
    .trim()
}
