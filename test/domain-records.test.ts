import test from 'ava'

import { readConfig } from '../src/config.ts'
import { judge, type Verdict } from '../src/domain/domains/judge.ts'
import { neededRecords, type NeededRecord } from '../src/domain/domains/records.ts'
import { createDns, type DnsRecord } from '../src/ports/dns.ts'
import { startNameServer, txt } from './helpers/name-server.ts'

const KEY = 'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA'.padEnd(392, 'Qq0/')
const NEEDED = neededRecords(
  { domain: 'shop.example', ownershipToken: 'abc123', keys: [{ selector: 'pl1', publicKey: KEY }] },
  { bounceHost: 'in.postloom.example', spfMechanisms: ['include:relay.example', 'ip4:192.0.2.7'] },
)

function needed(purpose: NeededRecord['purpose']): NeededRecord {
  const record = NEEDED.find((each) => each.purpose === purpose)
  if (!record) throw new Error(`there is no ${purpose}`)
  return record
}

function texts(...values: string[]): DnsRecord[] {
  return values.map((text) => ({ type: 'TXT', strings: text.match(/.{1,255}/g) ?? [''] }))
}

function verdict(purpose: NeededRecord['purpose'], ...values: string[]): Verdict {
  return judge(needed(purpose), texts(...values))
}

test('the records of a domain are ownership, key, return path and policy', (t) => {
  t.deepEqual(
    NEEDED.map(({ name, type, value, priority }) => [name, type, value.slice(0, 50), priority]),
    [
      ['_postloom.shop.example', 'TXT', 'postloom-verification=abc123', undefined],
      ['pl1._domainkey.shop.example', 'TXT', `v=DKIM1; k=rsa; p=${KEY}`.slice(0, 50), undefined],
      ['send.shop.example', 'MX', 'in.postloom.example', 10],
      ['send.shop.example', 'TXT', 'v=spf1 include:relay.example ip4:192.0.2.7 ~all', undefined],
      ['_dmarc.shop.example', 'TXT', 'v=DMARC1; p=none;', undefined],
    ],
  )
  for (const record of NEEDED) {
    const itself: DnsRecord[] =
      record.type === 'MX'
        ? [{ type: 'MX', exchange: record.value, priority: record.priority ?? 0 }]
        : texts(record.value)
    t.is(judge(record, itself).status, 'VERIFIED')
    t.like(judge(record, []), { status: 'MISSING', found: [] })
    t.regex(judge(record, []).repair ?? '', /dd the (TXT|MX) record .*shop\.example/)
  }
})

const NEEDED_SPF = 'include:relay.example ip4:192.0.2.7'
const RIGHT: Record<string, [NeededRecord['purpose'], ...string[]]> = {
  'tags in another order, with spaces and extra ones': [
    'DKIM',
    ` v = DKIM1 ; p = ${KEY.slice(0, 100)} ${KEY.slice(100)} ;t=s; n=made by us; k=RSA`,
  ],
  'a key without version or type': ['DKIM', `p=${KEY}`],
  'a key beside other text': ['DKIM', 'some note', `v=DKIM1; h=sha1:sha256; s=email; p=${KEY}`],
  'an ownership value in quotes and capitals, beside others': [
    'OWNERSHIP',
    'other=1',
    ' "POSTLOOM-verification=ABC123" ',
  ],
  'other mechanisms, another end, capitals': [
    'MAIL_FROM_SPF',
    'V=SPF1 a mx Include:Relay.example include:other.example +ip4:192.0.2.7 -all',
  ],
  'a net of one address': ['MAIL_FROM_SPF', 'v=spf1 include:relay.example ip4:192.0.2.7/32 ~all'],
  'a net that holds the address': ['MAIL_FROM_SPF', 'v=spf1 IP4:192.0.2.0/24 include:relay.example -all'],
  'a host in capitals and with a last dot': [
    'MAIL_FROM_SPF',
    'v=spf1 include:RELAY.example. ip4:192.0.2.7 ~all',
  ],
  'modifiers in front': [
    'MAIL_FROM_SPF',
    'v=spf1 redirect=other.example x-note=1 include:relay.example ip4:192.0.2.7',
  ],
  'an end that allows everybody': ['MAIL_FROM_SPF', 'v=spf1 +all'],
  'what is forbidden elsewhere': [
    'MAIL_FROM_SPF',
    'v=spf1 -ip4:192.0.2.8 -exists:%{ir}.list.example include:relay.example ip4:192.0.2.7 ~all',
  ],
  'look-ups that receivers never get to': [
    'MAIL_FROM_SPF',
    `v=spf1 ${NEEDED_SPF} redirect=other.example ${'a '.repeat(9)}~all ${'mx '.repeat(11)}`.trim(),
  ],
  'a policy without an end': ['MAIL_FROM_SPF', 'v=spf1 ip4:192.0.2.7 include:relay.example', 'unrelated'],
  'a stricter DMARC policy with reports': ['DMARC', 'v=DMARC1;p=Reject; rua=mailto:d@shop.example; adkim=s'],
}
for (const [what, [purpose, ...values]] of Object.entries(RIGHT)) {
  test(`${purpose} is right with ${what}`, (t) => {
    t.is(verdict(purpose, ...values).status, 'VERIFIED', verdict(purpose, ...values).repair)
  })
}

