import type { BrowseImportsQuery, CreateImportQuery } from '../catalogue.ts'
import type { Rest } from '../rest.ts'
import type { CallOptions, WriteOptions } from '../settings.ts'
import { walk, WALK_LIMIT, type Walk } from '../walk.ts'

/** The content of a CSV file. */
export type ImportFile = string | Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>

/** Imports of subscribers from files. */
export class Imports {
  readonly #rest: Rest

  constructor(rest: Rest) {
    this.#rest = rest
  }

  /** Returns a page of imports, newest first. */
  list(query?: BrowseImportsQuery, options?: CallOptions) {
    return this.#rest.call('GET /imports', [], query, options)
  }

  /** Iterates over all imports, one at a time, reading page by page. */
  each(query?: Walk<BrowseImportsQuery>, options?: CallOptions) {
    return walk((page) => this.list({ limit: WALK_LIMIT, ...query, ...page }, options))
  }

  /** Uploads a CSV file and imports it in the background. A stream cannot be sent twice, so it is never retried. */
  create(file: ImportFile, query: CreateImportQuery = {}, options?: WriteOptions) {
    return this.#rest.upload('POST /imports', { body: file, type: 'text/csv' }, query, options)
  }

  /** Returns an import and its progress. */
  get(importId: string, options?: CallOptions) {
    return this.#rest.call('GET /imports/:importId', [importId], undefined, options)
  }

  /** Cancels an import. Rows that are already applied are kept. */
  cancel(importId: string, options?: WriteOptions) {
    return this.#rest.call('DELETE /imports/:importId', [importId], undefined, options)
  }

  /** Returns the refused rows as the text of a CSV file. */
  rejected(importId: string, options?: CallOptions) {
    return this.#rest.text('/imports/:importId/rejected', [importId], options)
  }
}
