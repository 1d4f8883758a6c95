import Type from 'typebox'

import { closed, nullable, oneOf } from '../../schema/define.ts'
import { defineTool } from '../catalogue/tool.ts'
import { readSkill } from '../domain/library/documentation.ts'
import { SKILL_TYPES } from '../skills/skills.ts'

export const getSkill = defineTool({
  name: 'get_skill',
  title: 'Get task documentation',
  description:
    'Returns instructions for a task, with examples; read them before doing the task. Types: filters (selecting subscribers), campaign (writing email), images, workflow (the whole workflow language) and docs (the documentation; without `page`, the list of its pages).',
  group: 'documentation',
  effect: 'read',
  permission: 'content',
  input: closed({
    type: oneOf(SKILL_TYPES),
    page: Type.Optional(
      Type.String({ maxLength: 100, description: 'The slug of one page. Only with `type` docs.' }),
    ),
  }),
  output: closed({
    skill: closed({
      type: oneOf(SKILL_TYPES),
      page: nullable(Type.String()),
      title: Type.String(),
      markdown: Type.String(),
      pages: Type.Array(closed({ slug: Type.String(), title: Type.String() })),
    }),
  }),
  // oxlint-disable-next-line typescript/require-await -- every handler is asynchronous
  handler: async (_call, { type, page }) => ({ skill: readSkill(type, page) }),
})
