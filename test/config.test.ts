import test from 'ava'

import { readSmtpConfig } from '../smtp/config.ts'
import { readConfig } from '../src/config.ts'

const SECRETS = {
  POSTLOOM_SECRET: 'a'.repeat(32),
  POSTLOOM_ENCRYPTION_KEY: 'b'.repeat(32),
  DATABASE_URL: 'postgres://database',
  SMTP_TLS_CERT: 'cert.pem',
  SMTP_TLS_KEY: 'key.pem',
}

test('processes reach each other where they listen', (t) => {
  const urls = (env: Record<string, string>) => {
    const { baseUrl, relayUrl } = readConfig({ ...SECRETS, ...env })
    const { api } = readSmtpConfig({ ...SECRETS, ...env })
    return [baseUrl, relayUrl, api.url, api.host]
  }
  const at = (host: string) => [
    `http://${host}:3000`,
    `smtp://${host}:1025`,
    `http://${host}:3000`,
    `${host}:3000`,
  ]
  t.deepEqual(urls({}), at('127.0.0.1'))
  t.deepEqual(urls({ POSTLOOM_HOST: '' }), at('127.0.0.1'))
  t.deepEqual(urls({ POSTLOOM_HOST: '192.0.2.1' }), at('192.0.2.1'))
  t.deepEqual(urls({ POSTLOOM_HOST: '2001:db8::1' }), at('[2001:db8::1]'))
  t.deepEqual(urls({ POSTLOOM_HOST: '0.0.0.0' }), at('127.0.0.1'))
  t.deepEqual(urls({ POSTLOOM_HOST: '::' }), at('127.0.0.1'))
  t.deepEqual(
    urls({
      POSTLOOM_HOST: '0.0.0.0',
      POSTLOOM_BASE_URL: 'https://mail.example.org/',
      POSTLOOM_API_URL: 'http://api:3000',
      RELAY_URL: 'smtp://relay.example.org:587',
    }),
    ['https://mail.example.org', 'smtp://relay.example.org:587', 'http://api:3000', 'mail.example.org'],
  )
})

test('an empty variable is one that is not set', (t) => {
  const names = [
    'POSTLOOM_HOST',
    'POSTLOOM_BASE_URL',
    'TEMPORAL_ADDRESS',
    'TEMPORAL_NAMESPACE',
    'TEMPORAL_TASK_QUEUE',
  ]
  const more = [
    'API_PORT',
    'RELAY_URL',
    'LOG_LEVEL',
    'POSTLOOM_SECRET',
    'POSTLOOM_ENCRYPTION_KEY',
    'DNS_SERVERS',
  ]
  const { DATABASE_URL, SMTP_TLS_CERT, SMTP_TLS_KEY } = SECRETS
  const needed = { DATABASE_URL, SMTP_TLS_CERT, SMTP_TLS_KEY }
  const empty = { ...Object.fromEntries([...names, ...more].map((name) => [name, ''])), ...needed }
  t.deepEqual(readConfig(empty), readConfig(needed))
  t.deepEqual(readSmtpConfig({ ...empty, POSTLOOM_API_URL: '', SMTP_PORT: '' }), readSmtpConfig(needed))
})

test('a log level that does not exist is refused with those that do', (t) => {
  for (const read of [readConfig, readSmtpConfig]) {
    const message = /^LOG_LEVEL is "loud"; give one of trace, debug, info, warn, error, fatal, silent\.$/
    t.throws(() => read({ ...SECRETS, LOG_LEVEL: 'loud' }), { message })
  }
})

test('a public address that is none stops each process at its start', (t) => {
  for (const wrong of ['mail.example.org', 'localhost:3000', 'ftp://mail.example.org', 'https://']) {
    const env = { ...SECRETS, POSTLOOM_BASE_URL: wrong }
    t.throws(() => readConfig(env), { message: /^POSTLOOM_BASE_URL is / }, wrong)
    t.throws(() => readSmtpConfig(env), { message: /^POSTLOOM_BASE_URL is / }, wrong)
  }
})

test('a word that a variable does not know stops each process at its start', (t) => {
  const wrong = [
    ['POSTLOOM_ENV', 'prod', 'development, production'],
    ['TEMPORAL_TLS', 'yes', 'true, 1, false, 0'],
  ] as const
  for (const [name, word, choices] of wrong) {
    const message = `${name} is "${word}"; give one of ${choices}.`
    t.throws(() => readConfig({ ...SECRETS, [name]: word }), { message })
    if (name !== 'TEMPORAL_TLS') t.throws(() => readSmtpConfig({ ...SECRETS, [name]: word }), { message })
    t.notThrows(() => readConfig({ ...SECRETS, [name]: '' }))
  }
  t.like(readConfig({ ...SECRETS, TEMPORAL_TLS: '1' }), {
    env: 'development',
    temporal: { tls: true },
    logLevel: 'info',
  })
})
