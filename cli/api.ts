import { Postloom, type PostloomError, type PostloomOptions, type Result } from '@postloom/sdk'

import { CommandFailure } from './failure.ts'
import type { Connection } from './settings.ts'

/** The service over HTTP. */
export function createClient(
  { baseUrl, token }: Pick<Connection, 'baseUrl' | 'token'>,
  options: Pick<PostloomOptions, 'timeout'> = {},
): Postloom {
  return new Postloom(token, { ...options, baseUrl })
}

/** The data of an answer; what the service refuses ends the command in its own words. */
export function dataOf<Data>({ data, error }: Result<Data>): Data {
  if (error) throw refusalOf(error)
  return data
}

/** What a refusal is to a command. */
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
