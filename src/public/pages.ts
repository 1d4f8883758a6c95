import { escapeHtml } from '../content/escape.ts'
import { framePage, type PageSymbol, plain } from './page-frame.ts'

/** The content of a page; every field is plain text, which `render` escapes. */
type Page = {
  readonly title: string
  readonly symbol: PageSymbol
  /** The organization that the page speaks for, if known. */
  readonly organization?: string | undefined
  readonly paragraphs: readonly string[]
  /** A button that posts to this address. */
  readonly action?: { readonly url: string; readonly label: string }
  /** A last, quieter sentence. */
  readonly note?: string
}

function render(page: Page): string {
  const lines = page.paragraphs.map((text) => `<p>${plain(text)}</p>`)
  if (page.action !== undefined) {
    const { url, label } = page.action
    lines.push(
      `<form method="post" action="${escapeHtml(url)}"><button type="submit">${plain(label)}</button></form>`,
    )
  }
  if (page.note !== undefined) lines.push(`<p class="note">${plain(page.note)}</p>`)
  const { title, symbol, organization } = page
  return framePage({ title, symbol, organization, lines })
}

/**
 * A page with a button: `ask` shows the button, `done` confirms the action. `email` is the reader's address, masked by
 * `maskEmail`.
 */
export type ActionPage = { readonly organization: string; readonly email?: string | undefined } & (
  | { readonly state: 'ask'; readonly actionUrl: string }
  | { readonly state: 'done' }
)

/** Masks an address for someone who only has a link: `a•••@example.com`. */
export function maskEmail(email: string): string {
  const at = email.lastIndexOf('@')
  const [first = ''] = email
  return at < 1 ? '•••' : `${first}•••${email.slice(at)}`
}

/**
 * Returns the unsubscribe page. Opening it changes nothing, because mail scanners follow links; only its button posts
 * (as RFC 8058 asks).
 */
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

/**
 * Returns the confirmation page. Opening it changes nothing, because mail scanners follow links; only its button posts.
 */
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

/** Returns the page for an expired confirmation link. */
export function lateConfirmationPage(organization: string): string {
  return render({
    title: 'This link has expired',
    symbol: 'lost',
    organization,
    paragraphs: ['A confirmation link works for seven days.', 'Sign up again to get a new one.'],
  })
}

/** Returns the page of sample links, which replace personal links in tests and previews. */
export function sampleLinkPage(): string {
  return render({
    title: 'This link is a sample',
    symbol: 'mail',
    paragraphs: [
      'It comes from a test or a preview of an email, which goes to nobody who could use it.',
      'In the email itself every reader has a link of their own.',
    ],
  })
}

/**
 * Returns the page for a link that is mistyped, changed, used up or expired. It is the same for all of these, so that
 * it reveals nothing.
 */
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

/** Returns the page for a time when the database cannot be reached or answers too slowly. */
export function unavailablePage(): string {
  return render({
    title: 'Please try again in a moment',
    symbol: 'lost',
    paragraphs: ['This service cannot answer right now.'],
    note: 'Did you press a button? Open the link again then, to see whether it counted.',
  })
}

/** Returns the page of a request that failed otherwise; `message` says why. */
export function failedPage(message: string): string {
  return render({ title: 'This did not work', symbol: 'lost', paragraphs: [message] })
}
