import { readFileSync } from 'node:fs'

import { escapeHtml } from '../content/escape.ts'

const START = readFileSync(new URL('developer-start.md', import.meta.url), 'utf8')

/**
 * The Content-Security-Policy of these pages: they load only their own files. Swagger UI has icons in `data:`
 * addresses, and sets styles only by script, so inline styles are not allowed.
 */
export const DEVELOPER_SECURITY_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Returns the start document for developers in Markdown, with this service's own address in every example. */
export function startDocument(baseUrl: string): string {
  return START.replaceAll('{base}', baseUrl)
}

/** Returns the start document as an HTML page. */
export function startPage(baseUrl: string): string {
  const base = escapeHtml(baseUrl)
  return page(
    'Postloom',
    `<main class="start">
<h1>Email that you run yourself</h1>
<p class="lead">Campaigns, automations and transactional email, behind one API. This service answers at <code>${base}</code>.</p>
<nav class="ways" aria-label="Documentation">
<a href="/docs"><strong>API reference</strong><span>Every tool and address, to read and to try with your token.</span></a>
<a href="/openapi.json"><strong>OpenAPI 3.1</strong><span>The same for programs: schemas, refusals, examples.</span></a>
</nav>
<h2>Send one email</h2>
<pre><code>curl -s ${base}/api/v1/emails \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"to": "ada@example.com", "subject": "Receipt", "content": "Thank you, **Ada**."}'</code></pre>
<h2>Run a tool</h2>
<pre><code>curl -s ${base}/api/v2/tools/add_subscriber \\
  -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' \\
  -d '{"email": "ada@example.com", "name": "Ada", "tags": ["newsletter"]}'</code></pre>
<p>Assistants and scripts read this page as Markdown: <code>curl ${base}/</code></p>
</main>`,
  )
}

/** Returns the API reference page, where Swagger UI shows `/openapi.json`. */
export function referencePage(): string {
  return page(
    'Postloom API',
    `<div id="reference"><noscript><p class="lead">The reference is drawn by a script. Without one, read <a href="/openapi.json">openapi.json</a>.</p></noscript></div>`,
    `<link rel="stylesheet" href="/docs/swagger-ui.css">
<script src="/docs/swagger-ui-bundle.js" defer></script>
<script src="/docs/reference.js" defer></script>`,
  )
}

function page(title: string, content: string, head = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${head}
<link rel="stylesheet" href="/docs/reference.css">
</head>
<body>
<header class="bar"><a class="name" href="/"><svg viewBox="0 0 24 24" aria-hidden="true"><rect x="3" y="5" width="18" height="14" rx="2"/><path d="m4 7 8 6 8-6"/></svg>Postloom</a>
<nav aria-label="Pages"><a href="/">Start</a><a href="/docs">Reference</a><a href="/openapi.json">OpenAPI</a></nav></header>
${content}
</body>
</html>
`
}
