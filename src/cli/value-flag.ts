import * as Flags from '@oclif/core/flags'

interface Choice {
  readonly char?: 'f' | 'i' | 'l' | 'n'
  readonly helpGroup?: string
  readonly exclusive?: string[]
  readonly dependsOn?: string[]
}

/** Returns a flag with a value, which the help calls `helpValue`. */
export function valueFlag(helpValue: string, description: string, choice: Choice = {}) {
  return Flags.string({ description, helpValue, ...choice })
}

/** Returns one that may be given again and again; with a delimiter, a value may hold several. */
export function repeatedFlag(
  helpValue: string,
  description: string,
  choice: Choice & { readonly delimiter?: ',' } = {},
) {
  return Flags.string({ description, helpValue, multiple: true, multipleNonGreedy: true, ...choice })
}
