import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

export interface Import {
  /** Relative to the folder that the file's own path starts at. */
  readonly target: string
  readonly typeOnly: boolean
}

/** Returns the imports of this project's own files in a source file. */
export function importsOf(file: string): Import[] {
  const source = readFileSync(file, 'utf8')
  const statements = source.matchAll(
    /^(?:import|export)\s+(type\s)?[^'"]*?from\s+'(\.[^']+)'|\bimport\('(\.[^']+)'\)|^import '(\.[^']+)'/gm,
  )
  return [...statements].map(([, type, from, dynamic, bare]) => ({
    target: normalize(join(dirname(file), (from ?? dynamic ?? bare)!)),
    typeOnly: type !== undefined,
  }))
}

/** Returns these files and all files of this project that they load, directly or not, in alphabetical order. */
export function withImports(files: readonly string[]): string[] {
  const seen = new Set(files)
  for (const file of seen) {
    if (file.endsWith('.ts'))
      for (const { target, typeOnly } of importsOf(file)) if (!typeOnly) seen.add(target)
  }
  return [...seen].sort()
}
