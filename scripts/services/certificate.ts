import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'

/** Creates a development certificate if there is none yet. Only the owner can read its key. */
export function ensureCertificate(
  names: readonly string[],
  files: { certFile: string; keyFile: string },
): void {
  if (existsSync(files.certFile) && existsSync(files.keyFile)) return
  const { key, cert } = selfSigned(...names)
  writeFileSync(files.keyFile, key, { mode: 0o600 })
  writeFileSync(files.certFile, cert)
}

/** Returns a key and a self-signed certificate for `names`, in PEM. */
export function selfSigned(...names: string[]): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  // RFC 5280: version 3, a serial number, ecdsa-with-SHA256, issuer, validity, subject, key, subjectAltName.
  const algorithm = der(0x30, oid('2a8648ce3d040302'))
  const subject = der(0x30, der(0x31, der(0x30, oid('550403'), der(0x0c, Buffer.from(names[0] ?? '')))))
  const validity = der(0x30, der(0x17, Buffer.from('250101000000Z')), der(0x17, Buffer.from('491231235959Z')))
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1]), randomBytes(8)),
    algorithm,
    subject,
    validity,
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(0x30, der(0x30, oid('551d11'), der(0x04, der(0x30, ...names.map(alternative)))))),
  )
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey))
  const lines =
    der(0x30, body, algorithm, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  }
}

/** RFC 5280 4.2.1.6: an IP address is encoded as its bytes, a DNS name as text. */
function alternative(name: string): Buffer {
  return isIPv4(name) ? der(0x87, Buffer.from(name.split('.').map(Number))) : der(0x82, Buffer.from(name))
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'))
}
