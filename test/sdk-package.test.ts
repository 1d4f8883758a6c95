import { spawn } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import test, { type ExecutionContext } from 'ava'

import { openBrowser } from '../scripts/browser.ts'
import { freePort } from '../scripts/services/ports.ts'
import { endProcess } from './helpers/child.ts'
import { eventually } from './helpers/eventually.ts'
import { listenOnLoopback } from './helpers/listen.ts'
import { installPacked, packWorkspaces, run } from './helpers/packages.ts'
import { where } from './helpers/programs.ts'
import { type Stack, startStack } from './helpers/stack.ts'

const ROOT = join(import.meta.dirname, '..')
const TARBALL = 'postloom-sdk-2.1.0.tgz'

let directory: string
let stack: Stack

test.before(async (t) => {
  t.timeout(300_000)
  directory = mkdtempSync(join(tmpdir(), 'postloom-sdk-'))
  await packWorkspaces(directory, ['sdk'])
  mkdirSync(join(directory, 'user'))
  write('package.json', JSON.stringify({ private: true, type: 'module' }))
  await installPacked(join(directory, 'user'), [`../${TARBALL}`])
  stack = await startStack({ queue: 'sdk-package' })
})
test.after.always(async () => {
  await stack?.close()
  if (directory) rmSync(directory, { recursive: true, force: true })
})

/** Writes a file of the package's user. */
function write(name: string, content: string): void {
  writeFileSync(join(directory, 'user', name), content)
}

/** Returns the examples of a page in one language. */
function examples(page: string, language: string): string[] {
  const found = readFileSync(join(ROOT, page), 'utf8').matchAll(/^```(\w+)\n([^]+?)^```$/gm)
  return Array.from(found, ([, written, code = '']) => (written === language ? [code] : [])).flat()
}

function isProxy(code: string): boolean {
  return code.includes('createServer(')
}

/** Returns the environment for a program of a new organization. */
async function environment(): Promise<Record<string, string>> {
  const { token, domain } = await stack.api.organization()
  return { POSTLOOM_BASE_URL: stack.api.url, POSTLOOM_API_KEY: token, FROM: `hello@${domain}` }
}

test('the package is compiled code and its types, and asks nothing of where it runs but fetch', (t) => {
  const root = join(directory, 'user/node_modules/@postloom/sdk')
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  t.deepEqual(
    Object.keys(manifest).filter((key) => /dependencies|scripts/i.test(key)),
    [],
  )
  t.is(manifest.version, '2.1.0')
  const files = globSync('**/*.*', { cwd: root })
  t.deepEqual(
    files.filter((file) => !/^dist\/.*\.(?:js|d\.ts)$|^(?:package\.json|README\.md)$/.test(file)),
    [],
  )
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const code = readFileSync(join(root, file), 'utf8')
    const imported = Array.from(code.matchAll(/\bfrom '([^']+)'|\bimport\(|\brequire\(/g), ([, name]) => name)
    t.deepEqual(
      imported.filter((name) => !/^\.{1,2}\/.*\.js$/.test(name ?? '')),
      [],
      file,
    )
    t.notRegex(code, /\b(?:Buffer|__dirname|setImmediate)\b/)
  }
  t.is(manifest.exports['.'].default, './dist/index.js')
})

for (const page of ['docs/sdk.md', 'sdk/README.md']) {
  test(`the examples of ${page} do what they say, in plain JavaScript`, async (t) => {
    t.timeout(300_000)
    const env = await environment()
    const prelude = "import { Postloom } from '@postloom/sdk'\nconst postloom = new Postloom()\n"
    const written: string[] = []
    for (const [index, code] of examples(page, 'js')
      .filter((each) => !isProxy(each))
      .entries()) {
      const file = `${page.replaceAll('/', '-')}-${index}.js`
      write(file, code.includes('import { Postloom }') ? code : prelude + code)
      written.push(await run(process.execPath, [file], join(directory, 'user'), env))
    }
    const [first] = written
    if (page === 'sdk/README.md') {
      t.regex(first ?? '', /^eml_\w+\n$/)
      return
    }
    const shown = [
      /'emails'/,
      /^not_found 404 .*\n[0-9a-f-]{36} /,
      /^eml_\w+\n$/,
      /^(?:SCHEDULED|SENDING|SENT)\n/,
    ]
    const rest = [
      /grace@example\.com/,
      /^DRAFT\n$/,
      /^UNSUBSCRIBED\n$/,
      /^read\n$/,
      /^(?:PENDING|RUNNING|COMPLETED)\n$/,
    ]
    const expected = [...shown, ...rest]
    t.is(written.length, expected.length)
    for (const [index, pattern] of expected.entries()) t.regex(written[index] ?? '', pattern)
  })
}

