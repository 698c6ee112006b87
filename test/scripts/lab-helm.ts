import { globSync } from 'node:fs'
import { join } from 'node:path'
import { folders } from '../lab/state.ts'

/** The helm of the lab, if `npm run lab -- helm` built it on this machine. */
export const [labHelm] = globSync(join(folders.cache, 'helm-*/helm'))
