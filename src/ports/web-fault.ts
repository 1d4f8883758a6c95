/** Why there is no answer. `BUSY` passes by itself; the others are of the address or of who answers there. */
export type WebFaultReason =
  | 'INVALID_URL'
  | 'NOT_PUBLIC'
  | 'UNREACHABLE'
  | 'TIMEOUT'
  | 'TOO_LARGE'
  | 'TOO_MANY_REDIRECTS'
  | 'BUSY'

/** A request that got no answer; `message` goes on from the address and can be shown to who gave it. */
export class WebFault extends Error {
  readonly reason: WebFaultReason

  constructor(reason: WebFaultReason, message: string, options?: { cause: unknown }) {
    super(message, options)
    this.name = 'WebFault'
    this.reason = reason
  }
}
