import dns2 from 'dns2'

import { freePort } from '../../scripts/services/ports.ts'

/** A DNS record. A TXT record is a list of character strings; long texts are split, as real servers do. */
export type ZoneRecord =
  | { type: 'TXT'; strings: string[] }
  | { type: 'MX'; exchange: string; priority: number }
  | { type: 'CNAME'; domain: string }
  | { type: 'A'; address: string }

/** An authoritative name server on loopback, over UDP and TCP. */
export type NameServer = {
  /** The address in the format of `DNS_SERVERS`. */
  address: string
  /** The received queries, as `TXT name`. */
  questions: string[]
  /** The TTL of all records in seconds. */
  ttl: number
  /** How the server answers: with its records, with SERVFAIL, or not at all. */
  mood: 'records' | 'broken' | 'silent'
  /** Replaces all records of a name. */
  set(name: string, ...records: ZoneRecord[]): void
  close(): Promise<void>
}

const { TYPE, CLASS, RCODE } = dns2.Packet

/** Returns a TXT record with this text. */
export function txt(text: string): ZoneRecord {
  return { type: 'TXT', strings: text.match(/.{1,255}/g) ?? [''] }
}

/** Starts a name server that has only the records set by the test. */
export async function startNameServer(): Promise<NameServer> {
  const zone = new Map<string, ZoneRecord[]>()
  const port = await freePort()
  const server = dns2.createServer({
    udp: true,
    tcp: true,
    handle: (request, send) => {
      const [question] = request.questions
      if (!question || names.mood === 'silent') return
      const type = dns2.Packet.typeName(question.type)
      names.questions.push(`${type} ${question.name}`)
      const response = dns2.Packet.createResponseFromRequest(request)
      const held = zone.get(question.name.toLowerCase())
      response.header.aa = 1
      response.header.rcode = names.mood === 'broken' ? RCODE.SERVFAIL : held ? RCODE.NOERROR : RCODE.NXDOMAIN
      if (names.mood === 'records') {
        const matching = (held ?? []).filter((record) => record.type === type || record.type === 'CNAME')
        response.answers = matching.map((record) => resource(question.name, record, names.ttl))
      }
      void send(response)
    },
  })
  await server.listen({ udp: { port, address: '127.0.0.1' }, tcp: { port, address: '127.0.0.1' } })
  const names: NameServer = {
    address: `127.0.0.1:${port}`,
    questions: [],
    ttl: 0,
    mood: 'records',
    set: (name, ...records) => {
      zone.set(name.toLowerCase(), records)
    },
    close: async () => {
      await server.close()
    },
  }
  return names
}

function resource(name: string, record: ZoneRecord, ttl: number) {
  const base = { name, class: CLASS.IN, ttl, type: TYPE[record.type] }
  const question = new dns2.Packet.Question(name, base.type, CLASS.IN)
  const held =
    record.type === 'TXT'
      ? { data: record.strings }
      : record.type === 'CNAME'
        ? { domain: record.domain }
        : record
  return dns2.Packet.createResourceFromQuestion(question, { ...base, ...held, type: base.type })
}
