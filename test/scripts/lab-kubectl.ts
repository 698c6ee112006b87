import { globSync } from 'node:fs'
import { join } from 'node:path'
import { folders } from '../lab/state.ts'

/** The kubectl of the lab, if the lab was built on this machine. */
export const [labKubectl] = globSync(join(folders.cache, '*/bin/kubectl'))
