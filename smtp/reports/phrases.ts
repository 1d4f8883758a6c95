/**
 * The texts of servers, with the enhanced status codes (RFC 3463) that they stand for. The first match counts: a text
 * about a full mailbox often says to try again, and a refusal of the sender names the recipient as well.
 */
const PHRASES: readonly (readonly [status: string, words: RegExp])[] = [
  [
    '5.2.2',
    /over ?quota|quota (has been )?exceeded|exceed(ed|s|ing)? (its |the |their |your )?(mailbox |storage |disk )*(quota|limit|space)|(mailbox|inbox|mail box|account)( [^ \n]{1,80})? (is |has |for )?(been )?(full|over)|mailbox size|(not enough|insufficient|out of) (disk |mailbox |system )?(storage|space)|mailfolder is full|storage (limit|quota)/,
  ],
  ['4.7.1', /gr[ea]y-?list|temporarily deferred|try(ing)? again later|too many connections|rate limit/],
  [
    '5.6.0',
    /virus|malware|infected|content (was )?(rejected|filter)|message content|banned file|attachment type/,
  ],
  [
    '5.3.4',
    /message (is )?too (large|big)|message size exceeds|exceeds? (the )?(maximum )?(message )?size|larger than/,
  ],
  [
    '5.7.1',
    /black-?list|block-?list|blocked (by|using|because|due|for)|spamhaus|spamcop|barracuda|dnsbl|\brbl\b|poor reputation|low reputation|dmarc|\bspf\b|unsolicited|(classified|identified|detected|rejected|flagged|considered) as spam|looks like spam|spam (message )?rejected|not accepted for policy|(by|against|for|due to)( [a-z-]{1,30}){0,4} policy|policy (reasons?|violation|restriction)|banned sending|access denied|relay(ing)? (access )?denied|not (authori[sz]ed|permitted|allowed) to (send|relay)|reverse dns|unauthenticated/,
  ],
  [
    '5.1.2',
    /domain [^ \n]{0,80} ?(is )?(not found|does ?n['o]t exist|does not exist|unknown|not valid)|(no such|unknown|non-?existent|unresolvable|invalid) (domain|host)|host (or domain name )?(not found|unknown)|domain (name )?not found|nxdomain|no mx (record|host)|name or service not known|name service error|unrouteable (mail )?domain|couldn't find any host/,
  ],
  [
    '5.2.1',
    /(mailbox|account|user|recipient|address)( [^ \n]{1,80})? (is |has been |was |that you tried to reach is )?(currently )?(disabled|deactivated|suspended|inactive|locked|on hold|not active|blocked)/,
  ],
  [
    '5.1.1',
    /(user|recipient|mailbox|address|account|addressee|alias)( address)?( [^ \n]{1,80}){0,3} ?(is |was |has been |could |can )?(unknown|not found|not be found|no longer (exists?|valid|available|active|in use)|nonexistent|non-existent|does ?n['o]t exist|does not exist|doesn't have|not exist|invalid|not valid|not known|not listed|unavailable|removed|cannot be found|closed)/,
  ],
  [
    '5.1.1',
    /(no such|unknown|invalid|bad|unrecognized|unrouteable|no valid|undeliverable) (e-?mail )?(user|recipient|mailbox|address|account|addressee|local ?part|person|alias|destination)|user unknown|no mailbox (here )?by that name|(doesn't|does not|don't|do not) have an? [^ \n]{0,80} ?(account|mailbox)|not our customer|not a (valid|known) (user|recipient|mailbox)|no account by that name|couldn't be delivered because (the )?address|address couldn't be found|wasn't found at|not found in (the )?directory|recipientnotfound|resolver\.adr\./,
  ],
  ['5.4.6', /mail loop|routing loop|loops? back|too many hops|hop count exceeded/],
  [
    '4.4.7',
    /(retry|retries|delivery) time(out| limit)? ?(was )?(exceeded|expired)|retry timeout|(message|delivery) (has )?(been )?(expired|timed out)|could not be delivered for (more than )?\d+|connection (timed out|refused|reset)|operation timed out|no (route|answer|response) (to|from) (the )?(host|server)|did ?n['o]t respond|unable to connect/,
  ],
]

/** At most so many characters of a text are searched, because a returned email may be long. */
const LOOKED_AT = 20_000
const ENHANCED = /(?:^|[\s(#<:-])([45]\.\d{1,3}\.\d{1,3})(?=[\s);:,>\]-]|\.\s|\.?$)/m

/**
 * Returns the enhanced status code that is written in a text, or null. A code that says nothing (x.0.0, x.5.0) is
 * ignored.
 */
export function writtenStatus(text: string): string | null {
  const found = ENHANCED.exec(text.slice(0, LOOKED_AT))?.[1] ?? null
  return found === null || isVague(found) ? null : found
}

/** Returns the enhanced status code that the words of a text stand for, or null. */
export function spokenStatus(text: string): string | null {
  const words = text.slice(0, LOOKED_AT).toLowerCase().replaceAll('’', "'").replaceAll(/\s+/g, ' ')
  return PHRASES.find(([, phrase]) => phrase.test(words))?.[0] ?? null
}

/** Returns whether a code says no more than that something failed, permanently (5) or for now (4). */
export function isVague(status: string): boolean {
  return /^[245]\.(0|5)\.0$/.test(status)
}
