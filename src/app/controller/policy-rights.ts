import type { Lookup, Policy } from '../../csr/approval/policy.ts'

// What the rules of a policy need in rights-table.ts: the signers that they approve for, and the facts that they look up.

/** Returns the lookups that the policies make. */
export function lookupsOf(policies: readonly Policy[]): readonly Lookup[] {
  return policies.flatMap(({ lookups }) => lookups)
}

/**
 * Returns the narrowest name that RBAC can grant `approve` for, for a pattern of signers: the signer, all signers of a domain
 * ("example.com/*"), or all signers ("*"). Undefined for a pattern that matches no signer.
 */
export function signerGrant(pattern: string): string | undefined {
  // Placeholders have no value in signerNames.
  if (pattern.includes('{')) return undefined
  if (!pattern.includes('*')) return pattern
  const [domain = '', ...path] = pattern.split('/')
  // The name of a signer has a slash, and "*" does not match it.
  if (path.length === 0) return undefined
  return domain.includes('*') ? '*' : `${domain}/*`
}

/** Returns what RBAC grants `approve` for, sorted, so that the policies can approve. */
export function signersOf(policies: readonly Policy[]): readonly string[] {
  const grants = policies.flatMap(({ signerNames }) => signerNames.flatMap((one) => signerGrant(one) ?? []))
  return [...new Set(grants)].sort()
}
