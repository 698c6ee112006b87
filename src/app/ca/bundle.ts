import { bundle } from '../../ca/bundle.ts'
import type { Context } from '../../cli/context.ts'
import { readInput } from '../../cli/input.ts'

/**
 * Returns the bundle of these files, "-" for standard input. Throws as `bundle` does for certificates that are not CAs, unless
 * allowed.
 */
export async function readBundle(
  files: readonly string[],
  context: Context,
  { allowNonCa }: { readonly allowNonCa?: boolean } = {},
): Promise<ReturnType<typeof bundle>> {
  const sources = []
  for (const name of files) sources.push({ name, bytes: await readInput(name, context) })
  return bundle(sources, context.clock(), allowNonCa)
}
