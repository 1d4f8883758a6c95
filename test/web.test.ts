import { channel } from 'node:diagnostics_channel'
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTcpServer, isIP, Socket } from 'node:net'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'

import test from 'ava'
import fc from 'fast-check'

import { readConfig } from '../src/config.ts'
import { isPublicAddress } from '../src/ports/web-addresses.ts'
import { WebFault } from '../src/ports/web-fault.ts'
import { createWeb, type Web, type WebOptions } from '../src/ports/web.ts'
import { listenOnLoopback } from './helpers/listen.ts'

const limits = { bytes: 100_000, milliseconds: 10_000 }
const attempts: string[] = []
const servers: Server[] = []

// Records every connection that this process attempts, before it is made.
channel('net.client.socket').subscribe((message) => {
  const socket: unknown = Reflect.get(Object(message), 'socket')
  if (socket instanceof Socket) {
    socket.on('connectionAttempt', (address: string, port: number) => attempts.push(`${address}:${port}`))
  }
})
test.after.always(() => {
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
})

async function serve(listener: RequestListener): Promise<{ url: string; port: number; server: Server }> {
  const server = createServer(listener)
  servers.push(server)
  const port = await listenOnLoopback(server)
  return { url: `http://127.0.0.1:${port}`, port, server }
}

const names =
  (table: Record<string, string[]>): Required<WebOptions>['resolve'] =>
  // oxlint-disable-next-line typescript/require-await -- a resolver is asynchronous
  async (hostname) =>
    (table[hostname] ?? []).map((address): LookupAddress => ({ address, family: isIP(address) }))

async function reasonOf(web: Web, url: string): Promise<string> {
  try {
    await web.request({ url, limits, follow: true })
    return 'answered'
  } catch (error) {
    return error instanceof WebFault ? error.reason : String(error)
  }
}

/** Returns an IPv4 address in all notations that some program accepts. */
function notationsOf(address: string): string[] {
  const bytes = address.split('.').map(Number)
  const [a = 0, b = 0, c = 0, d = 0] = bytes
  const whole = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const [high, low] = [((a << 8) | b).toString(16), ((c << 8) | d).toString(16)]
  return [
    address,
    `${address}.`,
    String(whole),
    `0x${whole.toString(16)}`,
    `0${whole.toString(8)}`,
    bytes.map((byte) => `0x${byte.toString(16)}`).join('.'),
    bytes.map((byte) => `0${byte.toString(8).padStart(3, '0')}`).join('.'),
    `${a}.${(b << 16) | (c << 8) | d}`,
    `${a}.${b}.${(c << 8) | d}`,
    address.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))),
    address.replaceAll('.', '。'),
    `%${[...address].map((letter) => (letter.codePointAt(0) ?? 0).toString(16)).join('%')}`,
    `[::ffff:${address}]`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:ffff:${high}:${low}]`,
    `[::${address}]`,
    `[64:ff9b::${high}:${low}]`,
    `[64:ff9b:1::${high}:${low}]`,
    `[2002:${high}:${low}::1]`,
    `[2001:0:${high}:${low}::1]`,
    `[::ffff:0:${high}:${low}]`,
  ]
}

const INTERNAL_V4 = [
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '169.254.170.2',
  '100.64.0.1',
  '100.100.100.200',
  '192.0.0.192',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '240.0.0.1',
  '168.63.129.16',
]
const INTERNAL_V6 = [
  '::1',
  '::',
  'fe80::1',
  'fec0::1',
  'fc00::1',
  'fd00:ec2::254',
  'ff02::1',
  '2001:db8::1',
  '100::1',
  '4000::1',
  '5f00::1',
]

test.serial('no notation, name, rebinding or redirect reaches an internal address (S3)', async (t) => {
  const seed = Number(process.env['FAULT_SEED'] ?? Math.trunc(Math.random() * 1e9))
  t.log(`seed ${seed}`)
  const trapped: string[] = []
  const trap = await serve((request, response) => {
    trapped.push(request.url ?? '')
    response.end('secret')
  })
  const door = await serve((request, response) => {
    const location = Buffer.from(decodeURIComponent(request.url?.slice(1) ?? '')).toString('latin1')
    response.writeHead(302, { location }).end()
  })
  const literals = [
    ...INTERNAL_V4.flatMap(notationsOf),
    ...INTERNAL_V6.map((address) => `[${address}]`),
    'localhost',
    'LOCALHOST.',
    'sub.localhost',
  ]
  let answers: string[] = []
  const web = createWeb({
    allowPrivate: [`127.0.0.1:${door.port}`],
    ports: [80, 443, trap.port],
    // This resolver returns another address each time. Only its first answer must be used.
    resolve: async (hostname) => await names({ [hostname]: answers.splice(0, 1) })(hostname),
  })
  const arbitrary = fc.record({
    host: fc.constantFrom(...literals),
    address: fc.constantFrom(...INTERNAL_V4, ...INTERNAL_V6),
    way: fc.constantFrom('literal', 'name', 'redirect', 'redirected name', 'several'),
    scheme: fc.constantFrom('http', 'https', 'HTTP'),
    path: fc.constantFrom('', '/', '/latest/meta-data', '?a=http://example.com', '#@example.com'),
  })
  const before = attempts.length
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(arbitrary, async ({ host, address, way, scheme, path }) => {
      const literal = `${scheme}://${host}:${trap.port}${path}`
      const named = `${scheme}://inside.example:${trap.port}${path}`
      answers = way === 'several' ? [] : [address, '127.0.0.1', '127.0.0.1']
      const given = { literal, name: named, several: named }[way as string]
      const inner = way === 'redirect' ? literal : named
      const url = given ?? `${door.url}/${encodeURIComponent(inner)}`
      seen.add(`${url} ${way}`)
      const outcome = await reasonOf(
        way === 'several'
          ? createWeb({
              ports: [trap.port],
              resolve: names({ 'inside.example': ['93.184.215.14', address] }),
            })
          : web,
        url,
      )
      t.true(['NOT_PUBLIC', 'INVALID_URL'].includes(outcome), `${url} (${way}): ${outcome}`)
    }),
    { numRuns: 1_500, seed },
  )
  t.true(seen.size >= 300, `${seen.size} different addresses`)
  t.deepEqual(trapped, [])
  const reached = new Set(attempts.slice(before))
  t.deepEqual(
    [...reached].filter((address) => address !== `127.0.0.1:${door.port}`),
    [],
  )
  t.true(reached.has(`127.0.0.1:${door.port}`), 'the redirects were followed as far as they may be')
})

