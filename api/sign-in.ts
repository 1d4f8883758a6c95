import Router from '@koa/router'
import type { Context } from 'koa'
import { type Client, errors, type InteractionResults, type Interaction } from 'oidc-provider'
import type Provider from 'oidc-provider'

import { Failure } from '../src/catalogue/failure.ts'
import { formSecurityPolicy } from '../src/public/page-frame.ts'
import { type ClientCard, consentPage, lostSignInPage, signInPage } from '../src/public/sign-in-pages.ts'
import { findMember, grantAccess, type Login, signIn } from '../src/public/sign-in.ts'
import type { Services } from '../src/services.ts'
import { Throttle } from '../src/throttle.ts'
import { readText } from './body.ts'
import { audienceOf, GRANT_SECONDS, speakAs } from './oauth-server.ts'
import { showPage } from './page.ts'

/** Maximum number of password attempts, right or wrong, within the window: for one account, and from one address. */
const TRIES = { account: 10, address: 50 }
const WINDOW_MS = 15 * 60_000
const FORM_BYTES = 10_000
const NAME_LENGTH = 80
/** The longest address that a member can have, in characters (RFC 5321). */
const EMAIL_LENGTH = 254

/** A sign-in in progress, as identified by the browser's cookie. */
type SignIn = { ctx: Context; server: Provider; interaction: Interaction; client: Client }

/** The pages where a member signs in and lets a client in. Each step is a form that posts to its own address. */
export function signInRoutes(services: Services, serverOf: () => Provider): Router {
  const tries = {
    account: new Throttle(TRIES.account, WINDOW_MS),
    address: new Throttle(TRIES.address, WINDOW_MS),
  }
  const router = new Router()

  router.get('/oauth/sign-in/:uid', async (ctx) => {
    const signingIn = await find(serverOf(), ctx)
    if (!signingIn) return showPage(ctx, 400, lostSignInPage())
    if (signingIn.interaction.prompt.name === 'login') return showSignIn(signingIn, '')
    await showConsent(services, signingIn)
  })

  router.post('/oauth/sign-in/:uid', async (ctx) => {
    refuseForeignForm(services, ctx)
    const form = await readForm(ctx)
    const signingIn = await find(serverOf(), ctx)
    if (!signingIn) return showPage(ctx, 400, lostSignInPage())
    if (signingIn.interaction.prompt.name === 'login') await takePassword(services, tries, signingIn, form)
    else await takeConsent(services, signingIn, form)
  })

  return router
}

/** Returns the sign-in of this address and browser, or null if it is over or belongs to another browser. */
async function find(server: Provider, ctx: Context): Promise<SignIn | null> {
  speakAs(server, ctx)
  try {
    const interaction = await server.interactionDetails(ctx.req, ctx.res)
    const client = await server.Client.find(String(interaction.params['client_id']))
    if (interaction.uid !== ctx.params['uid'] || !client) return null
    return { ctx, server, interaction, client }
  } catch (error) {
    if (error instanceof errors.TemporarilyUnavailable) throw error
    // The sign-in is over, or the document of its client can no longer be read.
    if (error instanceof errors.OIDCProviderError) return null
    throw error
  }
}

async function takePassword(
  services: Services,
  tries: Record<keyof typeof TRIES, Throttle>,
  signingIn: SignIn,
  form: URLSearchParams,
): Promise<void> {
  const { ctx, interaction } = signingIn
  const [email, password] = [(form.get('email') ?? '').trim(), form.get('password') ?? '']
  // Counted before the password is checked, so that parallel attempts count too. Those over the limit of their address
  // are not counted for the account: one sender could close any number of accounts, or displace their counts.
  const fromAddress = tries.address.count(ctx.ip)
  const isHeard = fromAddress.left >= 0
  const account = email.slice(0, EMAIL_LENGTH).toLowerCase()
  const counted = isHeard ? [fromAddress, tries.account.count(account)] : [fromAddress]
  const over = counted.filter(({ left }) => left < 0)
  if (over.length > 0) {
    const waitMs = Math.max(...over.map(({ endsInMs }) => endsInMs))
    const minutes = Math.ceil(waitMs / 60_000)
    ctx.set('Retry-After', String(Math.ceil(waitMs / 1_000)))
    const alert = `Too many tries. Wait ${minutes} minute${minutes === 1 ? '' : 's'}, then try again.`
    return showSignIn(signingIn, email, { status: 429, alert })
  }
  const login = await signIn(services, { email, password })
  if (login === null) {
    return showSignIn(signingIn, email, { status: 401, alert: 'Address or password is wrong.' })
  }
  if (interaction.session) {
    // The session of an earlier sign-in may belong to another member.
    delete interaction.session
    await interaction.persist()
    for (const name of ['_session', '_session.sig']) ctx.cookies.set(name, null, { signed: false })
  }
  await goOn(signingIn, {
    login: { accountId: login.id, passwordMark: login.passwordMark, remember: false },
  })
}