const WRONG: Record<string, readonly [NeededRecord['purpose'], RegExp, ...string[]]> = {
  'another key': ['DKIM', /another key; replace/, 'v=DKIM1; k=rsa; p=MIIBother'],
  'a key that a form cut off': [
    'DKIM',
    /cut off after 237 of 392 characters/,
    `v=DKIM1; k=rsa; p=${KEY.slice(0, 237)}`,
  ],
  'a revoked key': ['DKIM', /revoked/, 'v=DKIM1; p='],
  'two keys': ['DKIM', /2 keys/, `p=${KEY}`, 'p=other'],
  'quotation marks inside': ['DKIM', /quotation marks/, `"v=DKIM1; k=rsa; " "p=${KEY}"`],
  'backslashes inside': ['DKIM', /backslashes/, `v=DKIM1\\; k=rsa\\; p=${KEY}`],
  'another type of key': ['DKIM', /k=ed25519/, `v=DKIM1; k=ed25519; p=${KEY}`],
  'a key for SHA-1 alone': ['DKIM', /h=sha1/, `v=DKIM1; h=sha1; p=${KEY}`],
  'no key at all': ['DKIM', /no DKIM key/, 'hello'],
  'a key in a tag of a capital letter': ['DKIM', /no DKIM key/, `v=DKIM1; P=${KEY}`],
  'the version behind the key': ['DKIM', /Move v=DKIM1 to the beginning/, `p=${KEY}; v=DKIM1`],
  'two keys in one record': ['DKIM', /the tag p more than once/, `v=DKIM1; p=${KEY}; p=${KEY}`],
  'two policies in one record': ['DMARC', /the tag p more than once/, 'v=DMARC1; p=none; p=reject'],
  'another token': ['OWNERSHIP', /Add postloom-verification=abc123/, 'postloom-verification=zzz'],
  'a mechanism that lacks': [
    'MAIL_FROM_SPF',
    /^Let it allow ip4:192\.0\.2\.7 by changing \S+ to: v=spf1 include:relay\.example ip4:192\.0\.2\.7 include:other\.example -all$/,
    'v=spf1 include:other.example include:relay.example -all',
  ],
  'a mechanism after the end': [
    'MAIL_FROM_SPF',
    /^Let it allow ip4/,
    'v=spf1 include:relay.example ~all ip4:192.0.2.7',
  ],
  'a mechanism that is forbidden': [
    'MAIL_FROM_SPF',
    /^Let it allow ip4/,
    'v=spf1 include:relay.example -ip4:192.0.2.7 ~all',
  ],
  'a net around it that is forbidden first': [
    'MAIL_FROM_SPF',
    /^Let it allow ip4/,
    'v=spf1 include:relay.example -ip4:192.0.2.0/24 ip4:192.0.2.7 ~all',
  ],
  'a net beside the address': [
    'MAIL_FROM_SPF',
    /^Let it allow ip4/,
    'v=spf1 include:relay.example ip4:192.0.2.8/29 ~all',
  ],
  'a policy that leads elsewhere': [
    'MAIL_FROM_SPF',
    /^Let it allow include.* to: v=spf1 include:relay\.example ip4:192\.0\.2\.7 redirect=other\.example$/,
    'v=spf1 redirect=other.example',
  ],
  'redirects twice': [
    'MAIL_FROM_SPF',
    /redirect= more than once/,
    'v=spf1 include:relay.example ip4:192.0.2.7 redirect=a.example redirect=b.example',
  ],
  'an unknown mechanism': [
    'MAIL_FROM_SPF',
    /no term foo:bar; change send\.shop\.example to: v=spf1 include:relay\.example ip4:192\.0\.2\.7 mx ~all$/,
    'v=spf1 foo:bar mx include:relay.example ip4:192.0.2.7 ~all',
  ],
  ...Object.fromEntries(
    [
      'ip4:192.0.2.7/33',
      'ip4:relay.example',
      'ip6:192.0.2.7',
      'ip4:192.0.2.07',
      'a:',
      'include',
      'all:x',
      '-',
      'a/x',
    ]
      .concat(['ip6:2001:db8::/129', 'redirect=', 'a:%{z}.example', '-redirect=a.example', 'mx/24/64'])
      .map((term) => [
        `the term ${term}, which is none`,
        ['MAIL_FROM_SPF', /^Receivers refuse the whole policy/, `v=spf1 ${NEEDED_SPF} ~all ${term}`] as const,
      ]),
  ),
  'two policies': [
    'MAIL_FROM_SPF',
    /2 SPF records.*v=spf1 include:relay\.example ip4:192\.0\.2\.7 include:other\.example ~all$/,
    'v=spf1 include:relay.example ip4:192.0.2.7 ~all',
    'v=spf1 include:other.example ~all',
  ],
  'too many look-ups': [
    'MAIL_FROM_SPF',
    /more than 10/,
    `v=spf1 include:relay.example ip4:192.0.2.7 ${Array.from({ length: 10 }, (_, n) => `include:${n}.example`).join(' ')} ~all`,
  ],
  'text that is no policy': ['MAIL_FROM_SPF', /not an SPF policy/, 'v=spf10 include:relay.example'],
  'a space in front': [
    'MAIL_FROM_SPF',
    /^Remove the space at the beginning/,
    ' v=spf1 include:relay.example ip4:192.0.2.7 ~all',
  ],
  'a space in front of it': ['DMARC', /begin with v=DMARC1/, ' v=DMARC1; p=none'],
  'a DMARC policy without p': ['DMARC', /needs p=none/, 'v=DMARC1; rua=mailto:d@shop.example'],
  'a DMARC policy that begins otherwise': ['DMARC', /begin with v=DMARC1/, 'p=none; v=DMARC1'],
  'two DMARC policies': ['DMARC', /2 policies/, 'v=DMARC1; p=none', 'v=DMARC1; p=reject'],
}
for (const [what, [purpose, repair, ...values]] of Object.entries(WRONG)) {
  test(`${purpose} with ${what} is told, and how to repair it`, (t) => {
    const told = verdict(purpose, ...values)
    t.is(told.status, 'MISMATCH')
    t.regex(told.repair ?? '', repair)
    t.true(told.found.length > 0)
  })
}

