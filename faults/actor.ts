/** Who lets crowds in. */
export const ACTOR = { kind: 'system' as const, id: 'faults', name: 'faults' }
