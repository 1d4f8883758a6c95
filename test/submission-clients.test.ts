import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

import anyTest, { type ExecutionContext, type TestFn } from 'ava'
import { createTransport } from 'nodemailer'

import { startApi, type TestApi, type TestOrganization } from './helpers/api.ts'
import { where } from './helpers/programs.ts'
import { type InboundDoor, openSubmission, type Submitted, submittedBy } from './helpers/reports.ts'
import { scratchDirectory } from './helpers/services.ts'
import { Talk } from './helpers/smtp-talk.ts'

type Context = { api: TestApi; door: InboundDoor }
type Client = { organization: TestOrganization; from: string; token: string; port: string; cert: string }

const test = anyTest as TestFn<Context>
const run = promisify(execFile)
const PHPMAILER = '/usr/share/php/libphp-phpmailer/autoload.php'

test.before(async (t) => {
  const api = await startApi()
  t.context = { api, door: await openSubmission(api.services, api.url) }
})
test.after.always(async (t) => {
  await t.context.door.close()
  await t.context.api.close()
})

async function newClient({ api, door }: Context): Promise<Client> {
  const organization = await api.organization()
  const { token, domain } = organization
  return { organization, from: `hello@${domain}`, token, port: String(door.port), cert: door.certFile }
}

async function submitted(t: ExecutionContext<Context>, { organization }: Client): Promise<Submitted[]> {
  return await submittedBy(t.context.api.services, organization.id)
}