test.serial('the address that was checked is the one that is connected to', async (t) => {
  const target = await serve((request, response) => response.end(request.headers.host))
  let asked = 0
  const web = createWeb({
    allowPrivate: [`127.0.0.1:${target.port}`],
    // oxlint-disable-next-line typescript/require-await -- a resolver is asynchronous
    resolve: async () => [{ address: asked++ === 0 ? '127.0.0.1' : '127.0.0.2', family: 4 }],
  })
  const before = attempts.length
  const answer = await web.request({ url: `http://rebinding.example:${target.port}/`, limits })
  t.is(String(answer.body), `rebinding.example:${target.port}`)
  t.is(asked, 1)
  t.deepEqual(attempts.slice(before), [`127.0.0.1:${target.port}`])
})

test('public addresses are public, and those beside the reserved ranges too', (t) => {
  for (const address of ['1.1.1.1', '93.184.215.14', '172.32.0.1', '100.128.0.1', '2606:4700::1111']) {
    t.true(isPublicAddress(address), address)
  }
  for (const address of ['', 'localhost', '1.1.1', '::ffff:1.1.1.1', 'fe80::1%eth0']) {
    t.false(isPublicAddress(address), address)
  }
})

test.serial('what is no http address, holds credentials or names another port is refused', async (t) => {
  const web = createWeb({ resolve: names({ 'example.com': ['93.184.215.14'] }) })
  const before = attempts.length
  for (const url of [
    '',
    'x',
    'ftp://example.com',
    'file:///etc/passwd',
    'javascript:1',
    'data:,x',
    'http://',
  ]) {
    t.is(await reasonOf(web, url), 'INVALID_URL', url)
  }
  t.is(await reasonOf(web, 'http://user:word@example.com/'), 'INVALID_URL')
  t.is(await reasonOf(web, 'http://user@example.com/'), 'INVALID_URL')
  t.is(await reasonOf(web, 'http://example.com:22/'), 'NOT_PUBLIC')
  t.is(await reasonOf(web, 'http://example.com:8080/'), 'NOT_PUBLIC')
  t.is(await reasonOf(web, 'http://nowhere.example/'), 'NOT_PUBLIC')
  t.is(attempts.length, before)
})

