import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/**
 * Runs before and after `npm pack` in the folder of a workspace. In the repository the manifest points to the
 * TypeScript files, which Node runs directly. Node does not do that inside `node_modules`, so the published package is
 * compiled and its manifest gets the fields of `publishConfig`, as pnpm does.
 */
const MANIFEST = 'package.json'
const KEPT = 'package.json.kept'

const STEPS: Record<string, () => void> = {
  make() {
    // An interrupted run may have left the changed manifest behind.
    restore()
    rmSync('dist', { recursive: true, force: true })
    execFileSync('tsc', ['-p', '.'], { stdio: 'inherit' })
    const { scripts: _, publishConfig, ...manifest } = JSON.parse(readFileSync(MANIFEST, 'utf8'))
    renameSync(MANIFEST, KEPT)
    writeFileSync(MANIFEST, `${JSON.stringify({ ...manifest, ...publishConfig }, undefined, 2)}\n`)
  },
  restore,
}

function restore(): void {
  if (existsSync(KEPT)) renameSync(KEPT, MANIFEST)
}

const step = STEPS[process.argv[2] ?? '']
if (!step) throw new Error('say make or restore')
step()
