import { contrast } from './color.ts'

/**
 * The background that content stands on. The card changes in dark mode, so its colours are classes that the style sheet
 * can change. A box with its own colour keeps it, so its content has fixed colours that are readable on it.
 */
export type Surface = { readonly isCard: boolean; readonly isDark: boolean }

/** The card of the email. */
export const CARD: Surface = { isCard: true, isDark: false }

/** Returns the surface of a box with this background colour; without a colour, the surface behind it. */
export function surfaceOf(color: string | null, behind: Surface): Surface {
  if (color === null) return behind
  return { isCard: false, isDark: contrast(color, '#ffffff') > contrast(color, '#000000') }
}

const LIGHT = {
  text: '#1f2328',
  muted: '#57606a',
  link: '#1d4ed8',
  line: '#c9cdd3',
  code: '#1f2328',
  codeBack: '#eceef1',
}
const DARK: typeof LIGHT = {
  text: '#f0f2f4',
  muted: '#c3c9d1',
  link: '#a8c7ff',
  line: '#5b626c',
  code: '#f0f2f4',
  codeBack: '#33383f',
}

/** Returns the colours for content on a surface, for inline styles. */
export function inkOf({ isDark }: Surface): typeof LIGHT {
  return isDark ? DARK : LIGHT
}

/** Returns a class attribute for an element that dark mode changes; '' outside of the card. */
export function adaptive({ isCard }: Surface, name: string): string {
  return isCard ? ` class="${name}"` : ''
}

/** Returns a class attribute with the names that apply, with a leading space; '' if none does. */
export function classes(...names: readonly (string | false)[]): string {
  const applying = names.filter((name) => name !== false)
  return applying.length === 0 ? '' : ` class="${applying.join(' ')}"`
}

/** The background of the card in dark mode; the same as in theme.ts. */
const DARK_CARD = '#1a1d21'

/** Returns the class that replaces a text colour in dark mode, if the colour is not readable on the dark card. */
export function inkClass({ isCard }: Surface, color: string): string {
  return isCard && contrast(color, DARK_CARD) < 3.5 ? ' class="pl-ink"' : ''
}
