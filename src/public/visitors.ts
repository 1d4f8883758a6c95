/** The data of a request about its sender. */
export type Visitor = { method: string; userAgent: string; ipAddress: string }

/**
 * The data that distinguishes people from machines; `purpose` is the browser's reason for the request, empty for a
 * normal visit.
 */
export type Reader = Pick<Visitor, 'method' | 'userAgent'> & { purpose: string }

const LONGEST_AGENT = 300

/** Returns the part of the user agent that is stored. */
export function keptAgent({ userAgent }: Pick<Visitor, 'userAgent'>): string {
  // A copy: a slice would keep the whole header in memory as long as the visit.
  return Buffer.from(userAgent.slice(0, LONGEST_AGENT)).toString()
}

// Scanners, previews and programs that name themselves; phones named Cubot are excluded. Apple's mail privacy proxy
// sends only "Mozilla/5.0".
const MACHINE =
  /(?<!\bcu)bot\b|crawl|spider|scan|preview|prefetch|monitor|barracuda|proofpoint|mimecast|symantec|messagelabs|trendmicro|safelinks|office existence|fireeye|ironport|headless|phantomjs|curl\/|wget\/|python|go-http-client|okhttp|java\/|libwww|httpclient|axios|node-fetch|undici|^node$|^mozilla\/5\.0$/i

const AHEAD = /prefetch|preview/i

/**
 * Returns whether a request is recognizably a machine's: it names itself, has no user agent, only asks for headers, or
 * is a browser's prefetch or preview. Opens that come too soon after sending are judged elsewhere, where the time of
 * sending is known.
 */
export function isMachine({ method, userAgent, purpose }: Reader): boolean {
  return method === 'HEAD' || userAgent.trim() === '' || MACHINE.test(userAgent) || AHEAD.test(purpose)
}