test('an SPF policy allows what is needed in whatever form it says so', (t) => {
  const status = (wanted: string, text: string) => {
    const record = { ...needed('MAIL_FROM_SPF'), value: `v=spf1 ${wanted} ~all` }
    return judge(record, texts(`v=spf1 ${text}`)).status
  }
  for (const [wanted, ...right] of [
    [
      'a:in.p.example',
      'a:IN.P.example. ~all',
      'a:in.p.example/32',
      'a:in.p.example/24//64',
      '+A:in.p.example//128',
    ],
    ['a:send.shop.example', 'a -all', 'a/24'],
    ['mx', 'mx:send.shop.example', 'mx//64'],
    ['ip6:2001:db8::7', 'ip6:2001:DB8:0:0::7', 'ip6:2001:db8::/32 -all', 'ip6:2001:db8::7/128'],
    ['ip4:192.0.2.0/24', 'ip4:192.0.2.9/24', 'ip4:192.0.0.0/16', 'ip4:0.0.0.0/0'],
  ] as const) {
    for (const text of right) t.is(status(wanted, text), 'VERIFIED', `${wanted} by ${text}`)
  }
  for (const [wanted, ...wrong] of [
    ['a:in.p.example', 'a', 'mx:in.p.example', 'a:p.example', '?a:in.p.example', 'include:in.p.example'],
    ['a:in.p.example/24', 'a:in.p.example', 'a:in.p.example/25//64'],
    ['ip6:2001:db8::7', 'ip6:2001:db8::8', 'ip6:2001:db9::/32', 'ip4:0.0.0.0/0'],
    ['ip4:192.0.2.0/24', 'ip4:192.0.2.0/25', 'ip4:192.0.2.0', '-ip4:192.0.2.9 ip4:192.0.2.0/24'],
  ] as const) {
    for (const text of wrong) t.is(status(wanted, text), 'MISMATCH', `${wanted} by ${text}`)
  }
})

