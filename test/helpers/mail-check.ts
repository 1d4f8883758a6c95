import { Resolver } from 'node:dns/promises'

import { authenticate } from 'mailauth'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'

import type { NameServer } from './name-server.ts'

/** Bytes as a reader gets them: the sink keeps the dots that SMTP adds at the beginning of lines. */
export function unstuffed(wire: Buffer): string {
  return wire.toString('latin1').replaceAll('\r\n..', '\r\n.')
}

/** The signatures of a message as an independent verifier judges them, asking this name server. */
export async function checkSignatures(names: NameServer, raw: string) {
  const checked = await dkimVerify(Buffer.from(raw, 'latin1'), { resolver: resolverOf(names) })
  return checked.results
}

/** How a receiver judges an email that came from `ip` with this MAIL FROM: SPF, DKIM and DMARC with its alignments. */
export async function checkArrival(names: NameServer, raw: string, from: { ip: string; sender: string }) {
  return await authenticate(Buffer.from(raw, 'latin1'), {
    ...from,
    helo: 'relay.example',
    mta: 'mx.reader.example',
    disableArc: true,
    disableBimi: true,
    resolver: resolverOf(names),
  })
}

function resolverOf(names: NameServer) {
  const resolver = new Resolver()
  resolver.setServers([names.address])
  return (name: string) => resolver.resolveTxt(name)
}
