import anyTest, { type TestFn } from 'ava'

import { type FieldKind, FIELDS } from '../../schema/audience.ts'
import { STEP_CONFIGS, WAIT_UNTIL_CONFIGS } from '../../schema/automation-steps.ts'
import { TRIGGER_CONFIGS } from '../../schema/automation-triggers.ts'
import { CATALOGUE } from '../../src/catalogue/registry.ts'
import type { Tool } from '../../src/catalogue/tool.ts'
import { encodeId, ID_PREFIXES, newId } from '../../src/ids.ts'
import { startApi, type TestApi, type TestOrganization } from '../helpers/api.ts'
import { letIn, type Said, SERVED_DOORS } from '../helpers/doors.ts'
import { makeLostWorld, makeMissingWorld, makeWorld, type World } from '../helpers/world.ts'

/**
 * S2, the tenant matrix: every parameter of every operation that refers to a record is tested with the id of another
 * organization, an unknown id, a deleted record and a malformed id. The answers must be identical except for the id
 * itself. They must differ from the answer for a record of one's own, which proves that the lookup was reached.
 */
type Kind = keyof World
type Worlds = { own: World; foreign: World; lost: World; missing: World }

const test = anyTest as TestFn<{ api: TestApi; organization: TestOrganization; worlds: Worlds }>

test.before(async (t) => {
  const api = await startApi({ TEMPORAL_TASK_QUEUE: `tenants-${process.pid}` })
  const organization = await api.organization()
  await letIn(api, organization)
  t.context.api = api
  t.context.organization = organization
  t.context.worlds = {
    own: await makeWorld(api, organization),
    lost: await makeLostWorld(api, organization),
    foreign: await makeWorld(api, await api.organization()),
    missing: makeMissingWorld(api, organization),
  }
})
test.after.always(async (t) => {
  await t.context.api?.close()
})

/** The kind of record to which a parameter refers: by parameter name for all tools, or as `tool.parameter`. */
const ID_PARAMETERS: Record<string, Kind> = {
  subscriberId: 'sub',
  subscriberIds: 'sub',
  subscriber: 'sub',
  tagId: 'tag',
  segmentId: 'seg',
  workflowId: 'wf',
  campaignId: 'cmp',
  runId: 'run',
  snippetId: 'snp',
  imageId: 'img',
  senderId: 'snd',
  domain: 'dom',
  importId: 'imp',
  historyId: 'hst',
  groupId: 'grp',
  webhookId: 'whk',
  deliveryId: 'evt',
  emailId: 'eml',
  tokenId: 'tok',
  'edit_campaign.id': 'cmp',
  'get_tag.tag': 'tag',
  'rename_tag.tag': 'tag',
}

/** Parameters that refer to a record by a name, as `tool.parameter`; with `*`, in all tools that also take the id. */
const NAME_PARAMETERS: Record<string, readonly Kind[]> = {
  '*.email': ['email'],
  '*.name': ['tagName'],
  '*.url': ['imageUrl'],
  'erase_subscriber.subscriber': ['email'],
  'export_subscriber.subscriber': ['email'],
  'update_subscriber.subscriber': ['email'],
  'list_subscribers.tag': ['tagName'],
  'browse_subscribers.tag': ['tagName'],
  'get_tag.tag': ['tagName'],
  'rename_tag.tag': ['tagName'],
  'export_subscribers.tag': ['tagName'],
  'bulk_remove_tags.tagNames': ['tagName'],
  'create_email_sender.domain': ['host'],
  'get_domain.domain': ['host'],
  'get_deliverability_health.domain': ['host'],
  'get_domain_dns_records.domain': ['host'],
  'resume_sending.domain': ['host'],
  'rotate_dkim_key.domain': ['host'],
  'update_domain.domain': ['host'],
  'verify_domain.domain': ['host'],
  'send_transactional_email.from': ['address'],
  // Email can be sent to any address.
  'send_email.email': [],
  // A sample does not have to be an existing subscriber.
  'simulate_workflow.email': [],
  // Any address can be suppressed. suppressions.test.ts tests that another organization's suppression cannot be
  // removed.
  'add_suppression.email': [],
  'remove_suppression.email': [],
}
/** Parameters that are named like a reference but name something new. */
const NEW_NAMES = new Set(['create_domain.domain'])
const BESIDE: Record<string, string> = {
  email: 'subscriberId',
  name: 'tagId',
  url: 'imageId',
  campaignId: 'workflowId',
  definition: 'workflowId',
  sample: 'subscriberId',
}

