import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

import { startChild } from '../../scripts/services/child.ts'
import { freePort } from '../../scripts/services/ports.ts'
import { processMs, type System } from './system.ts'

/** The cost of one campaign sent by listmonk, measured from its first email to its last. */
type Sent = { seconds: number; processorMs: number; databaseMs: number }

/** The number of connections and workers; we use as many for campaigns. */
const CONNECTIONS = 64

/**
 * Starts listmonk with a database of its own on the same PostgreSQL, and the same sink. `directory` is a checkout of
 * its repository in which `go build -o listmonk ./cmd` was run. Its rate limits are disabled. listmonk stores no row
 * per recipient.
 */
export async function startListmonk(
  system: System,
  { directory, recipients, html }: { directory: string; recipients: number; html: string },
) {
  const binary = join(directory, 'listmonk')
  if (!existsSync(binary)) throw new Error(`${binary} is not there: run "go build -o listmonk ./cmd" in it`)
  // listmonk reads the pages of its dashboard when it starts; empty directories are enough here.
  mkdirSync(join(directory, 'frontend/dist/static'), { recursive: true })
  const url = new URL(system.services.config.databaseUrl)
  const admin = new pg.Client({ connectionString: url.href })
  await admin.connect()
  await admin.query('create database listmonk')
  await admin.end()
  const port = await freePort()
  const environment = {
    ...process.env,
    LISTMONK_app__address: `127.0.0.1:${port}`,
    LISTMONK_db__host: url.hostname,
    LISTMONK_db__port: url.port,
    LISTMONK_db__user: url.username,
    LISTMONK_db__password: decodeURIComponent(url.password),
    LISTMONK_db__database: 'listmonk',
    LISTMONK_db__ssl_mode: 'disable',
    LISTMONK_db__max_open: '25',
    LISTMONK_db__max_idle: '25',
    LISTMONK_db__max_lifetime: '300s',
  }
  const start = (name: string, ...more: string[]) =>
    startChild({
      command: binary,
      arguments: ['--config=', ...more],
      identity: 'listmonk',
      pidFile: join(directory, `${name}.pid`),
      output: (line) => {
        if (/error|fatal/i.test(line)) console.error(`listmonk: ${line}`)
      },
      environment,
      directory,
    })
  const database = new pg.Client({
    connectionString: Object.assign(new URL(url), { pathname: '/listmonk' }).href,
  })
  await install()
  await database.connect()
  await database.query(`
    insert into lists (uuid, name, type) values (gen_random_uuid(), 'Readers', 'public');
    insert into subscribers (uuid, email, name)
      select gen_random_uuid(), 'reader-' || n || '@reader.example', 'Reader ' || n from generate_series(1, ${recipients}) n;
    insert into subscriber_lists (subscriber_id, list_id, status)
      select s.id, l.id, 'confirmed' from subscribers s, lists l
      where s.email like 'reader-%' and l.name = 'Readers';
    insert into templates (name, subject, body) values ('Bare', '', '{{ template "content" . }}');
  `)
  const settings = {
    'app.concurrency': CONNECTIONS,
    // Per second and worker. listmonk allocates memory for this many.
    'app.message_rate': 1_000,
    'privacy.individual_tracking': true,
    smtp: [
      {
        enabled: true,
        host: '127.0.0.1',
        port: system.sink.port,
        auth_protocol: 'none',
        hello_hostname: 'localhost',
        max_conns: CONNECTIONS,
        idle_timeout: '15s',
        wait_timeout: '5s',
        max_msg_retries: 2,
        tls_type: 'none',
        email_headers: [],
      },
    ],
  }
  for (const [key, value] of Object.entries(settings)) {
    await database.query('update settings set value = $2 where key = $1', [key, JSON.stringify(value)])
  }
  await database.query('analyze')
  const service = await start('listmonk')

  async function install(): Promise<void> {
    await (
      await start('install', '--install', '--idempotent', '--yes')
    ).exited
  }

  return {
    async run(): Promise<Sent> {
      system.sink.clear()
      const { rows } = await database.query<{ id: number }>(
        `insert into campaigns (uuid, name, subject, from_email, body, content_type, messenger, template_id)
          select gen_random_uuid(), 'News', 'News for {{ .Subscriber.Name }}', 'Shop <hello@bare.example>', $1, 'html',
            'email', id from templates where name = 'Bare' returning id`,
        [html],
      )
      const id = rows[0]?.id
      await database.query(
        `insert into campaign_lists (campaign_id, list_id, list_name) select $1, id, name from lists where name = 'Readers'`,
        [id],
      )
      await database.query(`update campaigns set status = 'running' where id = $1`, [id])
      while (system.sink.journal.length === 0) await sleep(5)
      const began = performance.now()
      const [processor, postgres] = [processMs(service.pid), system.processorMs('postgres')]
      while (system.sink.journal.length < recipients) await sleep(20)
      return {
        seconds: (performance.now() - began) / 1_000,
        processorMs: processMs(service.pid) - processor,
        databaseMs: system.processorMs('postgres') - postgres,
      }
    },
    async stop(): Promise<void> {
      await database.end()
      await service.stop()
    },
  }
}
