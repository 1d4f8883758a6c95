import { Resolver } from 'node:dns/promises'

/** A record as a name server gave it: the character strings of a TXT record, or an MX. */
export type DnsRecord =
  | { type: 'TXT'; strings: string[] }
  | { type: 'MX'; exchange: string; priority: number }

/** The answer of one server about a name: its records, an empty list if there are none, or why it did not answer. */
export type DnsAnswer = { server: string; records: DnsRecord[] } | { server: string; fault: string }

/** Queries to the configured name servers. */
export type Dns = {
  /** Asks every server; never throws. Answers are not cached here: the servers do that, by their TTL. */
  lookUp(name: string, type: DnsRecord['type']): Promise<DnsAnswer[]>
  /** Returns whether any server knows an IPv4 or IPv6 address of a name; null if none of them answered. */
  hasAddress(name: string): Promise<boolean | null>
}

const TIMEOUT_MS = 1_500
const TRIES = 2
const NOTHING = new Set(['ENOTFOUND', 'ENODATA'])

/** Creates the port for these servers; without any, it asks the resolver of the machine, as one server. */
export function createDns(servers: readonly string[]): Dns {
  const named = servers.length > 0 ? servers : [null]
  const resolvers = named.map((server) => {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
    if (server !== null) resolver.setServers([server])
    return { server: server ?? 'the resolver of the machine', resolver }
  })
  return {
    lookUp: (name, type) =>
      Promise.all(
        resolvers.map(async ({ server, resolver }): Promise<DnsAnswer> => {
          try {
            return { server, records: await ask(resolver, name, type) }
          } catch (error) {
            const code = codeOf(error)
            return NOTHING.has(code) ? { server, records: [] } : { server, fault: code }
          }
        }),
      ),
    async hasAddress(name) {
      const questions = resolvers.flatMap(({ resolver }) => [
        addresses(() => resolver.resolve4(name)),
        addresses(() => resolver.resolve6(name)),
      ])
      const counts = (await Promise.all(questions)).filter((count) => count !== null)
      return counts.length === 0 ? null : counts.some((count) => count > 0)
    },
  }
}

async function addresses(ask: () => Promise<string[]>): Promise<number | null> {
  try {
    return (await ask()).length
  } catch (error) {
    return NOTHING.has(codeOf(error)) ? 0 : null
  }
}

async function ask(resolver: Resolver, name: string, type: DnsRecord['type']): Promise<DnsRecord[]> {
  if (type === 'TXT') return (await resolver.resolveTxt(name)).map((strings) => ({ type, strings }))
  return (await resolver.resolveMx(name)).map(({ exchange, priority }) => ({ type, exchange, priority }))
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'UNKNOWN'
}
