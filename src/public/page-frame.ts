import { createHash } from 'node:crypto'

import { escapeHtml } from '../content/escape.ts'
import { flatten } from '../content/variables.ts'

// Uses no scripts, images or web fonts, because these pages open in every kind of browser.
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

/** Additional styles for the forms of the sign-in pages. */
const FORM_STYLE = `label{display:block;margin:0 0 14px;text-align:left;font-weight:600;font-size:.95rem}
input[type=email],input[type=password],select{display:block;width:100%;min-height:48px;margin-top:6px;padding:10px 14px;border:1px solid var(--edge);border-radius:10px;background:var(--page);color:var(--text);font:inherit;font-size:1rem;font-weight:400}
input:focus-visible,select:focus-visible{outline:3px solid var(--accent);outline-offset:1px}
:root{--edge:#8a929c;--alert:#b42318}
@media (prefers-color-scheme:dark){:root{--edge:#6b737d;--alert:#ff9b91}}
.alert{margin:0 0 18px;color:var(--alert);font-weight:600}
.facts{margin:20px 0;padding:0;list-style:none;text-align:left}
.facts li{padding:10px 0 10px 30px;border-top:1px solid var(--line);position:relative}
.facts li:last-child{border-bottom:1px solid var(--line)}
.facts li::before{content:"";position:absolute;left:6px;top:19px;width:10px;height:10px;border-radius:50%;background:var(--accent)}
.facts li.not::before{background:none;border:2px solid var(--edge)}
.quiet{margin-top:12px;background:none;color:var(--accent)}
form.sign{margin-top:22px}`

/**
 * Returns the Content-Security-Policy of a page: its own style sheet, forms that post to these addresses, and no frame
 * around it.
 */
function securityPolicy(style: string, formAction: string): string {
  return [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    `form-action ${formAction}`,
    "base-uri 'none'",
    // Prevents clickjacking.
    "frame-ancestors 'none'",
  ].join('; ')
}

/** The Content-Security-Policy of pages that have at most a button. */
export const PAGE_SECURITY_POLICY: string = securityPolicy(STYLE, "'self'")

/**
 * Returns the Content-Security-Policy of pages with a form. Browsers apply `form-action` to redirects after the form as
 * well, so their addresses are included.
 */
export function formSecurityPolicy(...redirects: string[]): string {
  return securityPolicy(`${STYLE}${FORM_STYLE}`, ["'self'", ...redirects].join(' '))
}

const SYMBOLS = {
  mail: '<rect x="3" y="5" width="18" height="14" rx="2"/><path d="m4 7 8 6 8-6"/>',
  done: '<path d="m5 13 4.500 4.500L19 7"/>',
  key: '<circle cx="8" cy="15" r="4"/><path d="m11 12 8-8M16 7l3 3"/>',
  link: '<path d="M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1.500 1.500M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1.500-1.500"/>',
  lost: '<circle cx="11" cy="11" r="7"/><path d="m16.500 16.500 4 4M8.500 11h5"/>',
} as const

/** The symbol above the title. */
export type PageSymbol = keyof typeof SYMBOLS

/** Escapes text from users for HTML, on one line. */
export function plain(text: string): string {
  return escapeHtml(flatten(text))
}

/** Returns a whole page around lines of HTML; `organization` is the one that the page speaks for. */
export function framePage(page: {
  title: string
  symbol: PageSymbol
  organization?: string | undefined
  lines: readonly string[]
  hasForm?: boolean
}): string {
  const organization = plain(page.organization ?? '')
  const title = plain(page.title)
  const lines = [
    `<svg viewBox="0 0 24 24" aria-hidden="true">${SYMBOLS[page.symbol]}</svg>`,
    `<h1>${title}</h1>`,
    ...page.lines,
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="${page.hasForm ? 'same-origin' : 'no-referrer'}">
<meta name="color-scheme" content="light dark">
<title>${organization === '' ? title : `${title} · ${organization}`}</title>
<style>${STYLE}${page.hasForm ? FORM_STYLE : ''}</style>
</head>
<body>
<main>
${lines.join('\n')}
</main>
${organization === '' ? '' : `<footer>${organization}</footer>\n`}</body>
</html>
`
}
