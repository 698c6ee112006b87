import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

/** Returns the files in a guide: blocks whose fence has a file name, "```yaml rbac.yaml". */
export function filesOfGuide(name: string): Record<string, string> {
  const text = readFileSync(resolve('docs/guides', `${name}.md`), 'utf8')
  const blocks = text.matchAll(/^```\w+ (\S+)\n(.*?)^```$/gms)
  return Object.fromEntries([...blocks].map(([, file = '', content = '']) => [file, content]))
}
