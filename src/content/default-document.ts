import type { ContentType } from '../../schema/values.ts'

const MAILY_TEMPLATE = {
  type: 'doc',
  content: [
    {
      type: 'paragraph',
      content: [
        { type: 'text', text: 'Hi ' },
        { type: 'variable', attrs: { id: 'name', fallback: 'there' } },
        { type: 'text', text: ',' },
      ],
    },
    { type: 'paragraph' },
    {
      type: 'footer',
      content: [
        {
          type: 'text',
          text: 'Unsubscribe',
          marks: [{ type: 'link', attrs: { href: 'unsubscribeUrl', isUrlVariable: true } }],
        },
      ],
    },
  ],
}

const PLATE_TEMPLATE = [
  { type: 'p', children: [{ text: "Hi {{name | 'there'}}," }] },
  { type: 'p', children: [{ text: '' }] },
  { type: 'p', children: [{ type: 'a', url: '{{unsubscribeUrl}}', children: [{ text: 'Unsubscribe' }] }] },
]

const MARKDOWN_TEMPLATE = "Hi {{name | 'there'}},\n\n[Unsubscribe]({{unsubscribeUrl}})\n"

/** The initial content of a new email in each format: a greeting and an unsubscribe link. */
export const DEFAULT_CONTENT: Readonly<Record<ContentType, unknown>> = {
  MAILY: MAILY_TEMPLATE,
  PLATE: PLATE_TEMPLATE,
  MARKDOWN: MARKDOWN_TEMPLATE,
}
