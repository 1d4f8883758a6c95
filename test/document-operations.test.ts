import assert from 'node:assert/strict'

import test from 'ava'
import fc from 'fast-check'

import type { WireOperation } from '../schema/campaign-edit.ts'
import type { ContentType } from '../schema/values.ts'
import { Failure } from '../src/catalogue/failure.ts'
import { inspectDocument } from '../src/content/document.ts'
import { applyOperations } from '../src/domain/campaigns/document-operations.ts'
import { readOperations } from '../src/domain/campaigns/operations.ts'
import { rewrite } from '../src/domain/campaigns/rewrite.ts'

type Node = {
  type: string
  text?: string
  content?: Node[]
  marks?: object[]
  attrs?: Record<string, unknown>
}

const text = (words: string, ...marks: string[]): Node => ({
  type: 'text',
  text: words,
  ...(marks.length > 0 && { marks: marks.map((type) => ({ type })) }),
})
const paragraph = (...content: Node[]): Node => ({ type: 'paragraph', content })
const doc = (...content: Node[]): Node => ({ type: 'doc', content })

function apply(content: unknown, operations: WireOperation[], contentType: ContentType = 'MAILY') {
  return applyOperations(contentType, content, readOperations(contentType, operations))
}

const words = fc.string({ unit: fc.constantFrom('a', 'b', ' '), minLength: 1, maxLength: 4 })
const texts = fc.tuple(words, fc.boolean()).map(([value, isBold]) => text(value, ...(isBold ? ['bold'] : [])))
const ids = fc.integer({ min: 0, max: 20 }).map((number) => `n${number}`)
const nodes: fc.Arbitrary<Node> = fc.letrec<{ node: Node; block: Node }>((tie) => ({
  node: fc.oneof({ maxDepth: 4 }, texts, tie('block')),
  block: fc.record({
    type: fc.constantFrom('paragraph', 'section'),
    attrs: fc.record({ id: ids }),
    content: fc.array(tie('node'), { maxLength: 4 }),
  }),
})).node
const targets: fc.Arbitrary<NonNullable<WireOperation['target']>> = fc.oneof(
  fc.record({ nodeId: ids }),
  fc.record({ type: fc.constantFrom('paragraph', 'section', 'text', 'doc'), index: fc.nat(3) }),
  fc.record({ path: fc.array(fc.nat(3), { minLength: 1, maxLength: 3 }) }),
)
const operations: fc.Arbitrary<WireOperation> = fc.oneof(
  fc.record({
    type: fc.constant('replace_text' as const),
    find: fc.constantFrom('a', 'ab', 'ba'),
    replace: fc.constantFrom('', 'x', 'aa'),
    occurrence: fc.constantFrom('first' as const, 'all' as const),
  }),
  fc.record({
    type: fc.constant('replace_text' as const),
    find: fc.constant('b'),
    replace: fc.constant('y'),
    target: targets,
  }),
  fc.record({ type: fc.constant('insert_node' as const), node: nodes, before: targets }),
  fc.record({ type: fc.constant('insert_node' as const), node: nodes, after: targets }),
  fc.record({
    type: fc.constant('insert_node' as const),
    node: nodes,
    at: fc.array(fc.nat(4), { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ type: fc.constant('append_node' as const), node: nodes }),
  fc.record({ type: fc.constant('prepend_node' as const), node: nodes, parent: targets }),
  fc.record({ type: fc.constant('remove_node' as const), target: targets }),
  fc.record({ type: fc.constant('replace_node' as const), target: targets, node: nodes }),
)
const documents = fc.array(nodes, { minLength: 1, maxLength: 5 }).map((content) => doc(...content))

const wordsOf = (node: Node): string => (node.text ?? '') + (node.content ?? []).map(wordsOf).join('')

test('whatever the operations are: all apply and leave a document, or none and the input is untouched', (t) => {
  const outcomes = { applied: 0, refused: 0 }
  fc.assert(
    fc.property(documents, fc.array(operations, { minLength: 1, maxLength: 4 }), (content, given) => {
      const before = JSON.stringify([content, given])
      try {
        const result = apply(content, given)
        outcomes.applied += 1
        assert.deepEqual(inspectDocument(result.content).faults, [])
        assert.equal(result.matched.length, given.length)
        assert.ok(result.matched.every((count) => count > 0))
        assert.ok(!JSON.stringify(result.content).includes('"text":""'))
      } catch (error) {
        if (!(error instanceof Failure)) throw error
        outcomes.refused += 1
        assert.match(error.message, /operations\[\d\]/)
      }
      assert.equal(JSON.stringify([content, given]), before)
    }),
    { numRuns: 2_000 },
  )
  t.true(outcomes.applied > 100 && outcomes.refused > 100, JSON.stringify(outcomes))
})

test('replacing in pieces is replacing in the whole, whatever the pieces are', (t) => {
  const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 4 }), {
    minLength: 1,
    maxLength: 7,
  })
  const finds = fc.constantFrom('a', 'ab', 'aba', 'bb', 'aabb')
  const replacements = fc.constantFrom('', 'x', 'ab', 'long')
  fc.assert(
    fc.property(pieces, finds, replacements, (given, find, replace) => {
      const parts = given.join('').split(find)
      const all = rewrite(given, find, replace, Number.POSITIVE_INFINITY)
      assert.equal(all.pieces.join(''), parts.join(replace))
      assert.equal(all.matched, parts.length - 1)
      assert.equal(all.pieces.length, given.length)
      const first = rewrite(given, find, replace, 1)
      assert.equal(
        first.pieces.join(''),
        given.join('').replace(find, () => replace),
      )
    }),
    { numRuns: 3_000 },
  )
  t.pass()
})