test('redirects are followed five times where that is asked for, and the answer says where they led', async (t) => {
  const { url, port } = await serve((request, response) => {
    const left = Number(request.url?.slice(1))
    if (left === 0) response.end('there')
    else response.writeHead(301 + (left % 2), { location: `./${left - 1}` }).end()
  })
  const web = createWeb({ allowPrivate: [`127.0.0.1:${port}`] })
  t.like(await web.request({ url: `${url}/5`, limits, follow: true }), { url: `${url}/0`, status: 200 })
  t.is(await reasonOf(web, `${url}/6`), 'TOO_MANY_REDIRECTS')
  t.like(await web.request({ url: `${url}/5`, limits }), { url: `${url}/5`, status: 302 })
})

test('an answer is bounded in bytes, before and after decompression', async (t) => {
  const bomb = Buffer.alloc(20_000_000)
  const encodings: Record<string, Buffer> = {
    gzip: gzipSync(bomb),
    deflate: deflateSync(bomb),
    br: brotliCompressSync(bomb),
  }
  const small = gzipSync('small')
  const { url, port } = await serve((request, response) => {
    const [, kind = ''] = request.url?.split('/') ?? []
    const encoded = encodings[kind]
    if (encoded) response.writeHead(200, { 'content-encoding': kind }).end(encoded)
    else if (kind === 'small') response.writeHead(200, { 'content-encoding': 'gzip' }).end(small)
    else if (kind === 'broken') response.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip')
    else if (kind === 'double') response.writeHead(200, { 'content-encoding': 'gzip, gzip' }).end(small)
    else if (kind === 'none') response.writeHead(204, { 'content-encoding': 'gzip' }).end()
    else if (kind === 'empty') response.writeHead(200, { 'content-encoding': 'br' }).end()
    else if (kind === 'declared') response.writeHead(200, { 'content-length': 200_000 }).write('x')
    else if (kind === 'cut') {
      response.writeHead(200, { 'content-length': 50 }).write('x', () => response.destroy())
    } else if (kind === 'exact') response.end(Buffer.alloc(100_000))
    else {
      const more = (error?: Error | null) => {
        if (!error) response.write(Buffer.alloc(10_000), (fault) => setImmediate(more, fault))
      }
      more()
    }
  })
  const web = createWeb({ allowPrivate: [`127.0.0.1:${port}`] })
  for (const kind of ['gzip', 'deflate', 'br', 'declared', 'endless']) {
    t.is(await reasonOf(web, `${url}/${kind}`), 'TOO_LARGE', kind)
  }
  t.is(String((await web.request({ url: `${url}/small`, limits })).body), 'small')
  t.is((await web.request({ url: `${url}/exact`, limits })).body.length, 100_000)
  for (const kind of ['none', 'empty']) {
    t.is((await web.request({ url: `${url}/${kind}`, limits })).body.length, 0)
  }
  for (const kind of ['broken', 'double', 'cut']) {
    t.is(await reasonOf(web, `${url}/${kind}`), 'UNREACHABLE', kind)
  }
})

test('time is bounded: connecting, waiting, trickling, redirecting in circles, resolving', async (t) => {
  const { url, port } = await serve((request, response) => {
    if (request.url === '/silent') return
    if (request.url === '/trickle') response.write('x')
    else response.writeHead(302, { location: '/silent' }).end()
  })
  const short = { bytes: 1_000, milliseconds: 300 }
  const web = createWeb({ allowPrivate: [`127.0.0.1:${port}`] })
  for (const path of ['silent', 'trickle', 'redirect']) {
    await t.throwsAsync(web.request({ url: `${url}/${path}`, limits: short, follow: true }), {
      instanceOf: WebFault,
      message: /did not answer within 0.3 seconds/,
    })
  }
  const deaf = createWeb({ resolve: () => new Promise(() => undefined) })
  await t.throwsAsync(deaf.request({ url: 'http://example.com', limits: short }), {
    message: /did not answer/,
  })
})

