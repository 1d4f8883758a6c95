import { existsSync } from 'node:fs'

import { CommandFailure } from './failure.ts'

const LOCAL = new URL('./local', import.meta.url)

/** Loads what works on the database of an installation; a package that is installed by itself says where else to go. */
export async function openInstallation(): Promise<typeof import('./local/installation.ts')> {
  if (existsSync(LOCAL)) return await import('./local/installation.ts')
  throw new CommandFailure(
    'NO_CHECKOUT',
    'This command works on the installation itself: run it in the checkout of the server, with "npx postloom".',
  )
}

/** Where the service of this checkout (`npm start`) is; undefined where there is none, or no checkout. */
export async function developmentService() {
  if (!existsSync(LOCAL)) return undefined
  const local = await import('./local/development-service.ts')
  return local.developmentService()
}
