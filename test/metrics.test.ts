import test from 'ava'

import { freePort } from '../scripts/services/ports.ts'
import { createServices } from '../src/services.ts'
import { createMetrics } from '../worker/metrics.ts'
import { eventually } from './helpers/eventually.ts'
import { openMailroom } from './helpers/mailroom.ts'

/** Returns the value of a metric with exactly these labels, as Prometheus reads it; null where it has none. */
function valueOf(text: string, sample: string): number | null {
  const line = text.split('\n').find((each) => each.startsWith(`${sample} `))
  return line === undefined ? null : Number(line.slice(sample.length))
}

test('a worker counts what it sends and what waits, and names relays that rest', async (t) => {
  const room = await openMailroom({
    behaviour: {
      onRecipient(address) {
        if (address.startsWith('unknown')) return { code: 550, text: '5.1.1 no such user' }
        return address.startsWith('later') ? { code: 451, text: '4.7.1 try again later' } : 'accept'
      },
    },
  })
  t.teardown(() => room.close())
  // What is put off is not tried a second time in this test.
  const lanes = await room.start({ backOff: () => 3_600_000 })
  const metrics = createMetrics(room.services, lanes)
  const emails = (outcome: string) => `postloom_emails_total{lane="transactional",outcome="${outcome}"}`
  const relay = `postloom_relay_usable{relay="${new URL(room.sink.url).host}"}`
  for (const address of ['ada@reader.example', 'unknown@reader.example', 'later@reader.example']) {
    await room.send(await room.person(), { recipient: address })
  }
  await eventually('all outcomes to be counted', async () => {
    const text = await metrics.text()
    return ['accepted', 'bounced', 'deferred'].every((outcome) => valueOf(text, emails(outcome)) === 1)
  })
  await eventually('the deferred email to be counted', async () => {
    const text = await metrics.text()
    return valueOf(text, 'postloom_queue_emails{lane="transactional",state="deferred"}') !== null
  })
  const before = await metrics.text()
  t.is(valueOf(before, emails('failed')), 0)
  t.is(valueOf(before, relay), 1)
  t.is(valueOf(before, 'postloom_queue_late_seconds{lane="bulk"}'), 0)
  t.is(valueOf(before, 'postloom_outbox_rows'), 0)
  t.regex(before, /^nodejs_eventloop_lag_seconds /m)

  await room.sink.close()
  await room.send(await room.person())
  await eventually('the relay to rest and the email to wait', async () => {
    const text = await metrics.text()
    return valueOf(text, relay) === 0 && (valueOf(text, emails('untried')) ?? 0) > 0
  })

  const config = {
    ...room.services.config,
    databaseUrl: `postgres://nobody@127.0.0.1:${await freePort()}/nothing`,
  }
  const without = await createServices(config, 'test')
  t.teardown(() => without.close())
  const away = await createMetrics(without, lanes).text()
  t.is(valueOf(away, emails('accepted')), 1)
  t.is(valueOf(away, 'postloom_outbox_rows'), null)
})
