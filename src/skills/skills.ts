import { readFileSync } from 'node:fs'

/** The kinds of task documentation. */
export const SKILL_TYPES = ['filters', 'campaign', 'images', 'workflow', 'docs'] as const
export type SkillType = (typeof SKILL_TYPES)[number]

/** A page of documentation in Markdown. `slug` names it among the pages of `docs`. */
export type SkillPage = { slug: string; title: string; markdown: string }

const DOCS_PAGES = [
  'start',
  'concepts',
  'audience',
  'campaigns',
  'content',
  'automations',
  'library',
  'http-api',
  'cli',
  'errors',
  'idempotency',
  'pagination',
  'limits',
  'mcp',
  'smtp',
  'deliverability',
  'tracking',
  'rest',
  'sdk',
  'migrate-v1',
  'webhooks',
  'admin',
  'operations',
  'reliability',
  'configuration',
  'architecture',
  'benchmarks',
]

/** The documents of each type, read once, when the process starts. */
export const SKILLS: Readonly<Record<SkillType, readonly SkillPage[]>> = {
  filters: [readPage('filters', new URL('filters.md', import.meta.url))],
  campaign: [readPage('campaign', new URL('campaign.md', import.meta.url))],
  images: [readPage('images', new URL('images.md', import.meta.url))],
  workflow: [readPage('workflow', new URL('workflow.md', import.meta.url))],
  docs: DOCS_PAGES.map((slug) => readPage(slug, new URL(`../../docs/${slug}.md`, import.meta.url))),
}

function readPage(slug: string, file: URL): SkillPage {
  const markdown = readFileSync(file, 'utf8')
  return { slug, title: /^# (.+)$/m.exec(markdown)?.[1] ?? slug, markdown }
}
