/**
 * The replies that the SMTP servers choose themselves; for any other refusal the API names the reply. They are those of
 * the contract ("SMTP replies") with enhanced codes of RFC 3463 and 5248.
 */
export const REPLIES = {
  /** Before STARTTLS, and before AUTH. */
  AUTH_REQUIRED: [530, '5.7.0'],
  BAD_TOKEN: [535, '5.7.8'],
  TOO_MANY_RECIPIENTS: [550, '5.5.3'],
  BAD_SENDER: [550, '5.1.7'],
  BAD_MESSAGE: [550, '5.6.0'],
  TOO_LARGE: [552, '5.3.4'],
  ATTACHMENT: [552, '5.6.1'],
  API_AWAY: [451, '4.3.0'],
  /** Too many invalid tokens, unknown recipients or connections from one address; the connection ends. */
  THROTTLED: [421, '4.7.0'],
  SHUTTING_DOWN: [421, '4.3.2'],
  UNKNOWN_RECIPIENT: [550, '5.1.1'],
  /** The sender tries the other recipients again (RFC 5321 4.5.3.1.10). */
  ONE_AT_A_TIME: [452, '4.5.3'],
  NOT_OURS: [550, '5.7.1'],
  LOOP: [554, '5.4.6'],
  BUSY: [452, '4.3.1'],
} as const satisfies Record<string, readonly [reply: number, enhanced: string]>

/** RFC 5321 4.5.3.1.5 gives a reply line 512 octets. */
const LONGEST_TEXT = 400

/**
 * A refusal in the form that smtp-server expects: `message` begins with the enhanced code. `failure` is the API's error
 * code for it.
 */
export class Refusal extends Error {
  readonly responseCode: number
  readonly failure: string | undefined

  constructor([reply, enhanced]: readonly [reply: number, enhanced: string], text: string, failure?: string) {
    super(`${enhanced} ${text.slice(0, LONGEST_TEXT).toWellFormed()}`)
    this.name = 'Refusal'
    this.responseCode = reply
    this.failure = failure
  }

  /** Returns the same reply with another text. */
  saying(text: string): Refusal {
    const [enhanced = ''] = this.message.split(' ')
    return new Refusal([this.responseCode, enhanced], text, this.failure)
  }
}
