import type { NewEmail } from '../../../schema/email.ts'
import { Failure, type Fault, faultsOf, refuse, refuseFaults } from '../../catalogue/failure.ts'
import type { Call } from '../../catalogue/tool.ts'
import { readEmail, readOwnEmail } from '../addresses.ts'
import type { TransactionalEmail } from './acceptance.ts'
import { sendTransactional, sendTransactionals } from './transactional.ts'
import { readWritten, type WrittenType } from './written.ts'

/** The members that hold an email's content, of which it has exactly one, with their content types. */
const BODIES = { html: 'HTML', tiptap: 'TIPTAP', markdown: 'MARKDOWN' } as const satisfies Record<
  string,
  WrittenType
>
const NAMES = ['html', 'tiptap', 'markdown'] as const

/** Whether the email can be read without the database; only documents, which may contain snippets, need it. */
export function isReadAtOnce({ tiptap }: NewEmail): boolean {
  return tiptap === undefined
}

/** Accepts one email in the form of REST v2. Returns its uuid. */
export async function createEmail(call: Call, email: NewEmail): Promise<string> {
  return await sendTransactional(call, await readNew(call, email))
}

/** Accepts all of these emails or none. Returns their uuids in the same order. */
export async function createEmails(call: Call, emails: readonly NewEmail[]): Promise<string[]> {
  const read: TransactionalEmail[] = []
  const faults: Fault[] = []
  for (const [index, email] of emails.entries()) {
    try {
      read.push(await readNew(call, email))
    } catch (error) {
      if (!(error instanceof Failure) || !isOfInput(error)) refuseOne(error, index)
      faults.push(...faultsAt(error, (path) => `${placeOf(index)}.${path}`))
    }
  }
  if (faults.length > 0) refuseFaults(faults, 'The body')
  return await sendTransactionals(call, read, refuseOne)
}

/** Returns the path of an email of a batch for error messages. */
function placeOf(index: number): string {
  return `emails[${index}]`
}

function refuseOne(error: unknown, index: number): never {
  if (!(error instanceof Failure)) throw error
  if (isOfInput(error)) {
    refuseFaults(
      faultsAt(error, (path) => `${placeOf(index)}.${path}`),
      'The body',
      error.code,
    )
  }
  const { code, message, details, retryAfter } = error
  throw new Failure(code, `${placeOf(index)}: ${message}`, {
    details,
    cause: error,
    ...(retryAfter !== undefined && { retryAfter }),
  })
}

function isOfInput({ code }: Failure): boolean {
  return code === 'INVALID_INPUT' || code === 'MISSING_FIELD'
}

function faultsAt(failure: Failure, placed: (path: string) => string): Fault[] {
  return faultsOf(failure).map((fault) => ({ ...fault, path: placed(fault.path) }))
}

async function readNew(call: Call, email: NewEmail): Promise<TransactionalEmail> {
  const { from, to, reply_to: replyTo, subject, preview } = email
  const name = bodyOf(email)
  const addressed = {
    from,
    to: readEmail(onlyOne(to, 'to', 'an email goes to one person'), 'to'),
    replyTo:
      replyTo === undefined
        ? undefined
        : readOwnEmail(onlyOne(replyTo, 'reply_to', 'answers go to one address'), 'reply_to'),
    tracking: true,
  }
  try {
    const written = { subject, preview, content: email[name], contentType: BODIES[name] }
    return { ...(await readWritten(call, written)), ...addressed }
  } catch (error) {
    if (!(error instanceof Failure) || !isOfInput(error)) throw error
    // readWritten calls the content `content`; here the member has another name.
    return refuseFaults(
      faultsAt(error, (path) => path.replace(/^content/, name)),
      'The body',
    )
  }
}

function bodyOf(email: NewEmail): (typeof NAMES)[number] {
  const [name, ...more] = NAMES.filter((each) => email[each] !== undefined)
  if (name === undefined) {
    throw new Failure(
      'MISSING_FIELD',
      'The email has no content: send exactly one of html, tiptap and markdown.',
      {
        details: [
          { path: 'html', message: 'is missing, as are tiptap and markdown; send exactly one of them' },
        ],
      },
    )
  }
  if (more.length > 0) {
    refuseFaults(
      more.map((path) => ({
        path,
        message: `is given together with ${name}; send exactly one of html, tiptap, markdown`,
      })),
      'The body',
    )
  }
  return name
}

function onlyOne(given: string | readonly string[], path: string, why: string): string {
  if (typeof given === 'string') return given
  const [only, ...more] = given
  if (only === undefined) refuse(path, 'has no address; send one.')
  if (more.length > 0) {
    refuse(path, `names ${given.length} addresses, but ${why}; send one email for each of them.`)
  }
  return only
}
