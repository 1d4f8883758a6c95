import { contrast } from './color.ts'

/**
 * What content stands on. The card changes with dark mode, so its colours are classes that style sheets can change; a
 * box with a colour of its own keeps it, so its content has fixed colours that can be read on it.
 */
export type Surface = { readonly isCard: boolean; readonly isDark: boolean }

/** The card of the email. */
export const CARD: Surface = { isCard: true, isDark: false }

/** A box of this colour; none takes what is behind it. */
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

/** The colours of a surface, as inline styles need them. */
export function inkOf({ isDark }: Surface): typeof LIGHT {
  return isDark ? DARK : LIGHT
}

/** A class for what dark mode changes, on the card only. */
export function adaptive({ isCard }: Surface, name: string): string {
  return isCard ? ` class="${name}"` : ''
}

/** A class attribute of the names that apply, with its space; nothing where none does. */
export function classes(...names: readonly (string | false)[]): string {
  const applying = names.filter((name) => name !== false)
  return applying.length === 0 ? '' : ` class="${applying.join(' ')}"`
}

/** How the card looks in dark mode (theme.ts). */
const DARK_CARD = '#1a1d21'

/** A class for a colour that could not be read on the card in dark mode; there it gives way. */
export function inkClass({ isCard }: Surface, color: string): string {
  return isCard && contrast(color, DARK_CARD) < 3.5 ? ' class="pl-ink"' : ''
}