test('the MX must lead to us before all others', (t) => {
  const mx = (exchange: string, priority: number): DnsRecord => ({ type: 'MX', exchange, priority })
  const record = needed('MAIL_FROM_MX')
  t.is(judge(record, [mx('IN.Postloom.example.', 5), mx('other.example', 20)]).status, 'VERIFIED')
  t.regex(judge(record, [mx('other.example', 10)]).repair ?? '', /Replace the MX/)
  t.regex(
    judge(record, [mx('in.postloom.example', 10), mx('other.example', 10)]).repair ?? '',
    /Delete the MX other/,
  )
})

test('name servers are asked over UDP, and over TCP for what is too long; faults are told from nothing', async (t) => {
  const names = await startNameServer()
  try {
    const dns = createDns([names.address])
    const long = 'x'.repeat(3_000)
    names.set('long.example', txt(long), { type: 'TXT', strings: ['two', ' parts'] })
    names.set('mail.example', { type: 'MX', exchange: 'in.example', priority: 10 })
    const [answer] = await dns.lookUp('long.example', 'TXT')
    const records = answer && 'records' in answer ? answer.records : []
    t.deepEqual(records.map((record) => (record.type === 'TXT' ? record.strings.join('') : '')).toSorted(), [
      'two parts',
      long,
    ])
    t.like(await dns.lookUp('mail.example', 'MX'), [
      { records: [{ type: 'MX', exchange: 'in.example', priority: 10 }] },
    ])
    t.like(await dns.lookUp('nothing.example', 'TXT'), [{ server: names.address, records: [] }])
    t.like(await dns.lookUp('mail.example', 'TXT'), [{ records: [] }])
    names.mood = 'broken'
    t.like(await dns.lookUp('long.example', 'TXT'), [{ fault: 'ESERVFAIL' }])
    names.mood = 'silent'
    t.like(await dns.lookUp('long.example', 'TXT'), [{ fault: 'ETIMEOUT' }])
  } finally {
    await names.close()
  }
})

test('name servers, bounce host and SPF come from the environment, and a wrong server is named', (t) => {
  const read = (env: Record<string, string>) => readConfig({ DATABASE_URL: 'postgres://x', ...env }).dns
  t.deepEqual(read({}), {
    servers: [],
    bounceHost: 'mail.postloom.test',
    spfMechanisms: ['a:mail.postloom.test'],
    region: 'local',
  })
  t.like(read({ POSTLOOM_BASE_URL: 'https://Mail.Shop.example' }), { bounceHost: 'mail.shop.example' })
  t.deepEqual(read({ DNS_SERVERS: '9.9.9.9, 127.0.0.1:5353 [::1]:53,2620:fe::fe' }).servers, [
    '9.9.9.9',
    '127.0.0.1:5353',
    '[::1]:53',
    '2620:fe::fe',
  ])
  t.deepEqual(read({ SPF_MECHANISMS: 'include:a.example, ip4:192.0.2.1' }).spfMechanisms, [
    'include:a.example',
    'ip4:192.0.2.1',
  ])
  for (const wrong of ['dns.example', '1.2.3.4:x', '1.2.3.4:99999', '[::1', '300.1.1.1']) {
    t.throws(() => read({ DNS_SERVERS: wrong }), { message: /DNS_SERVERS/ }, wrong)
  }
})
