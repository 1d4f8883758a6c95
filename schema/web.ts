import Type, { type Static } from 'typebox'

import { closed, nullable } from './define.ts'

/** Limits of fetching a page: bytes read, milliseconds, and characters of Markdown returned. */
export const WEB_PAGE_LIMITS = { bytes: 5_000_000, milliseconds: 10_000, markdown: 200_000 } as const

/** A web page as `fetch_web_page` returns it. Metadata that the page does not have is null. */
export const WebPage = closed({
  url: Type.String({ description: 'The URL of the page after redirects.' }),
  title: Type.String(),
  markdown: Type.String({ description: 'The main content as Markdown.' }),
  truncated: Type.Boolean({
    description: `Whether the content was cut off after ${WEB_PAGE_LIMITS.markdown} characters.`,
  }),
  description: nullable(Type.String()),
  author: nullable(Type.String()),
  site: nullable(Type.String()),
  language: nullable(Type.String()),
  published: nullable(Type.String({ description: 'The publication date as the page gives it.' })),
  wordCount: Type.Integer(),
})
export type WebPage = Static<typeof WebPage>
