import type { Routes } from './catalogue.ts'
import type { Result } from './result.ts'
import type { WriteOptions } from './settings.ts'
import type { Transport } from './transport.ts'

/** Calls the routes of the REST API with the types of each route. */
export class Rest {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Calls a route. `input` is the query of a GET, and the body of every other method. */
  async call<Name extends keyof Routes>(
    name: Name,
    parameters: Routes[Name]['path'],
    input?: Routes[Name]['input'],
    options?: WriteOptions,
  ): Promise<Result<Routes[Name]['output']>> {
    const [method = '', path = ''] = name.split(' ')
    const isSafe = method === 'GET'
    const read = (text: string) => readObject(text) as Routes[Name]['output'] | undefined
    const place = isSafe ? { query: input } : { body: input }
    const request = { method, path, parameters, ...place, isSafe, read }
    return await this.#transport.send(request, options)
  }

  /** Uploads a file to a route, whose input is the query. */
  async upload<Name extends keyof Routes>(
    name: Name,
    file: { body: unknown; type: string },
    query: Routes[Name]['input'],
    options?: WriteOptions,
  ): Promise<Result<Routes[Name]['output']>> {
    const [method = '', path = ''] = name.split(' ')
    const read = (text: string) => readObject(text) as Routes[Name]['output'] | undefined
    const content = { body: file.body, bodyType: file.type }
    const request = { method, path, query, ...content, isSafe: false, read }
    return await this.#transport.send(request, options)
  }

  /** Returns the text of an answer that is not JSON. */
  async text(path: string, parameters: readonly string[], options?: WriteOptions): Promise<Result<string>> {
    const request = { method: 'GET', path, parameters, isSafe: true, read: (text: string) => text }
    return await this.#transport.send(request, options)
  }
}

/** The cast of the caller is safe because the service checks its answers against the schemas of these types. */
function readObject(text: string): unknown {
  const body: unknown = JSON.parse(text)
  return typeof body === 'object' && body !== null ? body : undefined
}
