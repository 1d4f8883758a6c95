/** The font stack that selects the system's own font. */
export const FONT = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"

/** The font stack for code. */
export const CODE_FONT = "'SFMono-Regular',Consolas,'Liberation Mono',Menlo,monospace"

/** The width in pixels of the card's content: 600 without padding and border. */
export const CARD_WIDTH = 534

/** The width in pixels of the card's content on the narrowest phone. */
export const PHONE_WIDTH = 280

const HEADING = 'font-weight:700;line-height:1.3'

/**
 * The inline styles of emails that the service lays out, by element. Styles are inline because some mail programs drop
 * style sheets; `SHEET` only adds rules that inline styles cannot express.
 */
export const STYLE = {
  card: `padding:32px 32px 16px;background-color:#ffffff;border:1px solid #e3e5e8;border-radius:8px;font-family:${FONT};font-size:16px;line-height:1.6;color:#1f2328;overflow-wrap:anywhere`,
  paragraph: 'margin:0 0 16px',
  lastParagraph: 'margin:0',
  headings: [
    `margin:24px 0 16px;font-size:28px;${HEADING}`,
    `margin:24px 0 12px;font-size:22px;${HEADING}`,
    `margin:20px 0 8px;font-size:18px;${HEADING}`,
  ],
  smallHeading: `margin:16px 0 8px;font-size:16px;${HEADING}`,
  small: 'margin:0 0 16px;font-size:13px;line-height:1.6',
  list: 'margin:0 0 16px;padding:0 0 0 24px',
  nestedList: 'margin:4px 0 0;padding:0 0 0 24px',
  item: 'margin:0 0 6px',
  quote: 'margin:0 0 16px;padding:0 0 0 16px;border-left:3px solid #c9cdd3;color:#4b5563',
  rule: 'height:1px;margin:24px 0;border:0;background-color:#d9dce1;font-size:1px;line-height:1px',
  image: 'display:inline-block;max-width:100%;height:auto;border:0;border-radius:4px;vertical-align:middle',
  footer: `padding:20px 32px 32px;font-family:${FONT};font-size:13px;line-height:1.6;color:#57606a;text-align:center`,
  footerLink: 'color:#57606a;text-decoration:underline',
} as const

/** Rules for Outlook for Windows, where tables do not inherit fonts and have space beside them. */
export const OUTLOOK_SHEET =
  "table,td,p,li,blockquote,h1,h2,h3,h4,h5,h6{font-family:'Segoe UI',Arial,sans-serif}td{font-size:16px}table{mso-table-lspace:0;mso-table-rspace:0}"

/** The style sheet: phones, dark mode by media query, and dark mode by Outlook's own attributes. */
export const SHEET = [
  ':root{color-scheme:light dark;supported-color-schemes:light dark}',
  'body,table,td{-webkit-text-size-adjust:100%;-ms-text-size-adjust:100%}',
  '.pl-own img{max-width:100%;object-fit:contain}',
  '@media (max-width:620px){.pl-edge{padding:0!important}.pl-card{border-radius:0!important;border-width:0 0 1px!important}}',
  '@media (max-width:597px){.pl-card{padding:24px 20px 8px!important}.pl-foot{padding:20px!important}.pl-column{display:block!important;max-width:100%!important}.pl-cell{padding:0 0 16px!important}.pl-slim{padding-right:12px!important;padding-left:12px!important}.pl-close{padding:4px 2px!important;font-size:12px!important}.pl-long{word-break:break-word!important}}',
  '@media (prefers-color-scheme:dark){.pl-page{background-color:#101214!important}.pl-card{background-color:#1a1d21!important;border-color:#2c3036!important;color:#e6e8eb!important}.pl-link{color:#8db4ff!important}.pl-ink{color:#e6e8eb!important;border-color:#e6e8eb!important}.pl-muted{color:#a0a7b0!important}.pl-line{border-color:#454b54!important}.pl-panel{background-color:#24282e!important;border-color:#3a4048!important}.pl-code{background-color:#33383f!important;color:#f0f2f4!important}.pl-button{background-color:#f0f2f4!important;border-color:#f0f2f4!important;color:#101214!important}.pl-quote{color:#b4bac2!important;border-color:#454b54!important}.pl-rule{background-color:#353a41!important}.pl-foot,.pl-foot a{color:#a0a7b0!important}}',
  '[data-ogsb] .pl-page{background-color:#101214!important}[data-ogsb] .pl-card{background-color:#1a1d21!important}[data-ogsb] .pl-panel{background-color:#24282e!important}[data-ogsc] .pl-card{color:#e6e8eb!important}[data-ogsc] .pl-link{color:#8db4ff!important}[data-ogsc] .pl-ink{color:#e6e8eb!important}[data-ogsc] .pl-muted{color:#a0a7b0!important}[data-ogsc] .pl-quote{color:#b4bac2!important}[data-ogsc] .pl-foot,[data-ogsc] .pl-foot a{color:#a0a7b0!important}',
].join('\n')
