/** The control of long work that nobody follows or stops. */
export const UNFOLLOWED = { report: () => undefined, isStopping: () => false }