/** Parameters that are named like an id but refer to no record of an organization. */
const NO_RECORDS = new Set([
  // Steps inside one workflow's graph.
  'startStepId',
  'expectedStepId',
  // The page that an image was captured from: a mere label so far.
  'capturePageId',
  // A node inside the given document.
  'nodeId',
  // A position, which remains valid after its record is deleted.
  'cursor',
])

/** Free data of the caller, which contains no references. */
const FREE_DATA = new Set([
  'add_subscriber.fields',
  'update_subscriber.fields',
  'import_subscribers.subscribers[].fields',
  'create_import.mapping',
  'create_event.metadata',
  'create_custom_event.metadata',
  'add_subscriber_to_workflow.context',
  'simulate_workflow.sample.customFields',
  'simulate_workflow.sample.entry',
  'configure_workflow_draft.settings',
  'configure_workflow_draft.edges',
  'configure_workflow_draft.successGoals',
])

type Nested = { kind: Kind; where: string; make: (id: string) => unknown; malformed?: boolean }

/** The filters by which a field of each kind refers to a record. A new kind does not compile until it is added here. */
const FIELD_REFERENCES: Record<FieldKind, ((field: string, id: string) => object) | null> = {
  id: (field, id) => ({ field, operator: 'in', value: [id] }),
  segment: (field, id) => ({ field, operator: 'has_any', value: [id] }),
  campaign: (field, id) => ({ field, operator: 'received', value: id }),
  workflow: (field, id) => ({ field, operator: 'completed', value: [id] }),
  tags: (field, name) => ({ field, operator: 'has_any', value: [name] }),
  status: null,
  string: null,
  number: null,
  boolean: null,
  date: null,
  any: null,
  event: null,
  random: null,
}
const FIELD_KINDS: Partial<Record<FieldKind, Kind>> = {
  id: 'sub',
  segment: 'seg',
  campaign: 'cmp',
  workflow: 'wf',
  tags: 'tagName',
}

/**
 * Every filter field that refers to a record. A malformed id gets a message of its own, which is the same for
 * everybody.
 */
const IN_FILTERS: Nested[] = Object.entries(FIELDS).flatMap(([field, { kind }]) => {
  const [make, names] = [FIELD_REFERENCES[kind], FIELD_KINDS[kind]]
  if (!make || !names) return []
  const nested = { kind: names, malformed: names === 'tagName' }
  return [
    { ...nested, where: `[${field}]`, make: (id: string) => [make(field, id)] },
    { ...nested, where: `[any not ${field}]`, make: (id: string) => [{ any: [{ not: make(field, id) }] }] },
  ]
})

