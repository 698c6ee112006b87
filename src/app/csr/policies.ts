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

/** Policies, and the text of their file if they are not built-in. */
export interface NamedPolicies {
  readonly policies: readonly Policy[]
  readonly text?: string
}

/**
 * Returns the policies that --policy or --approve names: built-in ones, or those of a file. Throws KCERT_FILE_UNTRUSTED and
 * KCERT_POLICY_INVALID.
 */
export async function namedPolicies(name: string, context: Context): Promise<NamedPolicies> {
  const builtin = builtinPoliciesOf(name)
  if (builtin !== undefined) return { policies: builtin }
  const text = await readPolicyText(name, context)
  return { text, policies: await readPolicies(text, name) }
}

/** Returns the policies alone. */
export async function policiesOf(name: string, context: Context): Promise<readonly Policy[]> {
  return (await namedPolicies(name, context)).policies
}

// 4,000 rules. The YAML of a larger one may need more than the heap of the controller, and would end it instead of being refused.
const mostPolicyBytes = 512 * 1024

/** Throws KCERT_FILE_UNTRUSTED and KCERT_FILE_TOO_LARGE. */
export function readPolicyText(name: string, context: Context): Promise<string> {
  return readTrustedText('approval policy', name, context, mostPolicyBytes)
}