test('a path leads to the node that stands there, for every node of a document', (t) => {
  const content = doc(
    paragraph(text('one'), text('two', 'bold')),
    { type: 'columns', content: [{ type: 'column', content: [paragraph(text('three'))] }] },
    { type: 'spacer' },
  )
  const visit = (node: Node, path: number[]): void => {
    if (path.length > 0) {
      const { content: after } = apply(content, [{ type: 'remove_node', target: { path } }])
      t.false(JSON.stringify(after).includes(JSON.stringify(node)), path.join())
      const { content: marked } = apply(content, [
        { type: 'replace_node', target: { path }, node: { type: 'mark' } },
      ])
      const found = path.reduce<Node | undefined>((at, index) => at?.content?.[index], marked as Node)
      t.deepEqual(found, { type: 'mark' })
      const put = apply(content, [{ type: 'insert_node', at: path, node: { type: 'mark' } }]).content as Node
      t.deepEqual(
        path.reduce<Node | undefined>((at, index) => at?.content?.[index], put),
        { type: 'mark' },
      )
    }
    node.content?.forEach((child, index) => visit(child, [...path, index]))
  }
  visit(content, [])
})

test('text is found across marks, and what takes its place has the marks of where it began', (t) => {
  const content = doc(paragraph(text('Hello '), text('dear', 'bold'), text(' world', 'italic')))
  const { content: after, matched } = apply(content, [
    { type: 'replace_text', find: 'lo dear wor', replace: 'p, W' },
  ])
  t.deepEqual(matched, [1])
  t.deepEqual(after, doc(paragraph(text('Help, W'), text('ld', 'italic'))))
  const parted = doc(paragraph(text('Hel')), paragraph(text('lo')))
  t.throws(() => apply(parted, [{ type: 'replace_text', find: 'Hello', replace: 'x' }]), {
    message: /operations\[0\] matches nothing/,
  })
})

test('text is replaced where readers read it: buttons, alternatives, link cards, fallbacks; nowhere else', (t) => {
  const content = doc(
    { type: 'button', attrs: { text: 'Old price', url: 'https://example.com/Old' } },
    { type: 'image', attrs: { alt: 'The Old one', src: 'https://example.com/Old.png', title: 'Old' } },
    { type: 'linkCard', attrs: { title: 'Old', description: 'Old and Old', link: 'Old' } },
    paragraph({ type: 'variable', attrs: { id: 'Old', fallback: 'Old' } }, text(' Old')),
  )
  const { content: after, matched } = apply(content, [{ type: 'replace_text', find: 'Old', replace: 'New' }])
  t.deepEqual(matched, [7])
  t.deepEqual(
    after,
    doc(
      { type: 'button', attrs: { text: 'New price', url: 'https://example.com/Old' } },
      { type: 'image', attrs: { alt: 'The New one', src: 'https://example.com/Old.png', title: 'Old' } },
      { type: 'linkCard', attrs: { title: 'New', description: 'New and New', link: 'Old' } },
      paragraph({ type: 'variable', attrs: { id: 'Old', fallback: 'New' } }, text(' New')),
    ),
  )
  const named = doc({ type: 'button', attrs: { text: 'Old', isTextVariable: true, url: 'Old' } })
  t.throws(() => apply(named, [{ type: 'replace_text', find: 'Old', replace: 'New' }]), {
    message: /operations\[0\] matches nothing/,
  })
  const first = apply(content, [{ type: 'replace_text', find: 'Old', replace: '1', occurrence: 'first' }])
  t.is((first.content as Node).content?.[0]?.attrs?.['text'], '1 price')
  t.deepEqual(first.matched, [1])
  const inside = apply(content, [
    { type: 'replace_text', find: 'Old', replace: 'x', target: { type: 'paragraph', index: 0 } },
  ])
  t.deepEqual(inside.matched, [2])
})

