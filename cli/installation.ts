import { existsSync } from 'node:fs'

import { CommandFailure } from './failure.ts'

const LOCAL = new URL('./local', import.meta.url)

/**
 * Loads the functions that use the database of an installation. Throws `NO_CHECKOUT` in the published package, which
 * does not contain them.
 */
export async function openInstallation(): Promise<typeof import('./local/installation.ts')> {
  if (existsSync(LOCAL)) return await import('./local/installation.ts')
  throw new CommandFailure(
    'NO_CHECKOUT',
    'This command works on the installation itself: run it in the checkout of the server, with "npx postloom".',
  )
}

/**
 * Returns the addresses of this checkout's service (`npm start`); undefined if it never started or there is no
 * checkout.
 */
export async function developmentService() {
  if (!existsSync(LOCAL)) return undefined
  const local = await import('./local/development-service.ts')
  return local.developmentService()
}
