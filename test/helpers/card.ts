import type { FilledEmail } from '../../src/content/fill.ts'

/** Returns the HTML inside the card. */
export function cardOf({ html }: FilledEmail): string {
  const from = html.indexOf('>', html.indexOf('class="pl-card"')) + 1
  const end = html.lastIndexOf('</td></tr>\n<tr><td class="pl-foot"')
  return html
    .slice(from, end < 0 ? html.indexOf('</td></tr></table>\n<!--[if mso]></td></tr></table>', from) : end)
    .trim()
}

/** Returns the text part without the added footer. */
export function textOf({ text }: FilledEmail): string {
  return text.replace(/\n*--\n(?:Engines & Co)?\n(?:Unsubscribe: \S+\n)?$/, '\n')
}
