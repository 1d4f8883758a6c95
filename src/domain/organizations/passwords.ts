import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'

import { refuse } from '../../catalogue/failure.ts'

const SHORTEST = 12
const LONGEST = 200
const SALT_BYTES = 16
const HASH_BYTES = 32
/** From OWASP's password storage cheat sheet: 32 MB per guess (128 × N × r bytes), with p = 3. */
const COST = { N: 32_768, r: 8, p: 3 }
const FORM = /^scrypt\$(\d+)\$(\d+)\$(\d+)\$([\w-]+)\$([\w-]+)$/

type Cost = typeof COST

/** Returns `scrypt$N$r$p$salt$hash`. It contains the cost, so that the cost can rise while old hashes stay valid. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const derived = await derive(readPassword(password), salt, COST)
  return ['scrypt', COST.N, COST.r, COST.p, salt.toString('base64url'), derived.toString('base64url')].join(
    '$',
  )
}

/** Whether the password matches the stored hash. Takes equally long without one, to hide which accounts exist. */
export async function isPassword(password: string, stored: string | null): Promise<boolean> {
  const [, N, r, p, salt, hash] = FORM.exec(stored ?? '') ?? []
  const cost = salt === undefined ? COST : { N: Number(N), r: Number(r), p: Number(p) }
  const given = password.normalize('NFKC').slice(0, LONGEST + 1)
  const derived = await derive(given, Buffer.from(salt ?? '', 'base64url'), cost)
  const expected = Buffer.from(hash ?? '', 'base64url')
  return expected.length === HASH_BYTES && timingSafeEqual(derived, expected)
}

function readPassword(password: string): string {
  const given = password.normalize('NFKC')
  if (given.length < SHORTEST)
    refuse('password', `is shorter than ${SHORTEST} characters; choose a longer one.`)
  if (given.length > LONGEST)
    refuse('password', `is longer than ${LONGEST} characters; choose a shorter one.`)
  return given
}

function derive(password: string, salt: Buffer, cost: Cost): Promise<Buffer> {
  const maxmem = 256 * cost.N * cost.r
  return new Promise((resolve, reject) => {
    scrypt(password, salt, HASH_BYTES, { ...cost, maxmem }, (error, key) =>
      error ? reject(error) : resolve(key),
    )
  })
}
