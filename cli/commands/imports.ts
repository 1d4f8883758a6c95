import { openAsBlob } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import type { CreateImportQuery, ImportFile, Postloom, SubscriberImport } from '@postloom/sdk'
import { type Command, Option } from 'commander'

import { dataOf } from '../api.ts'
import type { Context } from '../context.ts'
import { CommandFailure, misused } from '../failure.ts'
import { facts, type Output } from '../output.ts'

type Options = {
  map?: string[]
  tag?: string[]
  status?: 'SUBSCRIBED' | 'UNSUBSCRIBED'
  resubscribe?: boolean
  triggerWorkflows?: boolean
  rejected?: string
}

const EVERY_MS = 500
/** A day: a file of a gigabyte, or its rejected rows, can take long. */
const FILE_MS = 86_400_000
/** Polling continues while the service is briefly unavailable. */
const RETRIES = 5
const BAR = 30

/** Adds `import`, which imports subscribers from a CSV file and shows the progress. */
export function addImport(program: Command, context: Context): void {
  program
    .command('import')
    .description('import people from a CSV file and show its progress')
    .argument('<file>', 'its first row names the columns')
    .option(
      '-m, --map <column=field...>',
      'where a column goes, such as "E-mail=email" or "Plan=fields.plan"',
    )
    .option('-t, --tag <name...>', 'tags that everybody gets')
    .addOption(
      new Option('-s, --status <status>', 'the status of rows that have none of their own').choices([
        'SUBSCRIBED',
        'UNSUBSCRIBED',
      ]),
    )
    .option('--resubscribe', 'subscribe people again who are unsubscribed')
    .option('--trigger-workflows', 'start the workflows that match')
    .option('--rejected <file>', 'write the rejected rows to this CSV file')
    .action((file: string, options: Options) => importFile(context, file, options))
}

async function importFile({ connect, output }: Context, file: string, options: Options): Promise<void> {
  const content = await openFile(file)
  const query = queryOf(options)
  const { client } = await connect()
  const started = dataOf(await client.imports.create(content, query, { timeout: FILE_MS }))
  output.note(`The file is uploaded as ${started.id}; the import continues even if this command ends.`)
  output.note(columnsOf(started))
  const done = await follow(client, output, started)
  if (options.rejected !== undefined && done.failed > 0) {
    await writeFile(options.rejected, dataOf(await client.imports.rejected(done.id, { timeout: FILE_MS })))
  }
  if (done.status !== 'COMPLETED') {
    throw new CommandFailure(
      `IMPORT_${done.status}`,
      `The import ${done.id} is ${done.status} after ${done.rows} rows: ${done.error ?? 'somebody ended it.'}`,
      { body: { import: done } },
    )
  }
  output.result(done, summary(done, options.rejected))
}

/** Ends with the reason when the file cannot be read: `openAsBlob` does not tell it. */
async function openFile(file: string): Promise<ImportFile> {
  try {
    const handle = await open(file)
    const stat = await handle.stat()
    // A pipe has no size and can be read only once: `<(zcat people.csv.gz)`, /dev/stdin.
    if (!stat.isFile() && !stat.isDirectory()) return Readable.toWeb(handle.createReadStream())
    await handle.read(Buffer.alloc(1)).finally(() => handle.close())
    return await openAsBlob(file, { type: 'text/csv' })
  } catch (error) {
    misused(`${file} cannot be read (${String(Object(error).code)}).`)
  }
}

async function follow(
  client: Postloom,
  output: Output,
  started: SubscriberImport,
): Promise<SubscriberImport> {
  let current = started
  while (current.status === 'PENDING' || current.status === 'RUNNING') {
    output.progress(bar(current))
    await sleep(EVERY_MS)
    current = dataOf(await client.imports.get(current.id, { retries: RETRIES }))
  }
  output.progress('')
  return current
}

function bar({ status, rows, expectedRows }: SubscriberImport): string {
  if (status === 'PENDING' || expectedRows === 0) return 'Waiting for a worker'
  const share = Math.min(1, rows / Math.max(1, expectedRows))
  const full = Math.round(share * BAR)
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${Math.round(share * 100)} %  ${rows} of about ${expectedRows} rows`
}

/** Says where each column goes, so that a wrong guess is seen at once. */
function columnsOf({ mapping }: SubscriberImport): string {
  const columns = Object.entries<string | null>(mapping)
  const used = columns.flatMap(([name, target]) => (target === null ? [] : `${name} → ${target}`))
  const unused = columns.flatMap(([name, target]) => (target === null ? name : []))
  const left =
    unused.length === 0 ? '' : ` Not imported: ${unused.join(', ')}; --map leads columns to fields.`
  return `Columns: ${used.join(', ')}.${left}`
}

function summary(
  { id, rows, imported, updated, failed }: SubscriberImport,
  rejected: string | undefined,
): string {
  const place = rejected === undefined ? '; --rejected FILE writes them down' : `, written to ${rejected}`
  return facts([
    ['Import', id],
    ['Rows', rows],
    ['New', imported],
    ['Updated', updated],
    ['Refused', failed === 0 ? 0 : `${failed}${place}`],
  ])
}

function queryOf({ map, tag, status, resubscribe, triggerWorkflows }: Options): CreateImportQuery {
  return {
    ...(map && { mapping: Object.fromEntries(map.map(readMapping)) }),
    ...(tag && { tags: tag }),
    ...(status && { status }),
    ...(resubscribe && { resubscribe }),
    ...(triggerWorkflows && { triggerWorkflows }),
  }
}

/** Splits at the last equals sign: the name of a column may contain one, the name of a field cannot. */
function readMapping(text: string): [column: string, field: string] {
  const at = text.lastIndexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  misused(`--map ${JSON.stringify(text)} is not COLUMN=FIELD, such as "E-mail=email".`)
}
