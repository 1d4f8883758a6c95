import type { EmailParts } from './email-parts.ts'
import { linkMark, referenceMark } from './references.ts'
import { PIXEL, type Template } from './template.ts'
import { OUTLOOK_SHEET, SHEET, STYLE } from './theme.ts'

// Invisible characters after the preview keep inboxes from showing the beginning of the body beside it.
const PREVIEW_PADDING = '&#847;&zwnj;&nbsp;'.repeat(60)

const HIDDEN =
  'display:none;max-height:0;max-width:0;overflow:hidden;opacity:0;color:transparent;font-size:1px;line-height:1px;mso-hide:all'

/** The text of unsubscribe links that the service adds. It is English, whatever the language of the email. */
export const UNSUBSCRIBE = '<span lang="en">Unsubscribe</span>'

/** Writes the preheader: the text that inboxes show beside the subject, invisible in the message itself. */
export function writePreheader(parts: EmailParts, preview: string): void {
  if (preview === '') return
  parts.html.fixed(`<div style="${HIDDEN}">`)
  parts.escaped(preview)
  parts.html.fixed(`${PREVIEW_PADDING}</div>\n`)
}

/**
 * Whom an email is for. Marketing mail always has a footer with its sender, transactional mail only if it has no
 * unsubscribe link, and a notice to the organization's own people never.
 */
export type MailKind = 'marketing' | 'transactional' | 'notice'

/** The data of the document around the content: head, page, card and footer. */
export type Frame = { readonly subject: string; readonly preview: string; readonly kind: MailKind }

/**
 * Writes a whole email document around what `body` writes. The document declares no language because the service does
 * not know it: a screen reader then uses its user's language, while a wrong declaration would make it mispronounce
 * every word.
 */
export function writeFrame(parts: EmailParts, frame: Frame, body: () => void): Template {
  parts.html.fixed(`<!doctype html>
<html dir="ltr" xmlns="http://www.w3.org/1999/xhtml" xmlns:o="urn:schemas-microsoft-com:office:office">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="x-apple-disable-message-reformatting">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>`)
  parts.escaped(frame.subject)
  parts.html.fixed(`</title>
<!--[if mso]><xml><o:OfficeDocumentSettings><o:PixelsPerInch>96</o:PixelsPerInch></o:OfficeDocumentSettings></xml><style>${OUTLOOK_SHEET}</style><![endif]-->
<style>
${SHEET}
</style>
</head>
<body class="pl-page" style="margin:0;padding:0;width:100%;background-color:#f3f4f6;word-break:break-word">
`)
  writePreheader(parts, frame.preview)
  parts.html.fixed(
    `<table role="presentation" class="pl-page" width="100%" cellpadding="0" cellspacing="0" border="0" style="width:100%;background-color:#f3f4f6"><tr><td class="pl-edge" align="center" style="padding:24px 12px">
<!--[if mso]><table role="presentation" width="600" align="center" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="width:100%;max-width:600px;margin:0 auto"><tr><td class="pl-card" style="${STYLE.card};text-align:left">
`,
  )
  body()
  parts.html.fixed('</td></tr>')
  if (hasFooter(frame, parts)) writeFooter(parts)
  parts.html.fixed('</table>\n<!--[if mso]></td></tr></table><![endif]-->\n</td></tr></table>\n')
  parts.html.slot(PIXEL)
  return parts.html.fixed('</body>\n</html>\n').build()
}

function hasFooter({ kind }: Frame, { links }: EmailParts): boolean {
  return kind === 'marketing' || (kind === 'transactional' && !links.hasUnsubscribe)
}

/** Writes the footer: the sender, and an unsubscribe link unless the content already has one. */
function writeFooter(parts: EmailParts): void {
  const needsLink = !parts.links.hasUnsubscribe
  const organization = referenceMark(parts.table.add({ name: 'org-name', fallback: '' }))
  parts.text.endBlock(1)
  parts.text.literalLine('--')
  parts.html.fixed(`\n<tr><td class="pl-foot" style="${STYLE.footer}">`)
  parts.both(organization)
  parts.text.endBlock(0)
  if (needsLink) {
    const address = referenceMark(parts.table.add({ name: 'unsubscribeUrl', fallback: '' }))
    const target = parts.links.add(address)
    parts.html.fixed('<br><a')
    if (target !== null) parts.html.slot({ kind: 'link', target, before: ' href="', after: '"' })
    parts.html.fixed(` style="${STYLE.footerLink}">${UNSUBSCRIBE}</a>`)
    if (target !== null) parts.text.text(`Unsubscribe: ${linkMark(target)}`)
    parts.text.endBlock(0)
  }
  parts.html.fixed('</td></tr>')
}
