import type { Context } from '../../cli/context.ts'
import { readTrustedText } from '../../cli/input.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { builtinPolicies, readPolicies } from '../../csr/approval/policy-file.ts'

const builtinNames = builtinPolicies.map(({ name }) => name)

/**
 * Returns the policies that --policy names: "builtin", the names of built-in policies separated by commas, or a file. Throws
 * KCERT_FILE_UNTRUSTED and KCERT_POLICY_INVALID.
 */
export async function policiesOf(text: string, context: Context): Promise<readonly Policy[]> {
  if (text === 'builtin') return builtinPolicies
  const words = text.split(',')
  if (words.every((word) => builtinNames.includes(word)))
    return builtinPolicies.filter(({ name }) => words.includes(name))
  return readPolicies(await readTrustedText('approval policy', text, context), text)
}