test('a text of which nothing is left goes, also one that is itself the target', (t) => {
  const content = doc(paragraph(text('Old'), text(' price', 'bold')), paragraph(text('Old')))
  const emptied = doc(paragraph(text(' price', 'bold')), paragraph())
  const operation = { type: 'replace_text', find: 'Old', replace: '' } as const
  t.deepEqual(apply(content, [operation]).content, emptied)
  const targets = [{ path: [0, 0] }, { type: 'text', index: 1 }].map((target) => ({ ...operation, target }))
  t.deepEqual(apply(content, targets).content, emptied)
})

test('nodes are put, removed and replaced where each kind of target says, in order', (t) => {
  const content = doc(
    { type: 'heading', attrs: { id: 'top', level: 1 }, content: [text('A')] },
    { type: 'section', attrs: { id: 'box' }, content: [paragraph(text('B'))] },
  )
  const { content: after, matched } = apply(content, [
    { type: 'insert_node', node: paragraph(text('1')), after: { nodeId: 'top' } },
    { type: 'insert_node', node: paragraph(text('0')), before: { path: [0] } },
    { type: 'append_node', node: paragraph(text('C')), parent: { type: 'section', index: 0 } },
    { type: 'prepend_node', node: text('('), parent: { path: [3, 1] } },
    { type: 'append_node', node: { type: 'footer' } },
    { type: 'insert_node', node: text('!'), at: [4, 0] },
    { type: 'replace_node', target: { type: 'heading', index: 0 }, node: paragraph(text('a')) },
    { type: 'remove_node', target: { path: [3, 0] } },
    { type: 'replace_text', find: '(C', replace: 'c' },
  ])
  t.deepEqual(matched, [1, 1, 1, 1, 1, 1, 1, 1, 1])
  t.is(wordsOf(after as Node), '0a1c!')
})

test('a target that names no node, or more than one, is refused with the operation and the way out', (t) => {
  const variable = { type: 'variable', attrs: { id: 'name' } }
  const twins = [
    { type: 'spacer', attrs: { id: 'same' } },
    { type: 'spacer', attrs: { id: 'same' } },
  ]
  const content = doc(paragraph(text('x'), variable), ...twins)
  for (const [target, message] of [
    [{ nodeId: 'none' }, /operations\[1\]\.target finds no node with the id "none"/],
    [{ nodeId: 'name' }, /finds no node/],
    [{ nodeId: 'same' }, /finds 2 nodes with that id/],
    [{ path: [3] }, /leads nowhere: there are 3 nodes at the top/],
    [{ path: [0, 0, 0] }, /there are 0 nodes at \[0, 0\]/],
    [{ type: 'spacer', index: 2 }, /has 2 of that type/],
    [{ type: 'spaecr', index: 0 }, /finds no spaecr; did you mean "spacer"\?/],
    [{ type: 'button', index: 0 }, /finds no button; known are paragraph, variable, spacer/],
    [{ type: 'doc', index: 0 }, /is the document itself/],
  ] satisfies [WireOperation['target'], RegExp][]) {
    const first = { type: 'replace_text', find: 'x', replace: 'y' } as const
    const error = t.throws(() => apply(content, [first, { type: 'remove_node', target }]))
    t.regex(error.message, message)
  }
  t.throws(() => apply(content, [{ type: 'insert_node', node: variable, at: [4] }]), {
    message: /operations\[0\]\.at leads past the end/,
  })
  t.throws(() => apply(content, [{ type: 'append_node', node: variable, parent: { path: [0, 0] } }]), {
    message: /is a text/,
  })
})

