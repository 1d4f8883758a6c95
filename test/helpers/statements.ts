import pg from 'pg'

/**
 * Calls `onStatement` with every statement that this process sends to PostgreSQL from now on, and with its values. To
 * be called before any client is created, because a client keeps the method that it finds.
 */
export function watchStatements(onStatement: (text: string, values: unknown) => void): void {
  // oxlint-disable-next-line typescript/unbound-method -- it is called on the client that it was called on
  const { query } = pg.Client.prototype
  Object.assign(pg.Client.prototype, {
    query(this: pg.Client, ...parameters: unknown[]) {
      const [asked, given] = parameters
      const { text = asked, values = given } = Object(asked)
      onStatement(String(text), values)
      return Reflect.apply(query, this, parameters)
    },
  })
}
