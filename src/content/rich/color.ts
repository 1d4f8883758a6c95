/** The colour names that are read; any other name is not a colour. */
const NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    black: '#000000',
    silver: '#c0c0c0',
    gray: '#808080',
    grey: '#808080',
    white: '#ffffff',
    maroon: '#800000',
    red: '#ff0000',
    purple: '#800080',
    fuchsia: '#ff00ff',
    magenta: '#ff00ff',
    green: '#008000',
    lime: '#00ff00',
    olive: '#808000',
    yellow: '#ffff00',
    navy: '#000080',
    blue: '#0000ff',
    teal: '#008080',
    aqua: '#00ffff',
    cyan: '#00ffff',
    orange: '#ffa500',
    pink: '#ffc0cb',
    brown: '#a52a2a',
    gold: '#ffd700',
    indigo: '#4b0082',
    tomato: '#ff6347',
    coral: '#ff7f50',
    crimson: '#dc143c',
  }),
)

/** The longest text that is read as a colour. */
const MAX_LENGTH = 64
const HEX = /^#(?:([0-9a-f]{3})([0-9a-f])?|([0-9a-f]{6})([0-9a-f]{2})?)$/
const RGB = /^rgba?\( ?(\d{1,3})[ ,]+(\d{1,3})[ ,]+(\d{1,3})(?:[ ,/]+([\d.]{1,8})(%)?)? ?\)$/
const HSL =
  /^hsla?\( ?([\d.]{1,8})(?:deg)?[ ,]+([\d.]{1,8})%[ ,]+([\d.]{1,8})%(?:[ ,/]+([\d.]{1,8})(%)?)? ?\)$/

type Channels = readonly [number, number, number]

function hex(channels: Channels, opacity: number): string {
  // Mail programs do not support transparent colours, so the colour is blended with white, the most common background.
  const digits = channels.map((channel) => {
    const seen = channel * opacity + 255 * (1 - opacity)
    return Math.round(Math.min(255, Math.max(0, seen)))
      .toString(16)
      .padStart(2, '0')
  })
  return `#${digits.join('')}`
}

function opacityOf(text: string | undefined, percent: string | undefined): number {
  const value = text === undefined ? 1 : Number(text) / (percent === '%' ? 100 : 1)
  return Number.isFinite(value) ? Math.min(1, Math.max(0, value)) : 1
}

function fromHsl(hue: number, saturation: number, lightness: number): Channels {
  const reach = (saturation / 100) * Math.min(lightness / 100, 1 - lightness / 100)
  const channel = (shift: number): number => {
    const at = (shift + hue / 30) % 12
    return 255 * (lightness / 100 - reach * Math.max(-1, Math.min(at - 3, 9 - at, 1)))
  }
  return [channel(0), channel(8), channel(4)]
}

/**
 * Reads a colour as `#rrggbb`, the one form that every mail program supports. Null for anything else, so that no other
 * text enters a style. Nearly invisible colours count as `transparent` and are null too.
 */
export function readColor(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > MAX_LENGTH) return null
  const text = value.trim().toLowerCase().replaceAll(/\s+/g, ' ')
  const named = NAMES.get(text)
  if (named !== undefined) return named
  const [, short, shortAlpha, long, longAlpha] = HEX.exec(text) ?? []
  const digits = short?.replaceAll(/./g, '$&$&') ?? long
  if (digits !== undefined) {
    const alpha = shortAlpha === undefined ? longAlpha : shortAlpha.repeat(2)
    return translucent(
      [0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)),
      alpha === undefined ? 1 : Number.parseInt(alpha, 16) / 255,
    )
  }
  const [, red, green, blue, alpha, percent] = RGB.exec(text) ?? []
  if (red !== undefined) return translucent([red, green, blue].map(Number), opacityOf(alpha, percent))
  const [, hue, saturation, lightness, hslAlpha, hslPercent] = HSL.exec(text) ?? []
  if (hue === undefined) return null
  const channels = fromHsl(Number(hue), Number(saturation), Math.min(100, Number(lightness)))
  return translucent([...channels], opacityOf(hslAlpha, hslPercent))
}

function translucent([red = 0, green = 0, blue = 0]: readonly number[], opacity: number): string | null {
  if (![red, green, blue].every(Number.isFinite)) return null
  return opacity < 0.05 ? null : hex([red, green, blue], opacity)
}

/** Returns the relative luminance (WCAG) of a `#rrggbb` colour. */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(color.slice(at, at + 2), 16) / 255
    return channel <= 0.040_45 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** Returns the contrast ratio (WCAG) of two colours: 1 for the same colour, 21 for black on white. */
export function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].toSorted((first, second) => first - second)
  return (light + 0.05) / (dark + 0.05)
}