test('members that do not go together are refused, each by its path', (t) => {
  const node = { type: 'spacer' }
  const target = { path: [0] }
  for (const [operation, path] of [
    [{ type: 'replace_text', find: 'x' }, 'operations[0].replace'],
    [{ type: 'replace_text', find: 'x', replace: 'y', node }, 'operations[0].node'],
    [{ type: 'insert_node', node }, 'operations[0]'],
    [{ type: 'insert_node', node, at: [0], before: target }, 'operations[0]'],
    [{ type: 'insert_node', at: [0] }, 'operations[0].node'],
    [{ type: 'append_node', node, target }, 'operations[0].target'],
    [{ type: 'remove_node' }, 'operations[0].target'],
    [{ type: 'remove_node', target: {} }, 'operations[0].target'],
    [{ type: 'remove_node', target: { type: 'spacer' } }, 'operations[0].target'],
    [{ type: 'remove_node', target: { nodeId: 'x', path: [0] } }, 'operations[0].target'],
    [{ type: 'replace_node', target, node: {} }, 'operations[0].node'],
    [{ type: 'append_node', node: { type: 'section', content: [1] } }, 'operations[0].node.content[0]'],
  ] as const) {
    // The cast removes `readonly`; `apply` gets a copy and checks the members itself.
    const error = t.throws(() =>
      apply(doc({ type: 'spacer' }), [structuredClone(operation) as WireOperation]),
    )
    t.is((error as Failure).code, 'INVALID_INPUT')
    t.deepEqual(
      ((error as Failure).details as { path: string }[]).map((fault) => fault.path),
      [path],
    )
  }
})

test('Markdown takes replace_text alone', (t) => {
  const result = apply(
    'Hello **world**, hello',
    [{ type: 'replace_text', find: 'ello', replace: 'i' }],
    'MARKDOWN',
  )
  t.deepEqual(result, { content: 'Hi **world**, hi', matched: [2] })
  for (const operation of [
    { type: 'append_node', node: { type: 'spacer' } },
    { type: 'replace_text', find: 'x', replace: 'y', target: { path: [0] } },
  ] satisfies WireOperation[]) {
    t.throws(() => apply('x', [operation], 'MARKDOWN'), { message: /operations\[0\]\.(type|target)/ })
  }
})

test('a PLATE document is edited in its own shape, a list or an object with children', (t) => {
  const elements = [
    { type: 'p', id: 'a', children: [{ text: 'Hel' }, { text: 'lo', bold: true }] },
    { type: 'img', url: 'x', alt: 'Hello', children: [{ text: '' }] },
  ]
  const operations: WireOperation[] = [
    { type: 'replace_text', find: 'Hello', replace: 'Bye' },
    { type: 'append_node', node: { text: '!' }, parent: { nodeId: 'a' } },
  ]
  const expected = [
    { type: 'p', id: 'a', children: [{ text: 'Bye' }, { text: '', bold: true }, { text: '!' }] },
    { type: 'img', url: 'x', alt: 'Bye', children: [{ text: '' }] },
  ]
  t.deepEqual(apply(elements, operations, 'PLATE'), { content: expected, matched: [2, 1] })
  t.deepEqual(apply({ children: elements }, operations, 'PLATE').content, { children: expected })
})

test('operations cannot make a flood of a drop', (t) => {
  const many = doc(paragraph(text('a'.repeat(100_000))))
  t.throws(() => apply(many, [{ type: 'replace_text', find: 'a', replace: 'b'.repeat(1_000_000) }]), {
    message: /operations\[0\] would add more than/,
  })
  const double: WireOperation = { type: 'replace_text', find: 'a', replace: 'aa' }
  t.throws(
    () =>
      apply(
        many,
        Array.from({ length: 100 }, () => double),
      ),
    { message: /would add more than/ },
  )
  const crowd: WireOperation = {
    type: 'append_node',
    node: { type: 'section', content: Array.from({ length: 4_000 }, () => ({ type: 'spacer' })) },
  }
  t.throws(
    () => apply(doc(), [crowd, crowd, { type: 'remove_node', target: { type: 'section', index: 0 } }]),
    {
      message: /operations\[2\]\.target cannot be applied: the document would have more than 5000 nodes/,
    },
  )
})

test('a node that is called like a member of objects is a node like any other', (t) => {
  const replace: WireOperation = { type: 'replace_text', find: 'old', replace: 'new' }
  for (const type of ['constructor', 'toString', 'valueOf', '__proto__', 'hasOwnProperty']) {
    const maily = doc({ type, attrs: { text: 'old' }, content: [text('old')] })
    const plate = [{ type, alt: 'old', children: [{ text: 'old' }] }]
    t.deepEqual(apply(maily, [replace]).matched, [1], type)
    t.deepEqual(apply(plate, [replace], 'PLATE').matched, [1], type)
  }
})
