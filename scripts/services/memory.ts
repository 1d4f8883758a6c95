/**
 * How a process of ours is to use memory: its young generation (MB), and by how much the old one grows before it is
 * collected. API and SMTP keep resident memory a quarter lower under load that way, at the same throughput. A worker
 * spent a third of its time on copying messages that outlived 8 MB, and a fifth on collecting an old generation that had
 * grown by three tenths.
 */
export function memoryFlags(part: string): string[] {
  const [young, growth] = part === 'worker' ? [32, 50] : [8, 30]
  return [`--max-semi-space-size=${young}`, `--heap-growing-percent=${growth}`]
}

/** Threads that each keep a heap of their own outside of V8 cost a worker 30 MB. */
export const MEMORY_ENVIRONMENT = { MALLOC_ARENA_MAX: '2' }
