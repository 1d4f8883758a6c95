import { execFile } from 'node:child_process'
import { cpSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(import.meta.dirname, '../..')

/** Runs a program and returns its output. */
export async function run(
  file: string,
  parameters: readonly string[],
  cwd: string,
  env: object = {},
): Promise<string> {
  // The packages' scripts call `node` and `tsc` by name, so the PATH must find ours.
  const PATH = [join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  return (await promisify(execFile)(file, parameters, { cwd, env: { ...process.env, PATH, ...env } })).stdout
}

/** Packs workspaces into `directory` as they are published. */
export async function packWorkspaces(directory: string, workspaces: readonly string[]): Promise<void> {
  // Uses a copy, because packing temporarily replaces the manifest.
  const clone = join(directory, 'clone')
  for (const path of ['tsconfig.json', 'scripts/package.ts', ...workspaces]) {
    cpSync(join(ROOT, path), join(clone, path), {
      recursive: true,
      filter: (file) => !/node_modules|dist$/.test(file.slice(ROOT.length)),
    })
  }
  for (const name of workspaces)
    await run('npm', ['pack', '--pack-destination', directory], join(clone, name))
}

/** Installs packed files in a directory with a manifest, without a registry. */
export async function installPacked(directory: string, files: readonly string[]): Promise<void> {
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...files], directory)
}