function scratchFile(name: string, text: string): string {
  const file = join(scratchDirectory('client'), name)
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

const PYTHON = `
import smtplib, ssl, sys
port, cert, token, sender = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
from email.message import EmailMessage
m = EmailMessage()
m['From'], m['To'], m['Subject'] = sender, 'ada@reader.example', 'Grüße von Python'
m.set_content('Plain é')
m.add_alternative('<p>Rich é</p>', subtype='html')
with smtplib.SMTP('localhost', port) as s:
    s.starttls(context=ssl.create_default_context(cafile=cert))
    s.login('python', token)
    print(s.send_message(m))
`

where(test, 'python3')('Python smtplib submits as it is', async (t) => {
  const client = await newClient(t.context)
  await run('python3', ['-c', PYTHON, client.port, client.cert, client.token, client.from])
  const [email] = await submitted(t, client)
  t.like(email, { recipient: 'ada@reader.example', source: { subject: 'Grüße von Python' } })
  t.is(email?.source.text?.trim(), 'Plain é')
})

test('nodemailer submits as it is, many messages over a pool of connections', async (t) => {
  const client = await newClient(t.context)
  const mailer = createTransport({
    pool: true,
    maxConnections: 2,
    host: 'localhost',
    port: t.context.door.port,
    requireTLS: true,
    tls: { ca: t.context.door.cert },
    auth: { user: 'nodemailer', pass: client.token },
  })
  t.true(await mailer.verify())
  await Promise.all(
    Array.from({ length: 12 }, (_, count) =>
      mailer.sendMail({
        from: client.from,
        to: `p${count}@reader.example`,
        subject: `Größe ${count}`,
        text: 'Plain ü',
        html: '<p>Rich ü</p>',
      }),
    ),
  )
  mailer.close()
  const emails = await submitted(t, client)
  t.is(new Set(emails.map(({ source }) => source.subject)).size, 12)
  t.true(
    emails.every(({ source }) => source.content === '<p>Rich ü</p>' && source.text?.trim() === 'Plain ü'),
  )
})

where(test, 'curl')('curl submits as it is', async (t) => {
  const client = await newClient(t.context)
  const mail = `From: ${client.from}\r\nTo: lin@reader.example\r\nSubject: A note\r\n\r\nHello\r\n`
  const transport = `--silent --show-error --ssl-reqd --cacert ${client.cert} smtp://localhost:${client.port}`
  const envelope = `--mail-from ${client.from} --mail-rcpt lin@reader.example`
  const given = `--user curl:${client.token} --upload-file ${scratchFile('mail.txt', mail)}`
  await run('curl', `${transport} ${envelope} ${given}`.split(' '))
  t.like(await submitted(t, client), [{ recipient: 'lin@reader.example', source: { subject: 'A note' } }])
})

where(test, 'swaks')('swaks submits as it is, by each kind of login', async (t) => {
  const client = await newClient(t.context)
  for (const login of ['PLAIN', 'LOGIN']) {
    const transport = `--server localhost --port ${client.port} --tls --tls-verify --tls-ca-path ${client.cert}`
    const user = `--auth ${login} --auth-user swaks --auth-password ${client.token}`
    const envelope = `--from ${client.from} --to lin@reader.example --body Hello --header`
    await run('swaks', [...`${transport} ${user} ${envelope}`.split(' '), `Subject: By ${login}`])
  }
  const emails = await submitted(t, client)
  t.deepEqual(
    emails.map(({ source }) => source.subject),
    ['By PLAIN', 'By LOGIN'],
  )
})

function msmtpSettings({ port, cert, token, from }: Client): string {
  const lines = [
    'account default',
    'host localhost',
    `port ${port}`,
    'auth on',
    'user msmtp',
    `password ${token}`,
    `from ${from}`,
    'tls on',
    'tls_starttls on',
    `tls_trust_file ${cert}`,
  ]
  return scratchFile('msmtprc', `${lines.join('\n')}\n`)
}

/** Runs a program with the given standard input and returns its output. */
async function feed(program: string, parameters: string[], input: string): Promise<string> {
  const running = run(program, parameters)
  running.child.stdin?.end(input)
  return (await running).stdout
}

where(test, 'msmtp')(
  'msmtp submits as it is, as a sendmail that takes recipients from the message',
  async (t) => {
    const client = await newClient(t.context)
    const mail = `From: Cron <${client.from}>\nTo: Ops <ops@reader.example>\nSubject: Backup\n\nDone.\n.\nBye\n`
    await feed('msmtp', ['-C', msmtpSettings(client), '-t'], mail)
    const [email] = await submitted(t, client)
    t.like(email, { recipient: 'ops@reader.example', fromName: 'Cron', source: { subject: 'Backup' } })
    t.is(email?.source.text?.replaceAll('\r\n', '\n').trim(), 'Done.\n.\nBye')
  },
)

where(
  test,
  'php',
  'msmtp',
)("PHP's mail() submits through a sendmail", async (t) => {
  const client = await newClient(t.context)
  const sendmail = `msmtp -C ${msmtpSettings(client)} -t`
  const script = `<?php
    $headers = ['From' => 'Shop <${client.from}>', 'Reply-To' => 'help@reader.example',
      'MIME-Version' => '1.0', 'Content-Type' => 'text/html; charset=UTF-8', 'X-Mailer' => 'PHP/' . phpversion()];
    exit(mail('ada@reader.example', '=?UTF-8?B?' . base64_encode('Bestätigung') . '?=', '<p>Danke für alles</p>', $headers) ? 0 : 1);`
  await run('php', ['-d', `sendmail_path=${sendmail}`, scratchFile('mail.php', script)])
  const [email] = await submitted(t, client)
  t.like(email, { fromName: 'Shop', replyTo: 'help@reader.example', source: { subject: 'Bestätigung' } })
  t.is(email?.source.content.trim(), '<p>Danke für alles</p>')
})

// WordPress plugins send like this: its `wp_mail()` uses PHPMailer and keeps one connection for several messages.
where(
  test,
  'php',
  PHPMAILER,
)('PHPMailer submits as it is, one connection for several messages', async (t) => {
  const client = await newClient(t.context)
  const script = `<?php
    require '${PHPMAILER}';
    $mail = new PHPMailer\\PHPMailer\\PHPMailer(true);
    $mail->isSMTP();
    $mail->Host = 'localhost';
    $mail->Port = ${client.port};
    $mail->SMTPAuth = true;
    $mail->SMTPSecure = 'tls';
    $mail->SMTPOptions = ['ssl' => ['cafile' => '${client.cert}']];
    $mail->SMTPKeepAlive = true;
    $mail->Username = 'wordpress';
    $mail->Password = '${client.token}';
    $mail->CharSet = 'UTF-8';
    $mail->setFrom('${client.from}', 'Café Blog');
    $mail->isHTML(true);
    foreach (['ada', 'lin', 'mei'] as $name) {
      $mail->clearAddresses();
      $mail->addAddress("$name@reader.example");
      $mail->Subject = "Passwort zurücksetzen für $name";
      $mail->Body = "<p>Hallo <b>$name</b>, schön.</p>";
      $mail->AltBody = "Hallo $name, schön.";
      $mail->send();
    }
    $mail->smtpClose();`
  await run('php', [scratchFile('mailer.php', script)])
  const emails = await submitted(t, client)
  t.deepEqual(
    emails.map(({ recipient, fromName, source }) => [
      recipient,
      fromName,
      source.subject,
      source.text?.trim(),
    ]),
    ['ada', 'lin', 'mei'].map((name) => [
      `${name}@reader.example`,
      'Café Blog',
      `Passwort zurücksetzen für ${name}`,
      `Hallo ${name}, schön.`,
    ]),
  )
})

test("the words of a WordPress plugin: a test of the settings, then messages between RSETs, with PHPMailer's headers", async (t) => {
  const client = await newClient(t.context)
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const login = async () => {
    const talk = await Talk.secured(t.context.door)
    t.regex(await talk.say('AUTH LOGIN'), /^334 /)
    t.regex(await talk.say(base64('wp')), /^334 /)
    t.regex(await talk.say(base64(client.token)), /^235 /)
    return talk
  }
  const settings = await login()
  t.regex(await settings.say('NOOP'), /^250 /)
  t.regex(await settings.say('QUIT'), /^221 /)
  const talk = await login()
  for (const name of ['ada', 'lin']) {
    t.regex(await talk.say(`MAIL FROM:<${client.from}>`), /^250 /)
    t.regex(await talk.say(`RCPT TO:<${name}@reader.example>`), /^250 /)
    t.regex(await talk.say('DATA'), /^354 /)
    const lines = [
      'Date: Sat, 22 Nov 2025 01:00:00 +0000',
      `To: ${name}@reader.example`,
      `From: WordPress <${client.from}>`,
      'Subject: =?UTF-8?Q?[Caf=C3=A9]_Neuer?= =?UTF-8?Q?_Kommentar?=',
      `Message-ID: <${name}@blog.example>`,
      'X-Mailer: PHPMailer 6.9.3 (https://github.com/PHPMailer/PHPMailer)',
      'MIME-Version: 1.0',
      'Content-Type: text/plain; charset=UTF-8',
      'Content-Transfer-Encoding: 8bit',
      '',
      'Größe der Seite',
      '..a line that begins with a dot',
    ]
    talk.write(`${lines.join('\r\n')}\r\n\r\n.\r\n`)
    t.regex(await talk.reply(), /^250 2\.6\.0 /)
    t.regex(await talk.say('RSET'), /^250 /)
  }
  t.regex(await talk.say('QUIT'), /^221 /)
  const emails = await submitted(t, client)
  t.deepEqual(
    emails.map(({ recipient, source }) => [recipient, source.subject]),
    ['ada', 'lin'].map((name) => [`${name}@reader.example`, '[Café] Neuer Kommentar']),
  )
  t.is(
    emails[0]?.source.text?.trim().replaceAll('\r\n', '\n'),
    'Größe der Seite\n.a line that begins with a dot',
  )
})
