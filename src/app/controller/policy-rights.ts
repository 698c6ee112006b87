import type { Lookup, Policy } from '../../csr/approval/policy.ts'
import { each, type Right } from './rights.ts'

// The permissions that the rules of a policy need: to approve for their signers, and to look up facts in the cluster.

const configMap = (namespace: string, name: string): Right[] =>
  each('get', { group: '', resource: 'configmaps', namespace, name })

/** What each lookup reads, in src/cluster/approval-facts.ts and cluster-addresses.ts, and src/app/csr/approval-facts.ts. */
export const lookupRights: Readonly<Record<Lookup, readonly Right[]>> = {
  access: each('create', { group: 'authorization.k8s.io', resource: 'subjectaccessreviews' }),
  nodes: each('get list', { group: '', resource: 'nodes' }),
  'cluster-addresses': [
    ...each('list', { group: 'networking.k8s.io', resource: 'servicecidrs' }),
    ...each('list', { group: 'discovery.k8s.io', resource: 'endpointslices', namespace: 'default' }),
    ...configMap('kube-public', 'cluster-info'),
    ...configMap('kube-system', 'kubeadm-config'),
  ],
  'served-certificates': configMap('kube-system', 'kube-root-ca.crt'),
}

export const lookups = Object.keys(lookupRights) as readonly Lookup[]

/** Returns the lookups of policies, in the order of the table above. */
export function lookupsOf(policies: readonly Policy[]): readonly Lookup[] {
  return lookups.filter((lookup) => policies.some((policy) => policy.lookups.includes(lookup)))
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

/** Returns the permission to approve for a result of `signersOf`. */
export function rightToApproveFor(signer: string): readonly Right[] {
  const signers = { group: 'certificates.k8s.io', resource: 'signers' }
  return each('approve', signer === '*' ? signers : { ...signers, name: signer })
}

/** Returns the permissions that policies need besides `rightsToApprove`. */
export function policyRights(policies: readonly Policy[]): readonly Right[] {
  return [
    ...signersOf(policies).flatMap(rightToApproveFor),
    ...lookupsOf(policies).flatMap((lookup) => lookupRights[lookup]),
  ]
}
