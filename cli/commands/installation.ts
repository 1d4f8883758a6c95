import { type Command, Option } from 'commander'

import type { Context } from '../context.ts'
import { CommandFailure, misused } from '../failure.ts'
import { openInstallation } from '../installation.ts'
import { coloured, facts, type Output, table } from '../output.ts'
import { ask, readInput, requireConfirmation } from '../terminal.ts'

type Wanted = { name?: string; slug?: string; plan: string }
type WantedMember = { email?: string; passwordStdin?: boolean; memberName?: string }
type InOrganization = { org?: string }
type Confirmed = { confirm?: boolean }

const ON_INSTALLATION = 'On the installation itself (in its checkout)'
const PLANS = ['FREE', 'PREMIUM', 'ENTERPRISE']

/** Adds the commands that use the database of the installation instead of its API. */
export function addInstallation(program: Command, context: Context): void {
  program.commandsGroup(ON_INSTALLATION)
  addInit(program, context)
  addOrganizations(program, context)
  addMembers(program, context)
  addAdminKeys(program, context)
  addDoctor(program, context)
  program.commandsGroup('')
}

const plan = () =>
  new Option('-p, --plan <plan>', 'what bounds its requests and emails').choices(PLANS).default('ENTERPRISE')
const passwordStdin = () => new Option('--password-stdin', 'read the password from standard input')

function addInit(program: Command, { env, output }: Context): void {
  program
    .command('init')
    .description(
      'bring the database up to date and make the first organization, its token and a member; safe to repeat',
    )
    .option('-n, --name <name>', 'of the organization')
    .option('-s, --slug <slug>', 'its name in commands; by default made from the name')
    .addOption(plan())
    .option('-e, --email <address>', 'of the member who logs in')
    .option('--member-name <name>', 'of the member')
    .addOption(passwordStdin())
    .action(async (options: Wanted & WantedMember) => {
      const name = options.name ?? (await askOr(output, 'Name of the organization', '--name'))
      const email =
        options.email ?? (output.isInteractive ? await ask('Email address of the first member') : undefined)
      const password = email === undefined ? undefined : await readPassword(output, options, false)
      const { begin } = await openInstallation()
      const member = email === undefined ? undefined : { email, name: options.memberName, password }
      const beginning = await begin(env, { ...options, name }, member)
      const { organization, isNew, token } = beginning
      output.note(
        `The organization "${organization.name}" (${organization.slug}) ${isNew ? 'is made' : 'was there'}.`,
      )
      if (beginning.member)
        output.note(`${beginning.member.email} is a member${hint(beginning.member.hasPassword)}.`)
      if (beginning.member && !beginning.isNewMember && password !== undefined) {
        output.note(
          'They were a member before, so this password was not used: "postloom members set-password" sets a new one.',
        )
      }
      if (token) output.note('Its first token, which may do everything; this is the only time it is shown:')
      else
        output.note(`It has a token already; "postloom org token ${organization.slug}" creates another one.`)
      output.result(beginning, token?.token ?? '')
    })
}

function addOrganizations(program: Command, { env, output }: Context): void {
  const org = program.command('org').description('the organizations')
  org
    .command('create')
    .description('make an organization with its first token, which is printed once')
    .argument('<name>')
    .option('-s, --slug <slug>', 'its name in commands; by default made from the name')
    .addOption(plan())
    .action(async (name: string, options: Wanted) => {
      const { createOrganization } = await openInstallation()
      const made = await createOrganization(env, { ...options, name })
      output.note(
        `The organization "${name}" (${made.organization.slug}) is made. Its token is shown only now:`,
      )
      output.result(made, made.token?.token ?? '')
    })
  org
    .command('list')
    .description('list them, oldest first')
    .action(async () => {
      const { listOrganizations } = await openInstallation()
      const organizations = await listOrganizations(env)
      output.result(
        { organizations },
        table(
          ['ID', 'SLUG', 'NAME', 'PLAN', 'SUBSCRIBERS', 'TOKENS', 'CREATED'],
          organizations.map((each) => [
            each.id,
            each.slug,
            each.name,
            each.plan,
            each.subscribers,
            each.tokens,
            each.createdAt,
          ]),
        ),
      )
    })
  org
    .command('show')
    .description('show one')
    .argument('<id or slug>')
    .action(async (idOrSlug: string) => {
      const { showOrganization } = await openInstallation()
      const shown = await showOrganization(env, idOrSlug)
      const { organization, subscription, stats, domains } = shown
      const text = facts([
        ['ID', organization.id],
        ['Slug', organization.slug],
        ['Name', organization.name],
        ['Email', organization.email],
        ['Plan', subscription?.plan ?? 'FREE'],
        ['Time zone', organization.timezone],
        ['Members', stats.members],
        ['Subscribers', stats.subscribers],
        ['Campaigns', stats.campaigns],
        ['Domains', domains.map(({ domain, status }) => `${domain} (${status})`).join(', ') || null],
        ['Created', organization.createdAt],
      ])
      output.result(shown, text)
    })
  org
    .command('token')
    .description('create another token with all permissions, which is printed once')
    .argument('<id or slug>')
    .option('-n, --name <name>', 'what it is for', 'Command line')
    .action(async (idOrSlug: string, { name }: { name: string }) => {
      const { addToken } = await openInstallation()
      const token = await addToken(env, idOrSlug, name)
      output.note(`The token "${token.name}" (${token.id}) is made. This is the only time its text is shown:`)
      output.result({ token }, token.token ?? '')
    })
}

