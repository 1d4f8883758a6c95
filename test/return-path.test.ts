import test from 'ava'
import fc from 'fast-check'

import { readReturnPath, returnPathOf } from '../src/delivery/return-path.ts'
import { newId } from '../src/ids.ts'

const SECRET = 'a secret of this installation'
const mail = { organizationId: newId(), id: newId(), fromEmail: 'Hello@Shop.Example' }

function localPart(address: string): string {
  return address.slice(0, address.lastIndexOf('@'))
}

test('each email has a return path of its own, under the domain it is from', (t) => {
  const address = returnPathOf(SECRET, mail)
  t.is(address, returnPathOf(SECRET, { ...mail }))
  t.is(address.slice(address.lastIndexOf('@')), '@send.shop.example')
  t.not(address, returnPathOf(SECRET, { ...mail, id: newId() }))
  t.true(localPart(address).length <= 64, 'RFC 5321, 4.5.3.1.1')
  t.is(
    returnPathOf(SECRET, { ...mail, fromEmail: 'a@müller.example' }).split('@')[1],
    'send.xn--mller-kva.example',
  )
})

test('a return path says which email it is of, whatever became of its letter case', (t) => {
  fc.assert(
    fc.property(fc.uuid(), fc.uuid(), (organizationId, messageId) => {
      const path = localPart(returnPathOf(SECRET, { ...mail, organizationId, id: messageId }))
      t.deepEqual(readReturnPath(SECRET, path), { organizationId, messageId })
      t.deepEqual(readReturnPath(SECRET, path.toUpperCase()), { organizationId, messageId })
    }),
  )
})

test('no changed, foreign or malformed return path is read', (t) => {
  const path = localPart(returnPathOf(SECRET, mail))
  const letters = 'abcdefghijklmnopqrstuvwxyz234567'
  for (let at = 0; at < path.length; at += 1) {
    const other = letters[(letters.indexOf(path[at] ?? 'a') + 1) % 32]
    t.is(readReturnPath(SECRET, path.slice(0, at) + other + path.slice(at + 1)), null, `letter ${at}`)
  }
  t.is(readReturnPath('another secret', path), null)
  for (const text of ['', 'postmaster', path.slice(1), `${path}a`, `${path}\r\n`, path.replace(/./, 'é')]) {
    t.is(readReturnPath(SECRET, text), null, text)
  }
})
