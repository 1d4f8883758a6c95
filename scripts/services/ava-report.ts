/** The outcome of a test run. */
export type Counts = {
  passed: number
  failed: number
  skipped: number
}

/**
 * Counts the lines of ava's report. Its summary omits the passed tests when one fails, and a crashed process only has a
 * line of its own. An exit code other than 0 counts as at least one failure.
 */
export function countOutcomes(report: string, code: number | null): Counts {
  const count = (pattern: RegExp): number => report.match(pattern)?.length ?? 0
  const failed = count(/^ {2}✘ /gm)
  return {
    passed: count(/^ {2}✔ /gm),
    failed: failed || (code === 0 ? 0 : 1),
    skipped: count(/^ {2}- \[(?:skip|todo)\] /gm),
  }
}

/**
 * Returns what ava reported of exceptions and rejections outside of tests. It prints them only where they happened,
 * thousands of lines before the counts.
 */
export function readCrashes(report: string): string[] {
  const crashes = report.match(
    /^ {2}(?:Uncaught exception|Unhandled rejection) in [^]*?(?=\n {2}(?:[✔✘─]|- \[|Uncaught |Unhandled )|$(?![^]))/gm,
  )
  return (crashes ?? []).map((crash) => crash.trimEnd())
}
