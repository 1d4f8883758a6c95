import { writeFileSync } from 'node:fs'

import { sdkTypes } from './sdk/types.ts'

writeFileSync(new URL('../sdk/src/catalogue.ts', import.meta.url), await sdkTypes())