function addMembers(program: Command, { env, output }: Context): void {
  const members = program.command('members').description('the people who log in')
  const which = () => new Option('-o, --org <id or slug>', 'the organization, where there are several')
  members
    .command('create')
    .description('make somebody a member')
    .argument('<email>')
    .addOption(which())
    .option('-n, --name <name>', 'what they are called')
    .addOption(passwordStdin())
    .action(async (email: string, options: InOrganization & WantedMember & { name?: string }) => {
      const password = await readPassword(output, options, false)
      const { createMember } = await openInstallation()
      const member = await createMember(env, options.org, { email, name: options.name, password })
      output.result({ member }, `${member.email} (${member.id}) is a member${hint(member.hasPassword)}.`)
    })
  members
    .command('list')
    .description('list them, by address')
    .addOption(which())
    .action(async ({ org }: InOrganization) => {
      const { listMembers } = await openInstallation()
      const found = await listMembers(env, org)
      const rows = found.map(({ id, email, name, hasPassword, lastLoginAt }) => {
        return [id, email, name, hasPassword ? 'yes' : 'no', lastLoginAt]
      })
      output.result({ members: found }, table(['ID', 'EMAIL', 'NAME', 'PASSWORD', 'LAST LOGIN'], rows))
    })
  members
    .command('set-password')
    .description('set a new password for a member; it is asked for, or read from standard input')
    .argument('<id or email>')
    .addOption(which())
    .addOption(passwordStdin())
    .action(async (member: string, options: InOrganization & WantedMember) => {
      const password = await readPassword(output, options, true)
      const { setPassword } = await openInstallation()
      const changed = await setPassword(env, options.org, { member, password })
      output.result({ member: changed }, `${changed.email} has a new password.`)
    })
  members
    .command('remove')
    .description('remove somebody from the organization')
    .argument('<id or email>')
    .addOption(which())
    .option('-y, --confirm', 'do not ask')
    .action(async (member: string, { org, confirm }: InOrganization & Confirmed) => {
      await requireConfirmation(output, confirm === true, `Removing ${member}`)
      const { removeMember } = await openInstallation()
      const removed = await removeMember(env, org, member)
      output.result({ member: removed }, `${removed.email} is no longer a member.`)
    })
}

function addAdminKeys(program: Command, { env, output }: Context): void {
  const keys = program
    .command('admin')
    .description('the admin API, which reads across organizations')
    .command('keys')
    .description('the admin keys')
  keys
    .command('create')
    .description('make an admin key, which is printed once')
    .argument('<name>', 'who or what it is for')
    .action(async (name: string) => {
      const { createAdminKey } = await openInstallation()
      const made = await createAdminKey(env, name)
      output.note(
        `The admin key "${made.name}" (${made.id}) is made. This is the only time its text is shown:`,
      )
      output.result({ key: made }, made.key)
    })
  keys
    .command('list')
    .description('list them, newest first, including revoked ones')
    .action(async () => {
      const { listAdminKeys } = await openInstallation()
      const found = await listAdminKeys(env)
      const rows = found.map(({ id, name, lastFour, createdAt, lastUsedAt, revokedAt }) => {
        return [id, name, `…${lastFour}`, createdAt, lastUsedAt, revokedAt]
      })
      output.result(
        { keys: found },
        table(['ID', 'NAME', 'ENDS IN', 'CREATED', 'LAST USED', 'REVOKED'], rows),
      )
    })
  keys
    .command('revoke')
    .description('revoke an admin key at once')
    .argument('<id>', 'its id (adm_…)')
    .option('-y, --confirm', 'do not ask')
    .action(async (id: string, { confirm }: Confirmed) => {
      await requireConfirmation(output, confirm === true, `Revoking ${id}`)
      const { revokeAdminKey } = await openInstallation()
      const key = await revokeAdminKey(env, id)
      output.result({ key }, `The admin key "${key.name}" is revoked.`)
    })
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const

function addDoctor(program: Command, { env, output }: Context): void {
  program
    .command('doctor')
    .description(
      'check everything the installation needs and say how to repair it; exits with 1 if a check fails',
    )
    .action(async () => {
      const { examine } = await openInstallation()
      const findings = await examine(env)
      const width = Math.max(...findings.map(({ name }) => name.length))
      const text = findings.map(({ name, status, detail, repair }) => {
        const line = `${coloured(COLOURS[status], status.padEnd(4))}  ${name.padEnd(width)}  ${detail}`
        return repair === undefined ? line : `${line}\n${' '.repeat(width + 8)}${repair}`
      })
      const failed = findings.filter(({ status }) => status === 'fail').length
      output.result({ ok: failed === 0, checks: findings }, text.join('\n'))
      if (failed > 0) process.exitCode = 1
    })
}

async function askOr(output: Output, question: string, option: string): Promise<string> {
  if (output.isInteractive) return await ask(question)
  misused(`Give ${option}: there is no terminal to ask at.`)
}

async function readPassword(output: Output, options: WantedMember, isNeeded: true): Promise<string>
async function readPassword(
  output: Output,
  options: WantedMember,
  isNeeded: boolean,
): Promise<string | undefined>
async function readPassword(
  output: Output,
  { passwordStdin }: WantedMember,
  isNeeded: boolean,
): Promise<string | undefined> {
  if (passwordStdin) return (await readInput()).replace(/\r?\n$/, '')
  if (output.isInteractive) {
    const exception = isNeeded ? '' : ' (empty for none, or if they have one already)'
    const question = `Password, 12 characters at least${exception}`
    return (await ask(question, { isSecret: true, isOptional: !isNeeded })) || undefined
  }
  if (!isNeeded) return undefined
  throw new CommandFailure(
    'USAGE',
    'Give the password with --password-stdin: there is no terminal to ask at.',
    {
      exitCode: 2,
    },
  )
}

function hint(hasPassword: boolean): string {
  return hasPassword ? '' : ', without a password: "postloom members set-password" gives one'
}
