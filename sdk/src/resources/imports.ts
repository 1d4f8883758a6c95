import type { BrowseImportsQuery, CreateImportQuery } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** A CSV file, or what it is read from. */
export type ImportFile = string | Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>

/** Files of people. */
export class Imports {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** A page of imports, newest first. */
  list(query?: BrowseImportsQuery, options?: CallOptions) {
    return this.#rest.call('GET /imports', [], query, options)
  }

  /** All of them, one after another, page by page. */
  each(query?: Walk<BrowseImportsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Takes a CSV file and imports it in the background. A stream cannot be sent twice, so it is never retried. */
  create(file: ImportFile, query: CreateImportQuery = {}, options?: WriteOptions) {
    return this.#rest.upload('POST /imports', { body: file, type: 'text/csv' }, query, options)
  }

  /** How far an import is. */
  get(importId: string, options?: CallOptions) {
    return this.#rest.call('GET /imports/:importId', [importId], undefined, options)
  }

  /** Stops an import; rows that are applied stay. */
  cancel(importId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /imports/:importId', [importId], undefined, options)
  }

  /** The rows that were refused, as the text of a CSV file. */
  rejected(importId: string, options?: CallOptions) {
    return this.#rest.text('/imports/:importId/rejected', [importId], options)
  }
}
