import test from 'ava'

import { startApi, type TestApi } from './helpers/api.ts'

let api: TestApi

test.before(async () => {
  api = await startApi()
})
test.after.always(async () => {
  await api?.close()
})

test('settings change one by one, and what is left out stays', async (t) => {
  const organization = await api.organization()
  const before = (await organization.data('update_organization_settings')).organization
  t.like(before, {
    timezone: 'Europe/Paris',
    doubleOptIn: false,
    confirmationEmail: null,
    plan: 'ENTERPRISE',
  })

  const confirmationEmail = { subject: 'Is it you, {{name}}?', markdown: 'Please **confirm**.' }
  await organization.data('update_organization_settings', { name: 'Analytical Engines' })
  await organization.data('update_organization_settings', { timezone: 'america/new_york' })
  await organization.data('update_organization_settings', { doubleOptIn: true, confirmationEmail })
  const { organization: after } = await organization.data('update_organization_settings', {})
  t.like(after, {
    id: before.id,
    slug: before.slug,
    name: 'Analytical Engines',
    timezone: 'America/New_York',
    doubleOptIn: true,
    confirmationEmail,
  })
  t.true(after.updatedAt > before.updatedAt)
  const { organization: variables } = await organization.data('get_available_variables')
  t.is(variables[0].example, 'Analytical Engines')

  const other = await api.organization()
  t.like((await other.data('update_organization_settings')).organization, { confirmationEmail: null })

  const reset = await organization.data('update_organization_settings', { confirmationEmail: null })
  t.like(reset.organization, { name: 'Analytical Engines', doubleOptIn: true, confirmationEmail: null })
})

test('a call that gives no setting changes nothing, not even the time of the last change', async (t) => {
  const organization = await api.organization()
  const { organization: before } = await organization.data('update_organization_settings', {
    name: 'Engines',
  })
  await organization.data('update_writing_style', {})
  t.deepEqual((await organization.data('update_organization_settings', {})).organization, before)
})

test('settings that cannot be are refused by name, and nothing changes', async (t) => {
  const organization = await api.organization()
  for (const [path, input] of [
    ['name', { name: '  ' }],
    ['name', { name: 'A\nB' }],
    ['name', { name: 'x'.repeat(101) }],
    ['timezone', { timezone: 'Mars/Olympus' }],
    ['timezone', { timezone: '+02:00' }],
    ['timezone', { timezone: "Europe/Paris'; drop table organization" }],
    ['confirmationEmail.subject', { confirmationEmail: { subject: ' ', markdown: 'x' } }],
    ['confirmationEmail.subject', { confirmationEmail: { subject: 'a\r\nBcc: b', markdown: 'x' } }],
    ['confirmationEmail.markdown', { confirmationEmail: { subject: 'x', markdown: '' } }],
    ['confirmationEmail.markdown', { confirmationEmail: { subject: 'x', markdown: 'x'.repeat(20_001) } }],
    ['confirmationEmail.html', { confirmationEmail: { subject: 'x', markdown: 'x', html: 'x' } }],
  ] as const) {
    const answer = await organization.call('update_organization_settings', { doubleOptIn: true, ...input })
    t.is(answer.status, 400, JSON.stringify(input))
    t.is(answer.body.details[0].path, path)
  }
  t.false((await organization.data('update_organization_settings')).organization.doubleOptIn)
})

test('the writing style keeps what it is told until it is cleared', async (t) => {
  const organization = await api.organization()
  const nothing = { persona: null, audience: null, vocabulary: null }
  t.deepEqual((await organization.data('get_writing_style')).writingStyle, nothing)
  await organization.data('update_writing_style', { persona: 'A calm engineer', vocabulary: 'Say email.' })
  const { writingStyle } = await organization.data('update_writing_style', {
    audience: 'Makers',
    persona: '',
  })
  t.deepEqual(writingStyle, { persona: null, audience: 'Makers', vocabulary: 'Say email.' })
  t.deepEqual((await organization.data('get_writing_style')).writingStyle, writingStyle)
  t.is((await organization.call('update_writing_style', { persona: 'x'.repeat(5_001) })).status, 400)
  t.deepEqual((await (await api.organization()).data('get_writing_style')).writingStyle, nothing)
})
