import { readFileSync } from 'node:fs'
import { type Layer, layers, testFolders } from '../folders.ts'
import { table } from './page.ts'

/** Returns ARCHITECTURE.md with its tables generated from scripts/folders.ts. The rest is hand-written. */
export function architecturePage(): string {
  const folders = Object.entries(layers).map(([folder, { purpose, may, types = [] }]) => [
    `\`${folder}\``,
    purpose,
    importsOf(may),
    types.join(' '),
  ])
  const tests = Object.entries(testFolders).map(([folder, need]) => [`\`test/${folder}\``, need])
  const tables = {
    folders: table(['src/', 'purpose', 'may import', 'and types of'], folders),
    tests: table(['folder', 'what its tests need'], tests),
  }
  return readFileSync('ARCHITECTURE.md', 'utf8').replace(
    /(<!-- table (folders|tests):[^\n]*-->\n)[\s\S]*?(?=<!-- end -->)/g,
    (_, head: string, name: keyof typeof tables) => `${head}\n${tables[name]}\n\n`,
  )
}

function importsOf(may: Layer['may']): string {
  return typeof may === 'string' ? may : may.join(' ')
}
