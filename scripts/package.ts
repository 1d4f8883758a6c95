import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

/**
 * Around `npm pack`, in the folder of a workspace. In the repository its manifest points to the TypeScript, which Node
 * runs as it is; Node does not do that in `node_modules`, so what is published is compiled, and its manifest has the
 * fields of `publishConfig`, as pnpm would put them there.
 */
const MANIFEST = 'package.json'
const KEPT = 'package.json.kept'

const STEPS: Record<string, () => void> = {
  make() {
    // Left by a run that was cut off.
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
