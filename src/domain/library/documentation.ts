import { Failure, refuse } from '../../catalogue/failure.ts'
import { SKILLS, type SkillType } from '../../skills/skills.ts'

/** A document; `pages` lists the values of `page`. */
export type Skill = {
  type: SkillType
  page: string | null
  title: string
  markdown: string
  pages: { slug: string; title: string }[]
}

/** Returns the document of a type or one of its pages. Throws `NOT_FOUND` with the pages when there is no such page. */
export function readSkill(type: SkillType, page: string | undefined): Skill {
  const documents = SKILLS[type]
  const pages = type === 'docs' ? documents.map(({ slug, title }) => ({ slug, title })) : []
  if (page !== undefined && type !== 'docs') refuse('page', 'goes with type docs only; leave it out.')
  if (type === 'docs' && page === undefined) {
    const list = pages.map(({ slug, title }) => `- ${slug}: ${title}`).join('\n')
    const markdown = `# Documentation\n\nRead one page by its slug with \`page\`:\n\n${list}\n`
    return { type, page: null, title: 'Documentation', markdown, pages }
  }
  const found = type === 'docs' ? documents.find(({ slug }) => slug === page) : documents[0]
  if (!found) {
    const slugs = pages.map(({ slug }) => slug).join(', ')
    throw new Failure(
      'NOT_FOUND',
      `There is no page ${JSON.stringify(page?.slice(0, 80))}; the pages are ${slugs}.`,
      { details: { pages } },
    )
  }
  return { type, page: page ?? null, title: found.title, markdown: found.markdown, pages }
}
