import { html, type Html } from './html.ts'
import { readHeaders, type OpenedMail, type Part } from './present.ts'
import type { Address, Counts, StoredMail, Summary } from './store.ts'

/** The views of one mail. */
export const SHOWS = ['html', 'text', 'headers', 'raw'] as const
export type Show = (typeof SHOWS)[number]

const LABELS: Record<Show, string> = { html: 'HTML', text: 'Text', headers: 'Headers', raw: 'Source' }
const MAX_SHOWN = 1_000_000

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#4f46e5"/>' +
    '<path d="M7 10.5h18v12H7z M7 10.5l9 7.5 9-7.5" fill="none" stroke="#fff" stroke-width="2" stroke-linejoin="round"/></svg>',
)}`

/** The data of one page of the inbox. */
export type ListView = {
  mails: Summary[]
  matching: number
  counts: Counts
  query: string
  start: number
  size: number
}

/** Returns a page of the inbox, newest mail first. */
export function listPage(view: ListView): string {
  const { counts, query, mails } = view
  return page(
    counts.unread > 0 ? `(${counts.unread}) Mailbox` : 'Mailbox',
    html`<main data-latest="${counts.latest}-${counts.total}-${counts.unread}">
      ${toolbar(view)}
      ${
        mails.length === 0
          ? emptyNote(query)
          : html`<ul class="list">
              ${mails.map(listRow)}
            </ul>`
      }
      ${pager(view)}
    </main>`,
    query,
  )
}

/** Returns the page of one mail in one of the views. */
export function messagePage(opened: OpenedMail, mail: StoredMail, show: Show): string {
  const { message } = opened
  const shows = SHOWS.filter((name) => name !== 'html' || message.HTML)
  return page(
    message.Subject || 'No subject',
    html`<main class="message">
      <div class="actions">
        <a class="button" href="/">← Mailbox</a>
        <form method="post" action="/delete">
          <input type="hidden" name="id" value="${message.ID}" />
          <button class="button danger">Delete</button>
        </form>
      </div>
      <header>
        <h1>${message.Subject || 'No subject'}</h1>
        <dl>
          ${row('From', [message.From])}${row('To', message.To)}${row('Cc', message.Cc)}
          ${row('Bcc', message.Bcc)}${row('Reply to', message.ReplyTo)}
          <dt>Date</dt>
          <dd>${fullTime(mail.summary.Created)} · ${size(message.Size)}</dd>
        </dl>
        ${files(message.ID, message.Attachments)}
      </header>
      <nav class="tabs">
        ${shows.map(
          (name) =>
            html`<a href="/view/${message.ID}?show=${name}" ${name === show && html`aria-current="page"`}
              >${LABELS[name]}</a
            >`,
        )}
      </nav>
      ${content(opened, mail, show)}
    </main>`,
  )
}

/** Returns a page with one sentence, such as an error. */
export function noticePage(message: string): string {
  return page(
    'Mailbox',
    html`<main>
      <p class="empty">${message}</p>
      <p class="empty"><a href="/">Back to the mailbox</a></p>
    </main>`,
  )
}

function page(title: string, main: Html, query = ''): string {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="icon" href="${ICON}" />
        <link rel="stylesheet" href="/assets/mailbox.css" />
        <script src="/assets/mailbox.js" type="module"></script>
      </head>
      <body>
        <div class="bar">
          <a class="brand" href="/"><img src="${ICON}" alt="" width="28" height="28" />Mailbox</a>
          <form class="search" action="/" role="search">
            <input
              type="search"
              name="query"
              value="${query}"
              placeholder="Search: to:ada subject:welcome"
              aria-label="Search mail"
            />
          </form>
        </div>
        ${main}
      </body>
    </html>`.text
}

function toolbar({ counts, query, matching }: ListView): Html {
  const found = query
    ? `${matching} of ${counts.total} match`
    : `${counts.total} mails, ${counts.unread} unread`
  return html`<div class="actions">
    <p>${found}</p>
    ${
      matching > 0 &&
      html`<form
        method="post"
        action="/delete"
        data-confirm="Delete ${query ? 'these' : 'all'} ${matching} mails?"
      >
        <input type="hidden" name="query" value="${query}" />
        <button class="button danger">Delete ${query ? 'these' : 'all'}</button>
      </form>`
    }
  </div>`
}

