import { createServer } from 'node:net'

/** Below 32,768, where Linux begins to assign ports to outgoing connections, which could take a chosen port. */
const FIRST = 15_000
const BLOCKS = 177
const BLOCK = 100
/**
 * Coprime with `BLOCK`, so that every port is returned once before any is repeated. It is greater than 1 because
 * `choosePorts` tries neighbouring ports when one is taken.
 */
const STEP = 37
let given = 0

/**
 * Returns a port that is free now. Nothing reserves it. To avoid conflicts, each process chooses from a block of its
 * own, and returns all of its ports before it repeats one: a port whose owner does not listen yet still looks free.
 */
export async function freePort(host = '127.0.0.1'): Promise<number> {
  const first = FIRST + (process.pid % BLOCKS) * BLOCK
  for (let tried = 0; tried < BLOCK; tried += 1) {
    const port = first + ((given++ * STEP) % BLOCK)
    if (await isPortFree(port, host)) return port
  }
  throw new Error(`no port from ${first} to ${first + BLOCK - 1} is free`)
}

/** Returns whether nothing listens on the port. */
async function isPortFree(port: number, host: string): Promise<boolean> {
  return await new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}

/** A port that the service needs: the variable that configures it, and the default. */
export type PortRequest = {
  variable: string
  standard: number
  purpose: string
  host: string
}

/**
 * Chooses the ports. A configured port must be free; a default port that is taken is replaced by the next free one, and
 * `report` is called with a message. The result has the names of the requests.
 */
export async function choosePorts<Name extends string>(
  requests: Partial<Record<Name, PortRequest>>,
  environment: Record<string, string | undefined>,
  report: (line: string) => void,
): Promise<Partial<Record<Name, number>>> {
  const chosen = new Map<string, number>()
  const entries = Object.entries<PortRequest | undefined>(requests).flatMap(([name, request]) =>
    request ? [[name, request] as const] : [],
  )
  // Configured ports go first, so that defaults avoid them.
  const configured = entries.filter(([, request]) => environment[request.variable])
  for (const [name, request] of configured) {
    chosen.set(name, await configuredPort(request, environment[request.variable] ?? '', chosen))
  }
  for (const [name, request] of entries) {
    if (!chosen.has(name)) chosen.set(name, await nextFreePort(request, chosen, report))
  }
  // The loops above set every name of the record.
  return Object.fromEntries(chosen) as Partial<Record<Name, number>>
}

async function configuredPort(
  { variable, purpose, host }: PortRequest,
  value: string,
  chosen: ReadonlyMap<string, number>,
): Promise<number> {
  const port = Number(value)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new Error(`${variable}=${value} is not a port; give a number from 1 to 65535`)
  }
  if ([...chosen.values()].includes(port)) {
    throw new Error(`${variable}=${port} is set for something else already; give ${purpose} its own port`)
  }
  if (await isPortFree(port, host)) return port
  throw new Error(
    `Port ${port} for ${purpose} (${variable}) is taken by another program; stop it, or set ${variable} to a free port`,
  )
}

async function nextFreePort(
  { variable, standard, purpose, host }: PortRequest,
  chosen: ReadonlyMap<string, number>,
  report: (line: string) => void,
): Promise<number> {
  for (let port = standard; port < standard + 200; port += 1) {
    if ([...chosen.values()].includes(port) || !(await isPortFree(port, host))) continue
    if (port !== standard)
      report(`Port ${standard} for ${purpose} is taken: using ${port} (${variable} sets it).`)
    return port
  }
  throw new Error(`No free port for ${purpose} from ${standard} on; set ${variable}`)
}
