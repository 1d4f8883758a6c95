/** Why there is no answer. `BUSY` is temporary and our own limit; the others concern the URL or the server there. */
export type WebFaultReason =
  | 'INVALID_URL'
  | 'NOT_PUBLIC'
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'TOO_LARGE'
  | 'TOO_MANY_REDIRECTS'
  | 'BUSY'

/** A request that got no answer. `message` continues a sentence that begins with the address; users may see it. */
export class WebFault extends Error {
  readonly reason: WebFaultReason

  constructor(reason: WebFaultReason, message: string, options?: { cause: unknown }) {
    super(message, options)
    this.name = 'WebFault'
    this.reason = reason
  }
}