const START = { id: 'start', type: 'TRIGGER', config: { type: 'MANUAL' } }
const EMAIL = { subject: 'Hi', content: 'Hi', contentType: 'MARKDOWN' }
/** The references in the configuration of steps, and every place for filters. Tags are created on demand. */
const IN_STEPS: Nested[] = [
  {
    kind: 'cmp',
    where: ' EMAIL.campaignId',
    make: (campaignId) => [START, { id: 'e', type: 'EMAIL', config: { campaignId } }],
  },
  {
    kind: 'snd',
    where: ' EMAIL.senderId',
    make: (senderId) => [START, { id: 'e', type: 'EMAIL', config: { ...EMAIL, senderId } }],
  },
  {
    kind: 'wf',
    where: ' WORKFLOW_EVENT.workflowId',
    make: (workflowId) => [
      { ...START, config: { type: 'WORKFLOW_EVENT', workflowId, event: 'WORKFLOW_COMPLETED' } },
    ],
  },
  ...['START_WORKFLOW', 'STOP_WORKFLOW'].map((type): Nested => ({
    kind: 'wf',
    where: ` ${type}.workflowId`,
    make: (workflowId) => [START, { id: 'w', type, config: { workflowId } }],
  })),
  ...['SEGMENT_ENTERED', 'SEGMENT_EXITED'].map((type): Nested => ({
    kind: 'seg',
    where: ` ${type}.segmentId`,
    make: (segmentId) => [{ ...START, config: { type, segmentId } }],
  })),
  ...IN_FILTERS.filter(({ kind }) => kind !== 'tagName').flatMap(({ kind, where, make }): Nested[] => [
    {
      kind,
      malformed: false,
      where: ` TRIGGER.filters${where}`,
      make: (id) => [{ ...START, config: { type: 'MANUAL', filters: make(id) } }],
    },
    {
      kind,
      malformed: false,
      where: ` conditions${where}`,
      make: (id) => [START, { id: 't', type: 'ADD_TAG', config: { tagNames: ['x'] }, conditions: make(id) }],
    },
    {
      kind,
      malformed: false,
      where: ` BRANCH.filters${where}`,
      make: (id) => [START, { id: 'b', type: 'BRANCH', config: { paths: [{ id: 'p', filters: make(id) }] } }],
    },
  ]),
]
const ALL_CONFIGS = { ...STEP_CONFIGS, ...TRIGGER_CONFIGS, ...WAIT_UNTIL_CONFIGS }

/** The references in nodes of a MAILY document. */
const IN_NODES: Nested[] = [
  {
    kind: 'snp',
    where: ' snippet node',
    make: (snippetId) => ({ type: 'section', content: [{ type: 'snippet', attrs: { snippetId } }] }),
  },
]

const IN_DOCUMENTS = IN_NODES.map(({ make, ...nested }): Nested => ({
  ...nested,
  make: (id) => ({ type: 'doc', content: [make(id)] }),
}))

/** Parameters with an open schema, because the domain validates them with better messages. */
const LANGUAGES: Record<string, readonly Nested[]> = {
  filters: IN_FILTERS,
  steps: IN_STEPS,
  definition: IN_STEPS.map(({ make, ...nested }) => ({
    ...nested,
    make: (id) => ({ steps: make(id), edges: edgesOf(make(id)) }),
  })),
  content: IN_DOCUMENTS,
  recipientFilters: IN_FILTERS,
  tiptap: IN_DOCUMENTS,
  'emails[].tiptap': IN_DOCUMENTS,
  'operations[].node': IN_NODES.map(({ make, ...nested }) => ({
    ...nested,
    make: (id) => [{ type: 'append_node', node: make(id) }],
  })),
}

/** The bodies of operations that are not listed as tools, besides the tested parameter. */
const BODIES: Record<string, (own: World, given: object) => object> = {
  add_subscriber_tags: () => ({ tags: [`law${(names += 1)}`] }),
  remove_subscriber_tags: () => ({ tags: ['law'] }),
  create_custom_event: () => ({ eventType: 'LAW', amount: 1 }),
  rename_tag: () => ({ name: `law${(names += 1)}` }),
  create_email: ({ address, email }, given) => ({
    from: address,
    to: email,
    subject: 'Hi',
    ...(!('tiptap' in given) && { html: 'Hi' }),
  }),
  update_webhook: () => ({ description: 'law' }),
  replay_webhook: () => ({ since: new Date().toISOString() }),
}

/** Operations that give the same answer for a record that they have already deleted. */
const REPEATABLE = new Set(['erase_subscriber'])

/**
 * One question of the matrix. `malformed` false: a malformed id gets a message of its own. `isLookedUp` false: the
 * value is only compared or stored, whether a record exists or not.
 */
type Case = {
  title: string
  kind: Kind
  malformed: boolean
  isLookedUp: boolean
  input: (t: Asker, id: string) => Promise<Record<string, unknown>>
}
type Asker = { organization: TestOrganization; own: World }

