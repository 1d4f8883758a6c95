import { Resolver } from 'node:dns/promises'

import { authenticate } from 'mailauth'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'

import type { NameServer } from './name-server.ts'

/** Removes dot-stuffing, which the sink keeps (RFC 5321, 4.5.2). */
export function unstuffed(wire: Buffer): string {
  return wire.toString('latin1').replaceAll('\r\n..', '\r\n.')
}

/** Verifies the DKIM signatures of a message with an independent library, using this name server. */
export async function checkSignatures(names: NameServer, raw: string) {
  const checked = await dkimVerify(Buffer.from(raw, 'latin1'), { resolver: resolverOf(names) })
  return checked.results
}

/** Returns how a receiver evaluates an email from `ip` with this MAIL FROM: SPF, DKIM and DMARC with alignment. */
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
