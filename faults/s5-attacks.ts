/** Sequences that some reader may interpret as the end of a header line. */
const LINE_ENDS = [
  '\r\n',
  '\n',
  '\r',
  '\r\n ',
  '\n\t',
  '\u0000',
  '\u0085',
  '\u2028',
  '\u2029',
  '\u000b',
  '\u000c',
  '\r\n\r\n',
]
const HEADERS = [
  'X-Evil: yes',
  'Bcc: evil@evil.example',
  'From: evil@evil.example',
  'Subject: twice',
  'Content-Type: text/html',
  'List-Unsubscribe: <http://evil.example>',
  '<script>',
]
const LEADS = [
  'A',
  '',
  '"',
  'é'.repeat(90),
  '😀'.repeat(40),
  'word '.repeat(60),
  'x'.repeat(200),
  '\\',
  '(',
  '<a@b.example>, ',
]

/** Returns all line ends and all disguises of one, then random combinations until there are `count`. */
export function headerAttacks(count: number, random: () => number): string[] {
  const [first = ''] = HEADERS
  const among = <Each>(list: readonly Each[]): Each | undefined => list[Math.floor(random() * list.length)]
  const made = [
    ...LINE_ENDS.map((end) => `A${end}${first}`),
    ...hidden('A\r\n', first),
    `${'é'.repeat(90)}\u2028${first}`,
    `${'word '.repeat(60)}\u2029${first}`,
  ]
  while (made.length < count) {
    const [lead = '', end = '', header = ''] = [among(LEADS), among(LINE_ENDS), among(HEADERS)]
    made.push(among([`${lead}${end}${header}`, ...hidden(`${lead}${end}`, header)]) ?? '')
  }
  return made
}

/** Returns the attack in disguise: as encoded words, behind quotes and percent-encoded. */
function hidden(before: string, header: string): string[] {
  const quoted = encodeURIComponent(before.toWellFormed()).replaceAll('%', '=')
  return [
    `=?utf-8?Q?${quoted}${header.replaceAll(' ', '_')}?=`,
    `=?utf-8?B?${Buffer.from(before + header).toString('base64')}?=`,
    `=?iso-8859-1?q?=0D=0A${header.replaceAll(' ', '_')}?=`,
    `" <evil@evil.example>, "${header}`,
    `${encodeURIComponent(before.toWellFormed())}${header}`,
  ]
}