test('TypeScript holds a caller to the types, however it finds modules and whatever gives it fetch', async (t) => {
  t.timeout(300_000)
  cpSync(join(ROOT, 'test/helpers/sdk-consumer.ts'), join(directory, 'user/consumer.ts'))
  const prelude = "import { Postloom } from '@postloom/sdk'\ndeclare const email: string\n"
  write('documented.ts', prelude + examples('docs/sdk.md', 'ts').join('\n'))
  const ways = [
    ['nodenext', 'nodenext', 'es2022', 'node'],
    ['esnext', 'bundler', 'es2022,dom,dom.iterable', ''],
  ]
  for (const [module = '', resolution = '', lib = '', types = ''] of ways) {
    const options = ['--module', module, '--moduleResolution', resolution, '--lib', lib, '--types', types]
    const strict = [
      '--noEmit',
      '--strict',
      '--target',
      'es2022',
      '--typeRoots',
      join(ROOT, 'node_modules/@types'),
    ]
    await t.notThrowsAsync(
      run('tsc', [...strict, ...options, 'consumer.ts', 'documented.ts'], join(directory, 'user')),
    )
  }
})

/** Starts the proxy of the documentation in front of the API. */
async function startProxy(t: ExecutionContext): Promise<string> {
  write('proxy.js', examples('docs/sdk.md', 'js').find(isProxy) ?? '')
  const port = String(await freePort())
  const child = spawn(process.execPath, ['proxy.js'], {
    cwd: join(directory, 'user'),
    env: { ...process.env, ...(await environment()), PORT: port },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.teardown(() => endProcess(child))
  const url = `http://127.0.0.1:${port}`
  await eventually('the proxy to listen', async () => (await fetch(url)).status === 404)
  return url
}

const PAGE = `<!doctype html><script type="module">
import { Postloom } from '/sdk/index.js'
const postloom = new Postloom(undefined, { baseUrl: '/postloom' })
globalThis.asked = (async () => {
  const event = { email: 'visitor@browser-reader.example', eventType: 'PLAN_VIEWED', amount: 2 }
  const known = await postloom.events.create(event)
  const barred = await postloom.subscribers.list()
  return JSON.stringify({ known, barred, isTyped: barred.error instanceof Error })
})()
</script>`

where(test, process.env['CHROMIUM'] ?? 'chromium')(
  'a page in a browser loads the modules as they are, and reaches the service through a proxy that has the token',
  async (t) => {
    t.timeout(180_000)
    const proxy = await startProxy(t)
    const modules = join(directory, 'user/node_modules/@postloom/sdk/dist')
    const server = createServer(async (request, response) => {
      const { url = '/', method = 'GET' } = request
      if (url === '/') return response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
      if (url.startsWith('/sdk/')) {
        const code = readFileSync(join(modules, url.slice('/sdk/'.length)))
        return response.writeHead(200, { 'content-type': 'text/javascript' }).end(code)
      }
      const body = method === 'GET' ? null : await text(request)
      const answer = await fetch(proxy + url, { method, body })
      const type = answer.headers.get('content-type') ?? 'text/plain'
      return response.writeHead(answer.status, { 'content-type': type }).end(await answer.text())
    })
    const port = await listenOnLoopback(server)
    t.teardown(() => server.close())
    const browser = openBrowser()
    t.teardown(() => browser.close())
    const page = await browser.newPage()
    await page.open(`http://127.0.0.1:${port}/`)
    const answer = JSON.parse(String(await page.evaluate('globalThis.asked')))
    t.like(answer.known, { error: { name: 'not_found', statusCode: 404 } })
    t.like(answer.barred, { data: null, error: { name: 'invalid_response', statusCode: 404 } })
    t.true(answer.isTyped)
  },
)
