import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import test from 'ava'

import { startApi, type TestApi } from './helpers/api.ts'
import { ended } from './helpers/cli.ts'
import { installPacked, packWorkspaces, run } from './helpers/packages.ts'
import { scratchDirectory } from './helpers/services.ts'

const ROOT = join(import.meta.dirname, '..')
const directory = scratchDirectory('cli-package')
const user = join(directory, 'user')

let api: TestApi

test.before(async (t) => {
  t.timeout(300_000)
  api = await startApi()
  await packWorkspaces(directory, ['sdk', 'cli'])
  // Dependencies are packed from where they are installed, so that no registry is needed.
  const others = [...dependenciesOf('@clack/prompts'), ...dependenciesOf('commander')]
  await run(
    'npm',
    ['pack', '--ignore-scripts', '--pack-destination', directory, ...new Set(others)],
    directory,
  )
  mkdirSync(user)
  writeFileSync(join(user, 'package.json'), '{"private": true}')
  const files = globSync('*.tgz', { cwd: directory }).map((file) => `../${file}`)
  await installPacked(user, files)
})
test.after.always(() => api?.close())

/** Returns the folder of an installed package, and those of its dependencies. */
function dependenciesOf(name: string): string[] {
  const places = ['cli/node_modules', 'node_modules'].map((place) => join(ROOT, place, name))
  const folder = places.find((place) => existsSync(place)) ?? ''
  const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return [folder, ...Object.keys(dependencies).flatMap(dependenciesOf)]
}

/** Runs the installed command as a user without a checkout. */
async function postloom(parameters: string[], env: Record<string, string> = {}) {
  const child = execFile(join(user, 'node_modules', '.bin', 'postloom'), parameters, {
    cwd: user,
    env: { PATH: `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}`, HOME: user, ...env },
  })
  return await ended(child)
}

test('the package is compiled code without the core, and needs the SDK, a parser and prompts', (t) => {
  const root = join(user, 'node_modules', '@postloom', 'cli')
  const files = globSync('**/*', { cwd: root })
  t.true(files.includes('dist/main.js'))
  t.deepEqual(
    files.filter((file) => /\.ts$|local/.test(file)),
    [],
  )
  const { dependencies, scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  t.deepEqual(Object.keys(dependencies).sort(), ['@clack/prompts', '@postloom/sdk', 'commander'])
  t.is(scripts, undefined)
})

test('the installed command asks a service, and says of the rest where it belongs', async (t) => {
  const { token } = await api.organization()
  const env = { POSTLOOM_BASE_URL: api.url, POSTLOOM_API_KEY: token }
  const version = await postloom(['--version'])
  t.is(version.stdout, '2.1.0\n')
  const made = await postloom(['run', 'create_tag', '--input', '{"name": "VIP"}'], env)
  t.is(made.code, 0, made.stderr)
  t.is(made.json.tag.name, 'VIP')
  t.is((await postloom(['tools', '--json'], env)).code, 0)
  const gated = await postloom(['run', 'delete_tag', '--input', '{"name": "VIP"}', '--confirm'], env)
  t.is(gated.code, 0, gated.stderr)
  t.is((await postloom(['whoami'])).code, 1)
  for (const parameters of [['doctor'], ['org', 'list']]) {
    const refused = await postloom([...parameters, '--json'])
    t.is(refused.code, 1)
    t.is(refused.json.error.code, 'NO_CHECKOUT')
  }
})
