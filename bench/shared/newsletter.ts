type Json = Record<string, unknown>

const SENTENCE =
  'The engine weaves algebraic patterns just as the loom weaves flowers and leaves, one card after another. '

/**
 * Returns a newsletter of about 5 KB as the editor stores it (MAILY): headings, text, five buttons, five links and a
 * footer.
 */
export function newsletter(): Json {
  return {
    type: 'doc',
    content: [
      { type: 'heading', attrs: { level: 1 }, content: [text("Hello {{name | 'friend'}}")] },
      {
        type: 'paragraph',
        content: [text(SENTENCE.repeat(2)), text('Every week', { type: 'bold' }), text('.')],
      },
      ...Array.from({ length: 5 }, (_, index) => article(index + 1)),
      { type: 'horizontalRule' },
      {
        type: 'paragraph',
        content: [
          text('You get this because you asked for news. '),
          text('Unsubscribe', { type: 'link', attrs: { href: '{{unsubscribeUrl}}' } }),
        ],
      },
    ],
  }
}

function article(index: number): Json {
  const url = `https://example.com/articles/${index}?from=mail`
  return {
    type: 'section',
    attrs: { paddingTop: 16, paddingRight: 16, paddingBottom: 16, paddingLeft: 16 },
    content: [
      { type: 'heading', attrs: { level: 2 }, content: [text(`Part ${index}`)] },
      {
        type: 'paragraph',
        content: [
          text(SENTENCE.repeat(4)),
          text('The sources', { type: 'link', attrs: { href: `${url}#sources` } }),
        ],
      },
      { type: 'button', attrs: { text: `Read part ${index}`, url } },
    ],
  }
}

function text(words: string, ...marks: Json[]): Json {
  return { type: 'text', text: words, ...(marks.length > 0 && { marks }) }
}