for (const tool of CATALOGUE.values()) {
  const parameters = parametersOf(tool.input)
  test(`${tool.name}: every parameter that may name a record is known to this law`, (t) => {
    for (const { path, name, schema } of parameters) {
      if (looksLikeId(name, schema) && !NO_RECORDS.has(name)) {
        t.true(
          kindOf(tool, name) !== undefined,
          `${tool.name}.${path}: add it to ID_PARAMETERS or NO_RECORDS`,
        )
      }
      if (isOpen(schema) && !FREE_DATA.has(`${tool.name}.${path}`)) {
        t.true(path in LANGUAGES, `${tool.name}.${path}: add it to LANGUAGES or FREE_DATA`)
      }
    }
    const isAsked = casesOf(tool).length === 0 || SERVED_DOORS.some((door) => door.has(tool))
    t.true(isAsked, `${tool.name}: it has no door`)
  })

  for (const { title, kind, malformed, isLookedUp, input } of casesOf(tool)) {
    test.serial(
      `${title}: foreign, missing, deleted and malformed are one answer at every door`,
      async (t) => {
        const { api, organization, worlds } = t.context
        for (const [index, door] of SERVED_DOORS.filter((each) => each.has(tool)).entries()) {
          /** Returns null if the door cannot express the question. */
          const ask = async (id: string, own = worlds.own): Promise<string | null> => {
            const asked = await input({ organization, own }, id)
            if (!door.takes(tool, asked)) return null
            const { token } = organization
            return described(await door.call(api, { token, operation: tool.name, input: asked }), [id])
          }
          const missing = await ask(worlds.missing[kind])
          if (missing === null) continue
          t.is(await ask(worlds.foreign[kind]), missing, `foreign, ${door.name}`)
          if (!REPEATABLE.has(tool.name)) t.is(await ask(worlds.lost[kind]), missing, `deleted, ${door.name}`)
          for (const id of malformed ? malformedIds(kind, worlds) : []) {
            t.is((await ask(id)) ?? missing, missing, `malformed ${id}, ${door.name}`)
          }
          if (!isLookedUp || index > 0) continue
          // Operations that are only in REST may change their record, so each control needs a world of its own.
          const control = !tool.listed ? await makeWorld(api, organization) : worlds.own
          const own = await ask(control[kind])
          t.not(own, missing, 'the question is not reached: its input is refused for something else')
        }
      },
    )
  }
}

test('the ids in the configuration of steps are those that this law asks about', (t) => {
  const found = Object.entries(ALL_CONFIGS).flatMap(([name, schema]) =>
    parametersOf(schema)
      .filter((parameter) => looksLikeId(parameter.name, parameter.schema))
      .map(({ path }) => `${name}.${path}`),
  )
  t.deepEqual(found.sort(), [
    // Ids inside the graph.
    'BRANCH.paths[].id',
    'EMAIL.campaignId',
    'EMAIL.senderId',
    'GOAL.goalId',
    'JUMP.toStepId',
    'SEGMENT_ENTERED.segmentId',
    'SEGMENT_EXITED.segmentId',
    'SPLIT.holdoutVariantId',
    'SPLIT.variants[].id',
    'START_WORKFLOW.workflowId',
    'STOP_WORKFLOW.workflowId',
    'WORKFLOW_EVENT.workflowId',
  ])
})

for (const [path, said] of [
  ['/api/v1/emails', { content: 'Hi' }],
  ['/api/v2/emails', { html: 'Hi' }],
] as const) {
  test.serial(`${path}: a token that sends tells nothing of the domains of others`, async (t) => {
    const { api, organization, worlds } = t.context
    const ask = async (from: string): Promise<string> => {
      const body = { to: 'reader@reader.example', subject: 'Hi', from, ...said }
      const answer = await api.request('POST', path, { token: organization.token, body })
      return described(answer, [from, from.replace('hello@', '')])
    }
    const missing = await ask(worlds.missing.address)
    t.is(await ask(worlds.foreign.address), missing)
    t.is(await ask(worlds.lost.address), missing)
    t.regex(await ask(worlds.own.address), /^200 /)
  })
}

