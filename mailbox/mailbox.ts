import { createServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'

import { createApp } from './app.ts'
import { createReceiver } from './receive.ts'
import { MailStore, type Bounds } from './store.ts'

/** Port 0 selects any free port. */
export type MailboxOptions = {
  file: string
  host?: string
  httpPort?: number
  smtpPort?: number
  bounds?: Bounds
  onFault?: (error: Error) => void
}

/** A running mailbox. */
export type Mailbox = {
  url: string
  smtpPort: number
  close(): Promise<void>
}

/** Starts a mailbox that receives mail by SMTP and shows it by HTTP, for development and tests. */
export async function startMailbox(options: MailboxOptions): Promise<Mailbox> {
  const { file, host = '127.0.0.1', httpPort = 0, smtpPort = 0, onFault = () => undefined } = options
  const store = new MailStore(file, options.bounds)
  const app = createApp({ store, host })
  app.on('error', onFault)
  const web = createServer(app.callback())
  const receiver = createReceiver(store, onFault)
  try {
    await listen(web, httpPort, host)
    await listen(receiver.server, smtpPort, host)
  } catch (error) {
    web.close()
    store.close()
    throw error
  }
  const shownHost = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return {
    url: `http://${shownHost}:${portOf(web)}`,
    smtpPort: portOf(receiver.server),
    close: async () => {
      web.closeAllConnections()
      await new Promise((resolve) => web.close(resolve))
      await new Promise<void>((resolve) => receiver.close(resolve))
      store.close()
    },
  }
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function portOf(server: Server): number {
  // The address of a listening TCP server is an object.
  return (server.address() as AddressInfo).port
}
