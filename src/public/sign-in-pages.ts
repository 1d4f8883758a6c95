import { escapeHtml } from '../content/escape.ts'
import { framePage, plain } from './page-frame.ts'

/** The client that asks for access: its own name, and where answers are sent, which it cannot make up. */
export type ClientCard = { name: string; destination: string }

/** Returns the page that asks for address and password; its form posts to the page's own address. */
export function signInPage(page: { client: ClientCard; email: string; alert?: string | undefined }): string {
  const { client, email, alert } = page
  return framePage({
    title: 'Sign in to Postloom',
    symbol: 'key',
    hasForm: true,
    lines: [
      `<p>to let <strong>${plain(client.name)}</strong> in.</p>`,
      '<form class="sign" method="post">',
      ...(alert === undefined ? [] : [`<p class="alert" role="alert">${plain(alert)}</p>`]),
      `<label>Email address<input type="email" name="email" value="${escapeHtml(email)}" autocomplete="username" required maxlength="254"${email === '' ? ' autofocus' : ''}></label>`,
      `<label>Password<input type="password" name="password" autocomplete="current-password" required maxlength="200"${email === '' ? '' : ' autofocus'}></label>`,
      '<button type="submit">Sign in</button>',
      '</form>',
      '<p class="note">Did you not start this? Close this page and nothing happens.</p>',
    ],
  })
}

/** Returns the page that asks whether to let the client in; with several organizations, the member chooses one. */
export function consentPage(page: {
  client: ClientCard
  email: string
  organizations: readonly { id: string; name: string }[]
  scopes: readonly string[]
}): string {
  const { client, email, organizations, scopes } = page
  const [first] = organizations
  const isOne = organizations.length === 1
  const choice = isOne
    ? `<input type="hidden" name="organization" value="${escapeHtml(first?.id ?? '')}">`
    : `<label>Organization<select name="organization">${organizations
        .map(({ id, name }) => `<option value="${escapeHtml(id)}">${plain(name)}</option>`)
        .join('')}</select></label>`
  return framePage({
    title: `Let ${client.name} in?`,
    symbol: 'link',
    organization: isOne ? first?.name : undefined,
    hasForm: true,
    lines: [
      `<p>You are signed in as <strong>${plain(email)}</strong>. The answer goes to <strong>${plain(client.destination)}</strong>; let it in only if you started this there.</p>`,
      '<ul class="facts">',
      ...(scopes.includes('read')
        ? ['<li>It reads everything: subscribers, campaigns, workflows and figures.</li>']
        : []),
      ...(scopes.includes('draft')
        ? ['<li>It writes drafts of campaigns and workflows, snippets and images.</li>']
        : []),
      '<li class="not">It cannot send, schedule, publish, delete, archive or unsubscribe.</li>',
      '</ul>',
      '<form class="sign" method="post">',
      choice,
      '<button type="submit" name="decision" value="allow">Let it in</button>',
      '<button class="quiet" type="submit" name="decision" value="deny">No</button>',
      '</form>',
    ],
  })
}

/** Returns the page for a sign-in that cannot continue; `reason` is shown to the member. */
export function lostSignInPage(reason = 'It took too long, or it was finished already.'): string {
  return framePage({
    title: 'This sign-in cannot go on',
    symbol: 'lost',
    lines: [`<p>${plain(reason)}</p>`, '<p>Go back to the app that sent you here and start again.</p>'],
  })
}
