import { Postloom, type PostloomError, type PostloomOptions, type Result } from '@postloom/sdk'

import { CommandFailure } from './failure.ts'
import type { Connection } from './settings.ts'

/** Returns a client of the service's HTTP API. */
export function createClient(
  { baseUrl, token }: Pick<Connection, 'baseUrl' | 'token'>,
  options: Pick<PostloomOptions, 'timeout'> = {},
): Postloom {
  return new Postloom(token, { ...options, baseUrl })
}

/** Returns the data of a result; throws a `CommandFailure` with the service's own message when it was refused. */
export function dataOf<Data>({ data, error }: Result<Data>): Data {
  if (error) throw refusalOf(error)
  return data
}

/** Converts an error of the SDK into a failure of the command. */
export function refusalOf({ name, message, statusCode, details }: PostloomError): CommandFailure {
  const isAway = statusCode === null && (name === 'network_error' || name === 'timeout')
  return new CommandFailure(
    name,
    isAway ? `${message} Check the address, and whether the service runs.` : message,
    {
      body: {
        ...(statusCode !== null && { status: statusCode }),
        ...(details !== undefined && { details }),
      },
    },
  )
}
