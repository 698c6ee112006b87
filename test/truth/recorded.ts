import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of the recorded cases; the project does not contain a copy. */
export const recordedFolder = process.env.KCERT_TRUTH ?? '../shared/truth'

/** Returns a file of recorded cases; undefined, with a one-line notice, when this machine does not have it. */
export function recorded<Content>(name: string): Content | undefined {
  const path = join(recordedFolder, name)
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as Content
  process.stdout.write(`skipped: ${path} is not here; KCERT_TRUTH names the folder of recorded cases\n`)
  return undefined
}
