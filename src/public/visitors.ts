/** What a request says of who made it. */
export type Visitor = { method: string; userAgent: string; ipAddress: string }

/** What tells people from machines; `purpose` is why a browser asks, empty where somebody wants to see it. */
export type Reader = Pick<Visitor, 'method' | 'userAgent'> & { purpose: string }

const LONGEST_AGENT = 300

/** As much of what a program calls itself as is kept. */
export function keptAgent({ userAgent }: Pick<Visitor, 'userAgent'>): string {
  return userAgent.slice(0, LONGEST_AGENT)
}

// Scanners, previews and programs that name themselves, but for the phones called Cubot. Apple's mail privacy proxy is only
// ever "Mozilla/5.0".
const MACHINE =
  /(?<!\bcu)bot\b|crawl|spider|scan|preview|prefetch|monitor|barracuda|proofpoint|mimecast|symantec|messagelabs|trendmicro|safelinks|office existence|fireeye|ironport|headless|phantomjs|curl\/|wget\/|python|go-http-client|okhttp|java\/|libwww|httpclient|axios|node-fetch|undici|^node$|^mozilla\/5\.0$/i

const AHEAD = /prefetch|preview/i

/**
 * Whether a request is a machine's, of those that can be told: it says so, says nothing, only asks for headers, or is a
 * browser's that fetches what somebody may want later.
 * What comes sooner after the sending than a person can be is judged where that time is known.
 */
export function isMachine({ method, userAgent, purpose }: Reader): boolean {
  return method === 'HEAD' || userAgent.trim() === '' || MACHINE.test(userAgent) || AHEAD.test(purpose)
}
