import type { Context } from '../../cli/context.ts'
import { readTrustedText } from '../../cli/input.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { readPolicies } from '../../csr/approval/policy-file.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { builtinPoliciesOf } from '../csr/policies.ts'

/** What --approve names: built-in policies, or a file. */
export interface ApprovedBy {
  readonly name: string
  /** The text of a policy file. */
  readonly text?: string
  readonly policies: readonly Policy[]
}

/** Reads it for a command that does not run the controller. Throws KCERT_USAGE without a value, and as `policiesOf`. */
export async function approvedBy(name: string | undefined, context: Context): Promise<ApprovedBy> {
  if (name === undefined)
    throw new KcertError('KCERT_USAGE', '--approve is missing', {
      why: 'the permissions of the controller depend on its policy',
      next: '--approve builtin',
    })
  const builtin = builtinPoliciesOf(name)
  if (builtin !== undefined) return { name, policies: builtin }
  const text = await readTrustedText('approval policy', name, context)
  return { name, text, policies: await readPolicies(text, name) }
}

/** Throws KCERT_USAGE for a value that is not the name of a namespace. */
export function checkNamespace(name: string): void {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return
  throw new KcertError('KCERT_USAGE', `invalid --namespace ${JSON.stringify(name)}`, {
    why: 'a namespace has lowercase letters, digits and hyphens, at most 63, and begins and ends with a letter or digit',
    next: '--namespace kube-system',
  })
}
