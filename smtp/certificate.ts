import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, unwatchFile, watchFile } from 'node:fs'

/** The paths of the certificate chain and its key, in PEM. */
export type CertificateFiles = { certFile: string; keyFile: string }
export type Certificate = { cert: string; key: string }

const LOOK_MS = 5_000

/** Reads both files. Throws when they do not belong together: half of a renewal would break every login. */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const [cert, key] = [readFileSync(certFile, 'utf8'), readFileSync(keyFile, 'utf8')]
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error(`${keyFile} is not the key of the certificate in ${certFile}`)
  }
  return { cert, key }
}

/**
 * Calls `renewed` when one of the files was replaced, until the returned function is called. The files are watched by
 * path, because a renewal replaces them (and links to them) instead of writing into them.
 */
export function watchCertificate(files: CertificateFiles, renewed: () => void, lookMs = LOOK_MS): () => void {
  const paths = [files.certFile, files.keyFile]
  for (const path of paths) {
    watchFile(path, { interval: lookMs, persistent: false }, (now, before) => {
      if (now.mtimeMs !== before.mtimeMs || now.ino !== before.ino) renewed()
    })
  }
  return () => {
    for (const path of paths) unwatchFile(path)
  }
}