async function showConsent(services: Services, signingIn: SignIn): Promise<void> {
  const { ctx, interaction, client } = signingIn
  const member = await findMember(services, loginOf(interaction))
  if (!member) {
    const reason = 'You belong to no organization here any more, or have got a new password.'
    return showPage(ctx, 403, lostSignInPage(reason))
  }
  const { email, organizations } = member
  const redirect = redirectOf(interaction)
  const page = consentPage({
    client: cardOf(client, redirect),
    email,
    organizations,
    scopes: scopesOf(interaction),
  })
  showForm(ctx, 200, page, redirectSource(redirect))
}

async function takeConsent(services: Services, signingIn: SignIn, form: URLSearchParams): Promise<void> {
  const { server, interaction, client } = signingIn
  if (form.get('decision') !== 'allow') {
    return await goOn(signingIn, { error: 'access_denied', error_description: 'The member said no.' })
  }
  const member = await findMember(services, loginOf(interaction))
  const organization = member?.organizations.find(({ id }) => id === form.get('organization'))
  if (!member || !organization) return await showConsent(services, signingIn)
  const grant = new server.Grant({ accountId: member.id, clientId: client.clientId })
  grant.addResourceScope(audienceOf(services.config.baseUrl), scopesOf(interaction).join(' '))
  const grantId = await grant.save()
  try {
    await grantAccess(services, {
      grantId,
      client: { id: client.clientId, name: nameOf(client) },
      member,
      organizationId: organization.id,
      seconds: GRANT_SECONDS,
    })
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'NOT_FOUND') throw error
    // They left the organization, or got a new password, just now.
    return await showConsent(services, signingIn)
  }
  await goOn(signingIn, { consent: { grantId } })
}

/** Stores the result of a step and redirects to the next page, or back to the client. */
async function goOn({ ctx, server }: SignIn, result: InteractionResults): Promise<void> {
  const next = await server.interactionResult(ctx.req, ctx.res, result)
  ctx.status = 303
  ctx.set('Cache-Control', 'no-store')
  ctx.redirect(next)
}

function showSignIn(
  { ctx, interaction, client }: SignIn,
  email: string,
  { status = 200, alert }: { status?: number; alert?: string } = {},
): void {
  const card = cardOf(client, redirectOf(interaction))
  showForm(ctx, status, signInPage({ client: card, email: email.slice(0, EMAIL_LENGTH), alert }))
}

function showForm(ctx: Context, status: number, html: string, ...redirects: string[]): void {
  showPage(ctx, status, html, formSecurityPolicy(...redirects))
  // The Origin and Referer of our own form must name this site, for refuseForeignForm().
  ctx.set('Referrer-Policy', 'same-origin')
}

/** Refuses forms of other sites. The cookie is not sent with those in current browsers; this check covers old ones. */
function refuseForeignForm({ config }: Services, ctx: Context): void {
  const origin = ctx.get('origin')
  const site = ctx.get('sec-fetch-site')
  const isOwn = origin === '' || origin === new URL(config.baseUrl).origin
  if (isOwn && (site === '' || site === 'same-origin')) return
  throw new Failure('FORBIDDEN', 'This form belongs to another page; open the sign-in again from your app.')
}

async function readForm(ctx: Context): Promise<URLSearchParams> {
  if (ctx.is('application/x-www-form-urlencoded') === false) {
    throw new Failure('UNSUPPORTED_MEDIA_TYPE', 'The body must be a form as browsers send it.')
  }
  return new URLSearchParams(await readText(ctx, FORM_BYTES))
}

/** Returns the login that takePassword() stored in the step before. */
function loginOf({ lastSubmission }: Interaction): Login {
  const login = lastSubmission?.login
  return { id: login?.accountId ?? '', passwordMark: String(login?.['passwordMark']) }
}

function redirectOf({ params }: Interaction): URL {
  return new URL(String(params['redirect_uri']))
}

function scopesOf({ params }: Interaction): string[] {
  return String(params['scope']).split(' ')
}

function cardOf(client: Client, redirect: URL): ClientCard {
  return { name: nameOf(client), destination: destinationOf(redirect) }
}

/**
 * Returns the name of a client on one line; with the host of its document, if its id is the address of one. Clients name
 * themselves, in any characters.
 */
function nameOf({ clientId, clientName = '' }: Client): string {
  const host = URL.parse(clientId)?.host
  const line = clientName.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
  const name = line.slice(0, NAME_LENGTH).toWellFormed() || 'An app without a name'
  return host === undefined ? name : `${name} (${host})`
}

function destinationOf({ protocol, host }: URL): string {
  if (protocol === 'https:') return host
  return protocol === 'http:' ? `${host}, on this computer` : `the app for ${protocol} on this computer`
}

/**
 * Returns the CSP source that allows the form's redirect. CSP has no notation for IPv6 hosts, so those are allowed by
 * scheme.
 */
function redirectSource({ protocol, origin, hostname }: URL): string {
  const isNamed = (protocol === 'https:' || protocol === 'http:') && !hostname.startsWith('[')
  return isNamed ? origin : protocol
}