test('a server that is not one, hangs up or switches protocols is unreachable', async (t) => {
  const tcp = createTcpServer((socket) =>
    socket.on('error', () => undefined).end('220 mail.example.com ESMTP\r\n'),
  )
  const port = await listenOnLoopback(tcp)
  const closed = await serve(() => undefined)
  closed.server.close()
  const switching = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'),
    )
  })
  const other = await listenOnLoopback(switching)
  const ports = [port, closed.port, other]
  const web = createWeb({ allowPrivate: ports.map((each) => `127.0.0.1:${each}`) })
  t.is(await reasonOf(web, `http://127.0.0.1:${port}/`), 'UNREACHABLE')
  t.is(await reasonOf(web, `https://127.0.0.1:${port}/`), 'UNREACHABLE')
  t.is(await reasonOf(web, closed.url), 'UNREACHABLE')
  t.is(await reasonOf(web, `http://127.0.0.1:${other}/`), 'UNREACHABLE')
  const line = web.openLine()
  await t.throwsAsync(line.request({ url: `http://127.0.0.1:${other}/`, limits }), { instanceOf: WebFault })
  line.close()
  tcp.close()
  switching.close()
})

test('no more than 32 requests are under way at once', async (t) => {
  const waiting: (() => void)[] = []
  const { url, port } = await serve((_request, response) => {
    waiting.push(() => response.end('done'))
    if (waiting.length === 32) waiting.forEach((finish) => finish())
  })
  const web = createWeb({ allowPrivate: [`127.0.0.1:${port}`] })
  const outcomes = await Promise.all(Array.from({ length: 40 }, async () => await reasonOf(web, url)))
  t.is(outcomes.filter((outcome) => outcome === 'BUSY').length, 8)
  t.is(outcomes.filter((outcome) => outcome === 'answered').length, 32)
})

test.serial(
  'a line keeps its connections and what it looked up, and reaches no more than one request does',
  async (t) => {
    const sockets = new Set<unknown>()
    const { port } = await serve((request, response) => {
      sockets.add(request.socket)
      response.end('x'.repeat(50))
    })
    let lookups = 0
    const resolve: WebOptions['resolve'] = (hostname) => {
      lookups += 1
      return names({ 'shop.example': ['127.0.0.1'], 'trap.example': ['127.0.0.1', '10.0.0.1'] })(hostname)
    }
    const line = createWeb({ allowPrivate: [`127.0.0.1:${port}`], resolve }).openLine()
    const ask = (name: string) =>
      line.request({ url: `http://${name}:${port}/`, method: 'POST', body: 'hello', limits, startOnly: true })
    for (let number = 0; number < 5; number += 1) t.is((await ask('shop.example')).status, 200)
    t.deepEqual([lookups, sockets.size], [1, 1])
    await Promise.all([1, 2, 3].map(() => ask('shop.example')))
    t.is(sockets.size, 3)
    for (let number = 0; number < 2; number += 1) {
      await t.throwsAsync(ask('trap.example'), { instanceOf: WebFault, message: /public address/ })
    }
    const [socket] = sockets
    line.close()
    if (socket instanceof Socket && !socket.destroyed) await once(socket, 'close')
    t.pass()
  },
)

test('a kept connection that the other side has closed costs no answer', async (t) => {
  const { url, port } = await serve((_request, response) => {
    response.end('here')
    // Closes the connection without notice, although the header announced keep-alive.
    response.once('finish', () => setImmediate(() => response.socket?.destroy()))
  })
  const line = createWeb({ allowPrivate: [`127.0.0.1:${port}`] }).openLine()
  t.teardown(() => line.close())
  for (let number = 0; number < 30; number += 1) {
    const { body } = await line.request({ url, method: 'POST', body: 'hello', limits })
    t.is(body.toString(), 'here')
  }
})

test('of an answer that does not matter only the start is read, however long it is', async (t) => {
  const { url, port } = await serve((_request, response) => {
    response.writeHead(200, { 'content-length': 1e12 })
    const more = () => {
      while (response.write('x'.repeat(1_000)));
      response.once('drain', more)
    }
    more()
  })
  const web = createWeb({ allowPrivate: [`127.0.0.1:${port}`] })
  const { status, body } = await web.request({ url, limits: { ...limits, bytes: 1_024 }, startOnly: true })
  t.deepEqual([status, body.toString()], [200, 'x'.repeat(1_024)])
})

test('production opens no private address', (t) => {
  const env = {
    DATABASE_URL: 'postgres://x',
    POSTLOOM_SECRET: 'x'.repeat(32),
    POSTLOOM_ENCRYPTION_KEY: 'y'.repeat(32),
    WEB_ALLOW_PRIVATE: '127.0.0.1:1',
  }
  t.deepEqual(readConfig(env).webAllowPrivate, ['127.0.0.1:1'])
  t.throws(() => readConfig({ ...env, POSTLOOM_ENV: 'production' }), { message: /WEB_ALLOW_PRIVATE/ })
})
