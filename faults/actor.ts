/** The actor that enters people in the experiments. */
export const ACTOR = { kind: 'system' as const, id: 'faults', name: 'faults' }
