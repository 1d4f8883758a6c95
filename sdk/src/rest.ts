import type { Routes } from './catalogue.ts'
import type { Result } from './result.ts'
import type { WriteOptions } from './settings.ts'
import type { Transport } from './transport.ts'

/** The addresses of REST, each with its own types. */
export class Rest {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Asks one address; the input is the query of a GET and the body of everything else. */
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

  /** Sends a file to one address, whose input stands in the query. */
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

  /** Reads an answer that is no JSON. */
  async text(path: string, parameters: readonly string[], options?: WriteOptions): Promise<Result<string>> {
    const request = { method: 'GET', path, parameters, isSafe: true, read: (text: string) => text }
    return await this.#transport.send(request, options)
  }
}

/** The service holds its answers to the schemas that the types are made from. */
function readObject(text: string): unknown {
  const body: unknown = JSON.parse(text)
  return typeof body === 'object' && body !== null ? body : undefined
}
