import type { Context } from '../../cli/context.ts'
import { readTrustedText } from '../../cli/input.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { builtinPolicies, readPolicies } from '../../csr/approval/policy-file.ts'

const builtinNames = builtinPolicies.map(({ name }) => name)

/** Returns the built-in policies that a value names: "builtin", or their names separated by commas. Undefined for a file. */
export function builtinPoliciesOf(text: string): readonly Policy[] | undefined {
  if (text === 'builtin') return builtinPolicies
  const words = text.split(',')
  return words.every((word) => builtinNames.includes(word))
    ? builtinPolicies.filter(({ name }) => words.includes(name))
    : undefined
}

/**
 * Returns the policies that --policy names: built-in ones, or those of a file. Throws KCERT_FILE_UNTRUSTED and
 * KCERT_POLICY_INVALID.
 */
export async function policiesOf(text: string, context: Context): Promise<readonly Policy[]> {
  return (
    builtinPoliciesOf(text) ?? readPolicies(await readTrustedText('approval policy', text, context), text)
  )
}
