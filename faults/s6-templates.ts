import type { MessageSource } from '../src/domain/emails/messages.ts'

type Json = Record<string, unknown>

const SUBJECT = 'S {{v}} {{name}} {{org-name}} {{phone}}'
const PREVIEW = 'P {{v}} {{name}} {{org-name}}'
/** Content after a condition that only one exact value fulfils. Nobody else may read it. */
const SECRET = 'only for one'

/**
 * Returns an email for each content type that uses values in every possible place. Fallbacks are part of the author's
 * text: `value` where any text is allowed, `fallback` where the syntax restricts it.
 */
export function templatesFor(value: string, fallback: string): Record<string, MessageSource> {
  const email = (contentType: MessageSource['contentType'], content: unknown): MessageSource => ({
    subject: SUBJECT,
    preview: PREVIEW,
    contentType,
    content,
  })
  return {
    MARKDOWN: email('MARKDOWN', markdown(fallback)),
    MAILY: email('MAILY', maily(value.replaceAll(/[\ufdd0-\ufdd5]/g, ' '))),
    PLATE: email('PLATE', plate()),
    HTML: email('HTML', HTML),
  }
}

function markdown(fallback: string): string {
  return `# {{v}} title

Text {{v}} **{{name}}** [{{org-name}}](https://x.test/{{v}}/a?b={{name}}#{{org-name}}) {{phone}} {{email}} \`{{v}}\`

- [whole]({{v}}) [host](https://{{v}}.x.test/) [end](https://x.test{{v}}) [odd](java{{v}}) [bare](https://{{v}})
- ![{{v}}](https://x.test/{{v}}.png) ![whole]({{v}}) [mail](mailto:{{v}}) [tel](tel:{{v}})

> {{missing | '${fallback}'}} | {{v}} | [fallback](https://x.test/{{missing | '${fallback}'}})

| {{v}} | {{name}} |

\`\`\`
{{v}}
\`\`\`

[leave]({{unsubscribeUrl}}) or [read online]({{onlineUrl}})
`
}

function node(type: string, attrs: Json, ...content: Json[]): Json {
  return { type, attrs, content }
}

function text(words: string, ...marks: Json[]): Json {
  return { type: 'text', text: words, marks }
}

function link(href: string, more: Json = {}): Json {
  return { type: 'link', attrs: { href, ...more } }
}

function maily(fallback: string): Json {
  const line = (words: string, attrs: Json = {}) => node('paragraph', attrs, text(words))
  const rule = (operator: string, value: string, action = 'show') => ({
    visibilityRule: { action, variable: 'v', operator, value },
  })
  const snippet = node('doc', {}, line('In a snippet {{v}} {{name}}'), node('variable', { id: 'v' }))
  return {
    ...node(
      'doc',
      {},
      node('heading', { level: 1 }, text('{{v}} title')),
      node(
        'paragraph',
        {},
        text('{{name}} '),
        node('variable', { id: 'v' }),
        node('variable', { id: 'missing', fallback }),
        text('{{org-name}}', link('https://x.test/{{v}}?a={{name}}')),
        text('whole', link('v', { isUrlVariable: true })),
        text('whole', link('{{v}}')),
        text('host', link('https://{{v}}.x.test/')),
        text('mail', link('mailto:{{v}}')),
      ),
      node('button', { text: '{{v}}', url: 'https://x.test/{{v}}' }),
      node('button', { text: 'v', isTextVariable: true, url: 'v', isUrlVariable: true }),
      node('image', { src: 'https://x.test/{{v}}.png', alt: '{{v}}', title: '{{v}}', externalLink: '{{v}}' }),
      node('image', { src: 'v', isSrcVariable: true, alt: '{{name}}' }),
      node('logo', { src: '{{v}}', alt: '{{v}}' }),
      node('linkCard', {
        title: '{{v}}',
        description: '{{v}}',
        link: '{{v}}',
        image: '{{v}}',
        badgeText: '{{v}}',
      }),
      node('bulletList', {}, node('listItem', {}, line('{{v}}'))),
      node('section', { backgroundColor: '{{v}}' }, line('{{v}}')),
      node('columns', {}, node('column', {}, line('{{v}}')), node('column', {}, line('{{name}}'))),
      node('repeat', { each: 'list' }, line('{{value}} of {{v}}', { showIfKey: 'v' })),
      node('htmlCodeBlock', {}, text('<p title="{{v}}">{{v}} <a href="{{v}}">x</a></p>')),
      line('Shown for {{v}}', { showIfKey: 'v' }),
      line(SECRET, rule('equals', SECRET)),
      line(SECRET, rule('is_true', '', 'hide')),
      line(SECRET, rule('greater_than', '1e308')),
      node('snippet', { snippetId: 'snp_inner' }),
      node('footer', {}, text('{{org-name}}')),
    ),
    snippets: { snp_inner: { name: 'Inner', contentType: 'MAILY', content: snippet } },
  }
}

function plate(): Json[] {
  const leaf = (words: string, more: Json = {}): Json => ({ text: words, ...more })
  const block = (type: string, children: Json[], more: Json = {}): Json => ({ type, children, ...more })
  const anchor = (url: string) => block('a', [leaf('{{v}}')], { url })
  return [
    block('h1', [leaf('{{v}} title')]),
    block('p', [leaf('{{v}} {{name}} {{org-name}} {{phone}}', { bold: true, code: true })]),
    block('p', [anchor('https://x.test/{{v}}?a={{name}}'), anchor('{{v}}'), anchor('https://{{v}}.x.test/')]),
    block('p', [anchor('mailto:{{v}}'), anchor('tel:{{v}}'), anchor('java{{v}}')]),
    block('p', [{ type: 'mention', value: '{{v}}', children: [leaf('')] }]),
    block('img', [leaf('')], { url: 'https://x.test/{{v}}.png', alt: '{{v}}', caption: [leaf('{{v}}')] }),
    block('blockquote', [leaf('{{v}}', { color: '{{v}}', backgroundColor: '{{v}}' })]),
    block('code_block', [block('code_line', [leaf('{{v}}')])]),
    block('ul', [block('li', [block('lic', [leaf('{{v}}')])])]),
    block('table', [block('tr', [block('td', [block('p', [leaf('{{v}}')])])])]),
    block('callout', [leaf('{{v}}')]),
    block('p', [leaf('leave')]),
  ]
}

/** An author's own HTML. Where no value is safe, as in a script, the value must be left out. */
const HTML = `<html><head><title>{{v}}</title><style>p{color:{{v}}}</style></head>
<body data-x="{{v}}" class='{{v}}' id={{v}} style="color:{{v}}"><!-- {{v}} -->
<!--[if mso]><table title="{{v}}"><tr><td>{{v}}</td></tr></table><![endif]-->
<p title='{{name}} "' onclick="f('{{v}}')">{{v}} {{name}} {{org-name}} {{phone}} {{email}}</p>
<a href="{{v}}">{{v}}</a><a href='https://x.test/?q={{v}}'>x</a><a href="https://x.test/{{v}}/b#{{v}}">x</a>
<a href={{v}}>x</a><a href="https://{{v}}.x.test/">x</a><a href="mailto:{{v}}">x</a><a href="java{{v}}">x</a>
<img src="{{v}}" alt="{{v}}"><img src='https://x.test/{{v}}' alt='{{v}}'><td background="{{v}}">y</td>
<textarea>{{v}}</textarea><script>var a = '{{v}}'</script><a href="{{unsubscribeUrl}}">leave</a></body></html>`
