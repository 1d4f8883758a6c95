/** The editor's defaults for attributes that a document leaves out. Sizes are in pixels. */
export const DEFAULTS = {
  spacer: { height: 8 },
  button: { color: '#000000', ink: '#ffffff', vertical: 10, horizontal: 32, border: 2 },
  section: { background: '#f7f7f7', border: 2, borderColor: '#e2e2e2' },
  columns: { gap: 8 },
  inlineImage: { size: 20 },
  linkCard: { border: '#eaeaea', radius: 10, padding: 15 },
} as const

/** The names of logo sizes, in pixels. */
export const LOGO_SIZES: ReadonlyMap<unknown, number> = new Map([
  ['sm', 40],
  ['md', 48],
  ['lg', 64],
])
/** The names of spacer heights, in pixels. */
export const SPACER_SIZES: ReadonlyMap<unknown, number> = new Map([
  ['xs', 4],
  ['sm', 8],
  ['md', 16],
  ['lg', 32],
  ['xl', 64],
])
/** The names of button corner radii, in pixels. */
export const BUTTON_RADII: ReadonlyMap<unknown, number> = new Map([
  ['sharp', 0],
  ['smooth', 6],
  ['round', 9999],
])

/** The largest values that a document may ask for, in pixels, so that no block can push the rest out of sight. */
export const LIMITS = {
  space: 400,
  padding: 200,
  buttonPadding: 100,
  border: 32,
  radius: 9999,
  image: 2_000,
} as const
