import { createHash } from 'node:crypto'
import { escapeHtml } from '../content/escape.ts'
import { flatten } from '../content/variables.ts'

/** What a page says; every field is plain text and is escaped by `render`. */
interface Page {
  readonly title: string
  readonly symbol: keyof typeof SYMBOLS
  /** The organization that the page speaks for, where one is known. */
  readonly organization?: string | undefined
  readonly paragraphs: readonly string[]
  /** A button that posts to this address. */
  readonly action?: { readonly url: string; readonly label: string }
  /** A last, quieter sentence. */
  readonly note?: string
}

// Works without scripts, images and fonts from anywhere: these pages open in every kind of browser.
const STYLE = `:root{color-scheme:light dark;--page:#f3f4f6;--card:#fff;--line:#e1e4e8;--text:#1f2328;--soft:#57606a;--accent:#1d4ed8;--on-accent:#fff;--halo:#e8eefc}
@media (prefers-color-scheme:dark){:root{--page:#101214;--card:#1a1d21;--line:#2c3036;--text:#e6e8eb;--soft:#a0a7b0;--accent:#8db4ff;--on-accent:#0c1526;--halo:#222c40}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;min-height:100vh;min-height:100dvh;display:flex;flex-direction:column;align-items:center;justify-content:center;gap:20px;padding:24px 16px;background:var(--page);color:var(--text);font:17px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif}
main{width:100%;max-width:440px;padding:32px 28px;background:var(--card);border:1px solid var(--line);border-radius:14px;text-align:center;overflow-wrap:anywhere}
svg{width:64px;height:64px;padding:16px;border-radius:50%;background:var(--halo);fill:none;stroke:var(--accent);stroke-width:2;stroke-linecap:round;stroke-linejoin:round}
h1{margin:18px 0 10px;font-size:1.45rem;line-height:1.25;text-wrap:balance}
p{margin:0 0 10px;text-wrap:pretty}
form{margin:24px 0 0}
button{width:100%;min-height:50px;padding:12px 20px;border:1px solid var(--accent);border-radius:10px;background:var(--accent);color:var(--on-accent);font:inherit;font-weight:600;cursor:pointer}
button:hover{filter:brightness(1.08)}
button:focus-visible{outline:3px solid var(--accent);outline-offset:3px}
.note{margin:18px 0 0;color:var(--soft);font-size:.9rem}
footer{max-width:440px;color:var(--soft);font-size:.9rem;text-align:center;overflow-wrap:anywhere}
@media (max-width:359px){main{padding:26px 18px}}`

/**
 * The Content-Security-Policy these pages are served with: their own style sheet and forms to this
 * server, nothing else, and no frame around them (a framed button could be clicked unawares).
 */
export const PAGE_SECURITY_POLICY: string = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const SYMBOLS = {
  mail: '<rect x="3" y="5" width="18" height="14" rx="2"/><path d="m4 7 8 6 8-6"/>',
  done: '<path d="m5 13 4.500 4.500L19 7"/>',
  lost: '<circle cx="11" cy="11" r="7"/><path d="m16.500 16.500 4 4M8.500 11h5"/>',
} as const

function plain(text: string): string {
  return escapeHtml(flatten(text))
}

function main(page: Page): string {
  const lines = [
    `<svg viewBox="0 0 24 24" aria-hidden="true">${SYMBOLS[page.symbol]}</svg>`,
    `<h1>${plain(page.title)}</h1>`,
    ...page.paragraphs.map((text) => `<p>${plain(text)}</p>`),
  ]
  if (page.action !== undefined) {
    const { url, label } = page.action
    lines.push(
      `<form method="post" action="${escapeHtml(url)}"><button type="submit">${plain(label)}</button></form>`,
    )
  }
  if (page.note !== undefined) lines.push(`<p class="note">${plain(page.note)}</p>`)
  return `<main>\n${lines.join('\n')}\n</main>`
}

function render(page: Page): string {
  const organization = plain(page.organization ?? '')
  const title = plain(page.title)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>${organization === '' ? title : `${title} · ${organization}`}</title>
<style>${STYLE}</style>
</head>
<body>
${main(page)}
${organization === '' ? '' : `<footer>${organization}</footer>\n`}</body>
</html>
`
}

/**
 * A page whose button does something: `ask` shows the button, `done` says that it happened. `email` is
 * the reader's address as it may be shown, see `maskEmail`.
 */
export type ActionPage = { readonly organization: string; readonly email?: string | undefined } & (
  | { readonly state: 'ask'; readonly actionUrl: string }
  | { readonly state: 'done' }
)

/** An address as far as someone who only holds a link may see it: `a•••@example.com`. */
export function maskEmail(email: string): string {
  const at = email.lastIndexOf('@')
  const [first = ''] = email
  return at < 1 ? '•••' : `${first}•••${email.slice(at)}`
}

/** Opening it changes nothing, because mail scanners follow links; its button posts (RFC 8058 asks for the same). */
export function unsubscribePage(page: ActionPage): string {
  const { organization, email = 'you' } = page
  if (page.state === 'done') {
    return render({
      title: 'You are unsubscribed',
      symbol: 'done',
      organization,
      paragraphs: [`${organization} will send no more newsletters to ${email}.`],
      note: 'A message that was already on its way may still arrive.',
    })
  }
  return render({
    title: 'Unsubscribe?',
    symbol: 'mail',
    organization,
    paragraphs: [`${organization} will stop sending newsletters to ${email}.`],
    action: { url: page.actionUrl, label: 'Unsubscribe' },
    note: 'Here by mistake? Close this page and nothing changes.',
  })
}

/** Opening it changes nothing, because mail scanners follow links; its button posts. */
export function confirmSubscriptionPage(page: ActionPage): string {
  const { organization, email = 'you' } = page
  if (page.state === 'done') {
    return render({
      title: 'You are subscribed',
      symbol: 'done',
      organization,
      paragraphs: [`${organization} will send its news to ${email}.`],
      note: 'Every email has a link to unsubscribe.',
    })
  }
  return render({
    title: 'Confirm your subscription',
    symbol: 'mail',
    organization,
    paragraphs: [`${organization} would like to send its news to ${email}.`],
    action: { url: page.actionUrl, label: 'Yes, subscribe me' },
    note: 'Did you not ask for this? Close this page and nothing happens.',
  })
}

/** A confirmation that came after its time. */
export function lateConfirmationPage(organization: string): string {
  return render({
    title: 'This link has expired',
    symbol: 'lost',
    organization,
    paragraphs: ['A confirmation link works for seven days.', 'Sign up again to get a new one.'],
  })
}

/** A link that was mistyped, changed, used up or too old; it says the same for all, so that nothing can be probed. */
export function lostLinkPage(): string {
  return render({
    title: 'This link does not work',
    symbol: 'lost',
    paragraphs: [
      'It is incomplete, or it has expired.',
      'Open it again from the newest message you received, or copy the whole address.',
    ],
  })
}
