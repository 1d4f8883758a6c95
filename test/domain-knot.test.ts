import { execFile, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import test, { type ExecutionContext } from 'ava'

import type { Domain, DomainRecord } from '../schema/domain.ts'
import { freePort } from '../scripts/services/ports.ts'
import { newId } from '../src/ids.ts'
import { startEngine } from '../worker/workers.ts'
import { startApi } from './helpers/api.ts'
import { eventually } from './helpers/eventually.ts'
import { where } from './helpers/programs.ts'
import { scratchDirectory } from './helpers/services.ts'

const run = promisify(execFile)

type Knot = {
  /** The address in the format of `DNS_SERVERS`. */
  address: string
  /** Replaces all records of the zone. */
  publish(records: readonly DomainRecord[]): Promise<void>
}

/** Starts Knot DNS, authoritative for one zone on loopback. */
async function startKnot(t: ExecutionContext, zone: string): Promise<Knot> {
  const directory = scratchDirectory('knot')
  const [port, settings, file] = [await freePort(), join(directory, 'knot.conf'), join(directory, 'zone')]
  mkdirSync(join(directory, 'run'))
  const lines = [
    `server:\n  rundir: ${join(directory, 'run')}\n  listen: 127.0.0.1@${port}`,
    `database:\n  storage: ${join(directory, 'database')}`,
    `log:\n  - target: stderr\n    any: warning`,
    `zone:\n  - domain: ${zone}\n    file: ${file}`,
  ]
  writeFileSync(settings, `${lines.join('\n')}\n`)
  let serial = 0
  function write(records: readonly DomainRecord[]): void {
    serial += 1
    const soa = `${zone}. 0 SOA ns.${zone}. hostmaster.${zone}. ${serial} 3600 600 86400 0`
    const names = [soa, `${zone}. 0 NS ns.${zone}.`, `ns.${zone}. 0 A 127.0.0.1`]
    writeFileSync(file, `${[...names, ...records.map(zoneLine)].join('\n')}\n`)
  }
  write([])
  const server = spawn('knotd', ['--config', settings], { stdio: 'ignore' })
  const ended = new Promise((resolve) => server.once('exit', resolve))
  t.teardown(async () => {
    server.kill('SIGTERM')
    await ended
  })
  const control = async (...words: string[]) => await run('knotc', ['--config', settings, ...words])
  const isUp = async () =>
    await control('zone-status', zone).then(
      () => true,
      () => false,
    )
  await eventually('Knot to answer', isUp)
  return {
    address: `127.0.0.1:${port}`,
    async publish(records) {
      write(records)
      await control('--blocking', 'zone-reload', zone)
    },
  }
}

/** Returns a record in the syntax of zone files, with long texts split into strings of at most 255 bytes. */
function zoneLine({ name, type, value, priority }: DomainRecord): string {
  if (type === 'MX') return `${name}. 0 MX ${priority} ${value}.`
  const strings = value.match(/.{1,255}/g) ?? ['']
  return `${name}. 0 TXT ${strings.map((part) => `"${part.replaceAll(/["\\]/g, String.raw`\$&`)}"`).join(' ')}`
}

function statuses({ providerRecords }: Domain): Record<string, string> {
  return Object.fromEntries(providerRecords.map(({ purpose, status }) => [purpose, status]))
}

// Other domain tests use a name server in this process. This one checks against independent software.
where(
  test,
  'knotd',
  'knotc',
)('Knot DNS serves the records one by one, and each is seen until the domain is VERIFIED', async (t) => {
  const host = `d${newId().slice(-12)}.example`
  const knot = await startKnot(t, host)
  const api = await startApi({
    TEMPORAL_TASK_QUEUE: `knot-${process.pid}`,
    DNS_SERVERS: knot.address,
    BOUNCE_HOST: 'in.postloom.example',
    SPF_MECHANISMS: 'include:relay.example',
  })
  t.teardown(() => api.close())
  const engine = await startEngine(api.services)
  t.teardown(() => engine.stop())
  const organization = await api.organization()
  const { domain }: { domain: Domain } = await organization.data('create_domain', { domain: host })
  const verify = async (): Promise<Domain> =>
    (await organization.data('verify_domain', { domain: host })).domain

  const expected = Object.fromEntries(domain.providerRecords.map(({ purpose }) => [purpose, 'MISSING']))
  t.deepEqual(statuses(await verify()), expected)
  const published: DomainRecord[] = []
  for (const record of domain.providerRecords) {
    published.push(record)
    await knot.publish(published)
    expected[record.purpose] = 'VERIFIED'
    t.deepEqual(statuses(await verify()), expected, record.purpose)
  }
  t.is((await verify()).status, 'VERIFIED')

  const wrong = published.map((record) =>
    record.purpose === 'MAIL_FROM_SPF' ? { ...record, value: 'v=spf1 include:other.example -all' } : record,
  )
  await knot.publish(wrong)
  const broken = await verify()
  t.deepEqual(statuses(broken), { ...expected, MAIL_FROM_SPF: 'MISMATCH' })
  const spf = broken.providerRecords.find(({ purpose }) => purpose === 'MAIL_FROM_SPF')
  t.regex(spf?.repair ?? '', /include:relay\.example/)
})
