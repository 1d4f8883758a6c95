import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Sends one request to an MCP server with the command line of the MCP Inspector. Returns the printed result. */
export async function inspect(
  program: string,
  { url, token }: { url: string; token: string },
  method: string,
  ...options: string[]
  // oxlint-disable-next-line typescript/no-explicit-any -- assertions reach into results of every shape
): Promise<any> {
  const asked = ['--transport', 'http', '--header', `Authorization: Bearer ${token}`, '--method', method]
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, '--cli', url, ...asked, ...options],
    { maxBuffer: 50_000_000 },
  )
  return JSON.parse(stdout)
}
