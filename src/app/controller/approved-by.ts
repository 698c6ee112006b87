import type { Context } from '../../cli/context.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { type NamedPolicies, namedPolicies } from '../csr/policies.ts'

/** What --approve names: built-in policies, or a file. */
export interface ApprovedBy extends NamedPolicies {
  readonly name: string
}

/** Reads it for a command that does not run the controller. Throws KCERT_USAGE without a value, and as `namedPolicies`. */
export async function approvedBy(name: string | undefined, context: Context): Promise<ApprovedBy> {
  if (name === undefined)
    throw new KcertError('KCERT_USAGE', '--approve is missing', {
      why: 'the permissions of the controller depend on its policy',
      next: '--approve builtin',
    })
  return { name, ...(await namedPolicies(name, context)) }
}

/** Throws KCERT_USAGE for a value that is not the name of a namespace. */
export function checkNamespace(name: string): void {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return
  throw new KcertError('KCERT_USAGE', `invalid --namespace ${JSON.stringify(name)}`, {
    why: 'a namespace has lowercase letters, digits and hyphens, at most 63, and begins and ends with a letter or digit',
    next: '--namespace kube-system',
  })
}