test.serial(
  'the rejected rows of an import: foreign, missing, deleted and malformed are one answer',
  async (t) => {
    const { api, organization, worlds } = t.context
    const ask = async (id: string): Promise<string> => {
      const path = `/api/v2/imports/${encodeURIComponent(id)}/rejected`
      return described(await api.request('GET', path, { token: organization.token }), [id])
    }
    const missing = await ask(worlds.missing.imp)
    for (const id of [worlds.foreign.imp, worlds.lost.imp, ...malformedIds('imp', worlds)]) {
      t.is(await ask(id), missing)
    }
    t.not(await ask(worlds.own.imp), missing)
  },
)

function casesOf(tool: Tool): Case[] {
  // v1 answers in a shape of its own and has its own test. A batch is the same as many calls of `create_email`.
  if (tool.name === 'send_transactional_email' || tool.name === 'create_emails') return []
  // It answers with a file and has its own test.
  if (tool.name === 'list_rejected_rows') return []
  return parametersOf(tool.input).flatMap(({ path, name, schema }) => {
    const title = `${tool.name}.${path}`
    const nested = isOpen(schema) ? LANGUAGES[path] : undefined
    if (nested && !FREE_DATA.has(title)) {
      return nested.map(({ kind, where, make, malformed = true }) =>
        caseOf(
          tool,
          { title: title + where, kind, malformed, isLookedUp: kind !== 'sub' || tool.effect === 'read' },
          (id) => ({
            [path.replace(/[.[].*/, '')]: make(id),
            ...(name === 'steps' && { edges: edgesOf(make(id)) }),
          }),
        ),
      )
    }
    const isList = path.endsWith('[]')
    const kinds = kindsOf(tool, name)
    return kinds.map((kind) =>
      caseOf(
        tool,
        { title: kinds.length > 1 ? `${title} as ${kind}` : title, kind, malformed: true, isLookedUp: true },
        (id) => ({
          [name]: isList ? [id] : id,
        }),
      ),
    )
  })
}

function kindOf(tool: Tool, name: string): Kind | undefined {
  if (NEW_NAMES.has(`${tool.name}.${name}`)) return undefined
  return ID_PARAMETERS[`${tool.name}.${name}`] ?? ID_PARAMETERS[name]
}

function kindsOf(tool: Tool, name: string): Kind[] {
  const id = kindOf(tool, name)
  const isBeside = BESIDE[name] !== undefined && BESIDE[name] in tool.input.properties
  const names =
    NAME_PARAMETERS[`${tool.name}.${name}`] ?? (isBeside ? (NAME_PARAMETERS[`*.${name}`] ?? []) : [])
  return [...(id ? [id] : []), ...names]
}

function caseOf(tool: Tool, facts: Omit<Case, 'input'>, part: (id: string) => Record<string, unknown>): Case {
  return {
    ...facts,
    async input({ organization, own }, id) {
      const given = part(id)
      const least = await leastInput(tool, organization, own, given)
      return { ...least, ...BODIES[tool.name]?.(own, given), ...given }
    },
  }
}

/** Input members that a tool needs although its schema does not require them. */
const NEEDED: Record<string, readonly string[]> = { create_event: ['amount'], edit_campaign: ['subject'] }

let names = 0
/** Returns the tested parameter together with the other members that the tool needs, all valid. */
async function leastInput(
  tool: Tool,
  organization: TestOrganization,
  own: World,
  given: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { properties, required } = tool.input
  const needed = new Set(required)
  for (const name of NEEDED[tool.name] ?? []) needed.add(name)
  for (const [name, id] of Object.entries(BESIDE)) {
    if (name in properties && id in properties && !needed.has(name) && !(name in given)) needed.add(id)
  }
  const input: Record<string, unknown> = {}
  for (const name of needed) {
    if (name in given) continue
    const kind = kindOf(tool, name)
    if (kind) input[name] = name.endsWith('s') ? [own[kind]] : own[kind]
    else input[name] = sampleOf(name, properties[name])
  }
  if ('expectedUpdatedAt' in properties) {
    const { workflow } = await organization.data('get_workflow', { workflowId: own.wf })
    const { group } = await organization.data('get_workflow_group', { groupId: own.grp })
    input['expectedUpdatedAt'] = 'groupId' in properties ? group.updatedAt : workflow.updatedAt
  }
  return input
}

function sampleOf(name: string, schema: object | undefined): unknown {
  const options: unknown = schema && Reflect.get(schema, 'enum')
  if (Array.isArray(options)) return options[0]
  switch (name) {
    case 'steps':
      return [START]
    case 'definition':
      return { steps: [START], edges: [] }
    case 'content':
      return schema && isOpen(schema) ? { type: 'doc', content: [] } : 'law'
    case 'emails':
      return ['law@reader.example']
    case 'email':
      return `law${(names += 1)}@reader.example`
  }
  switch (schema && Reflect.get(schema, 'type')) {
    case 'array':
      return name.endsWith('ames') ? [`law${(names += 1)}`] : []
    case 'number':
    case 'integer':
      return 1
    default:
      return `law${(names += 1)}`
  }
}

function malformedIds(kind: Kind, { own, foreign }: Worlds): string[] {
  if (kind === 'email') return ['no@body@', 'nobody@', `${foreign.email} `]
  if (kind === 'imageUrl')
    return ['http://127.0.0.1/i/x.png', foreign.img, own.imageUrl.replace('img_', 'img-')]
  if (!(kind in ID_PREFIXES)) return ['zzqx', `${own[kind]}%`]
  return [
    `${kind}_nonsense`,
    // No answer contains these letters, so removing them everywhere is safe.
    'zq',
    encodeId('evt', newId()),
    `${kind}_${'z'.repeat(26)}`,
    own[kind].toUpperCase(),
  ]
}

/** Returns status and body without the tested id wherever it is quoted, and without what differs in every answer. */
function described({ status, body }: Said, asked: readonly string[]): string {
  const answer = asked.reduce((text, id) => {
    const quoted = [id, id.slice(0, 80)].map((part) => JSON.stringify(part).slice(1, -1))
    return [...quoted.map((part) => JSON.stringify(part).slice(1, -1)), ...quoted].reduce(
      (left, part) => left.replaceAll(part, '…'),
      text,
    )
  }, JSON.stringify(body))
  // A confirmation challenge counts as a success: its numbers reveal which record is meant.
  const isDone = status === 200 || status === 428
  const volatile = /\b\d{5}\b|"law\d+"|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)|\b[a-z]+_[0-9a-z]{26}\b/g
  return `${status} ${isDone ? answer.replaceAll(volatile, '*') : answer}`
}

