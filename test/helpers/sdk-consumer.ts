import {
  type Campaign,
  type List,
  Postloom,
  PostloomError,
  type Result,
  type Subscriber,
} from '@postloom/sdk'

/** Only compiled, never run: shows what the SDK's types allow callers to write, and what they refuse. */
export async function consume(postloom: Postloom): Promise<Result<Campaign>> {
  const { data: campaign, error, headers } = await postloom.campaigns.get('cmp_1')
  if (error) {
    const refusal: PostloomError = error
    const status: number | null = refusal.statusCode
    // @ts-expect-error where there is an error there are no data
    console.log(status, campaign.subject, refusal.challenge?.summary.recipients)
  } else {
    const subject: string = campaign.subject
    const status: 'DRAFT' | 'SCHEDULED' | 'SENDING' | 'SENT' | 'ARCHIVED' | 'FAILED' = campaign.status
    // @ts-expect-error a campaign has no such member
    console.log(subject, status, campaign.colour)
  }
  // @ts-expect-error it may be missing
  const requestId: string = headers['x-request-id']

  const from = 'hello@shop.example'
  await postloom.emails.send({ from, to: 'a@b.example', subject: 'Hello', html: '' }, { idempotencyKey: 'k' })
  // @ts-expect-error the subject is missing
  await postloom.emails.send({ from, to: 'a@b.example', html: '' })
  // @ts-expect-error v2 has no attachments
  await postloom.emails.send({ from, to: 'a@b.example', subject: 'Hello', html: '', attachments: [] })
  // @ts-expect-error a read takes no key
  await postloom.emails.get('eml_1', { idempotencyKey: 'k' })
  // @ts-expect-error no such status
  await postloom.subscribers.list({ status: 'HAPPY' })
  // @ts-expect-error a walk goes one way
  postloom.subscribers.each({ before: 'sub_1' })

  for await (const result of postloom.subscribers.each({ tag: 'vip' })) {
    if (result.error) break
    const person: Subscriber = result.data
    console.log(person.email, requestId)
  }
  const page: Result<List<Subscriber>> = await postloom.subscribers.list()
  console.log(page.data?.has_more)

  await postloom.tools.list_tags()
  await postloom.tools.list_tags({}, { retries: 2, timeout: 10, signal: new AbortController().signal })
  const made = await postloom.tools.create_workflow({ name: 'Welcome' })
  // @ts-expect-error what may be an error is looked at first
  console.log(made.data.workflow.id)
  if (made.data) console.log(made.data.workflow.id)
  // @ts-expect-error the id is missing
  await postloom.tools.get_campaign({})
  // @ts-expect-error the input is missing
  await postloom.tools.get_campaign()
  // @ts-expect-error there is no such tool
  await postloom.tools.send_pigeon({})
  await postloom.tools.unsubscribe(
    { email: 'a@b.example' },
    { confirm: async ({ summary }) => summary.effects.length > 0 },
  )
  // @ts-expect-error a confirmation answers yes or no
  await postloom.tools.unsubscribe({ email: 'a@b.example' }, { confirm: () => 'yes' })
  // @ts-expect-error a key is text
  console.log(new Postloom(5), new Postloom(), new Postloom('pl_1', { baseUrl: '/postloom', retries: 1 }))
  return error ? { data: null, error, headers } : { data: campaign, error: null, headers }
}
