import { Failure, refuse } from '../catalogue/failure.ts'
import { WebFault } from '../ports/web-fault.ts'
import type { Web, WebAnswer, WebRequest } from '../ports/web.ts'

/** Fetches a caller's `url`. Throws a `Failure` for a bad address, an unreachable server or a status other than 2xx. */
export async function fetchUrl(
  web: Web,
  request: Pick<WebRequest, 'url' | 'headers' | 'limits'>,
): Promise<WebAnswer> {
  const answer = await web.request({ ...request, follow: true }).catch(refuseFault)
  if (answer.status >= 200 && answer.status < 300) return answer
  return refuse('url', `answers with status ${answer.status}; send an address that anybody can open.`)
}

function refuseFault(fault: unknown): never {
  if (!(fault instanceof WebFault)) throw fault
  if (fault.reason === 'BUSY') {
    throw new Failure('UNAVAILABLE', 'Too many web requests are under way; repeat the request in a moment.', {
      retryAfter: 1,
      cause: fault,
    })
  }
  if (fault.reason === 'TOO_LARGE') {
    throw new Failure('TOO_LARGE', `url ${fault.message}; send the address of a smaller file.`)
  }
  refuse('url', `${fault.message}; send a public http or https address that answers.`)
}