type Parameter = { path: string; name: string; schema: object }

/** Returns every place of an input for which the schema has no further members; `[]` stands for the items of a list. */
function parametersOf(schema: object, path = '', name = ''): Parameter[] {
  const properties: unknown = Reflect.get(schema, 'properties')
  if (typeof properties === 'object' && properties !== null) {
    return Object.entries(properties).flatMap(([key, member]: [string, object]) =>
      parametersOf(member, path === '' ? key : `${path}.${key}`, key),
    )
  }
  const branches: unknown = Reflect.get(schema, 'anyOf')
  if (Array.isArray(branches)) {
    return branches
      .filter(({ type }) => type !== 'null')
      .flatMap((branch) => parametersOf(branch, path, name))
  }
  const items: unknown = Reflect.get(schema, 'items')
  if (typeof items === 'object' && items !== null) return parametersOf(items, `${path}[]`, name)
  return [{ path, name, schema }]
}

function looksLikeId(name: string, schema: object): boolean {
  const description: unknown = Reflect.get(schema, 'description')
  const mention = new RegExp(`\\b(${Object.keys(ID_PREFIXES).join('|')})_…`)
  return /Ids?$/.test(name) || name === 'id' || (typeof description === 'string' && mention.test(description))
}

function isOpen(schema: object): boolean {
  const type: unknown = Reflect.get(schema, 'type')
  return type === undefined
    ? !('enum' in schema) && !('const' in schema)
    : type === 'object' || type === 'array'
}

function edgesOf(steps: unknown): object[] {
  const ids = Array.isArray(steps) ? steps.map(({ id }: { id: string }) => id) : []
  return ids.slice(1).map((to, index) => ({ from: ids[index], to, port: 'next' }))
}