function emptyNote(query: string): Html {
  if (query) return html`<p class="empty">Nothing matches “${query}”. <a href="/">Show all</a></p>`
  return html`<p class="empty">No mail yet. What Postloom sends in development lands here.</p>`
}

function listRow(mail: Summary): Html {
  return html`<li>
    <a class="${mail.Read ? 'mail' : 'mail unread'}" href="/view/${mail.ID}">
      <span class="from">${mail.From.Name || mail.From.Address || 'Nobody'}</span>
      <span class="to"
        >to ${[...mail.To, ...mail.Cc, ...mail.Bcc].map(({ Address }) => Address).join(', ')}</span
      >
      <span class="line"><b>${mail.Subject || 'No subject'}</b> <i>${mail.Snippet}</i></span>
      <span class="when"
        >${mail.Attachments > 0 && html`<small>${mail.Attachments} ${mail.Attachments === 1 ? 'file' : 'files'} · </small>`}<time
          datetime="${mail.Created}"
          >${shortTime(mail.Created)}</time
        ></span
      >
    </a>
  </li>`
}

function pager({ start, size: step, matching, query }: ListView): Html {
  const link = (to: number, label: string): Html =>
    html`<a class="button" href="/?${new URLSearchParams({ query, start: String(to) }).toString()}"
      >${label}</a
    >`
  return html`<nav class="pager">
    ${start > 0 && link(Math.max(0, start - step), '← Newer')}
    ${start + step < matching && link(start + step, 'Older →')}
  </nav>`
}

function row(label: string, list: readonly Address[]): Html {
  if (list.length === 0) return html``
  const shown = list.map(({ Name, Address }) => (Name ? `${Name} <${Address}>` : Address)).join(', ')
  return html`<dt>${label}</dt>
    <dd>${shown}</dd>`
}

function files(id: string, parts: readonly Part[]): Html {
  if (parts.length === 0) return html``
  return html`<ul class="files">
    ${parts.map(
      (part) =>
        html`<li>
          <a class="button" href="/api/v1/message/${id}/part/${part.PartID}"
            >${part.FileName || part.ContentType} · ${size(part.Size)}</a
          >
        </li>`,
    )}
  </ul>`
}

function content({ message }: OpenedMail, mail: StoredMail, show: Show): Html {
  switch (show) {
    case 'html':
      return html`<iframe
        title="The mail as its reader sees it"
        sandbox="allow-popups allow-popups-to-escape-sandbox"
        src="/view/${message.ID}.html"
      ></iframe>`
    case 'text':
      return message.Text
        ? html`<pre class="text">${linked(message.Text)}</pre>`
        : html`<p class="empty">This mail has no text part.</p>`
    case 'headers':
      return headerTable(mail.raw)
    case 'raw':
      return html`<p class="actions">
          <a class="button" href="/api/v1/message/${message.ID}/raw">Open alone</a>
        </p>
        <pre>${mail.raw.toString('utf8', 0, MAX_SHOWN)}</pre>`
  }
}

function headerTable(raw: Buffer): Html {
  const entries = Object.entries(readHeaders(raw)).flatMap(([name, values]) =>
    values.map(
      (value) =>
        html`<tr>
          <th scope="row">${name}</th>
          <td>${value}</td>
        </tr>`,
    ),
  )
  return html`<div class="scroll">
    <table>
      ${entries}
    </table>
  </div>`
}

/** Returns the text escaped, with its web addresses as links. */
function linked(text: string): Html[] {
  return text
    .split(/(https?:\/\/[^\s<>"]*[^\s<>"'.,;:!?)\]])/)
    .map((part, index) =>
      index % 2 === 1
        ? html`<a href="${part}" target="_blank" rel="noopener noreferrer">${part}</a>`
        : html`${part}`,
    )
}

function shortTime(iso: string): string {
  const time = new Date(iso)
  const isToday = time.toDateString() === new Date().toDateString()
  return isToday
    ? time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' })
    : time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
}

function fullTime(iso: string): string {
  return new Date(iso).toLocaleString('en-GB', { dateStyle: 'full', timeStyle: 'medium' })
}

function size(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`
  if (bytes < 1_048_576) return `${(bytes / 1_024).toFixed(1)} KB`
  return `${(bytes / 1_048_576).toFixed(1)} MB`
}
