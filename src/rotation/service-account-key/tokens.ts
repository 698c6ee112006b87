import type { ServiceAccountToken } from '../../x509/service-account-token.ts'
import type { PendingItem } from '../phase.ts'
import type { Observed } from '../snapshot.ts'
import type { FoundToken, TokenDriver } from './observed.ts'
import { tokensIn } from './plan.ts'

// Tokens by the key that signed them. What cannot be read may contain one, so it is pending.

/** Returns nodes and kinds of objects whose tokens could not be read, and whether that is so for CSI drivers. */
export function unreadTokens({ tokens }: Observed<'tokens'>): readonly PendingItem[] {
  return [
    ...tokens.nodes.flatMap(({ node: at, tokens: read }) =>
      'unread' in read ? [{ at, what: `its tokens cannot be read: ${read.unread}` }] : [],
    ),
    ...tokens.objects.flatMap(({ kind, tokens: read }) =>
      'unread' in read ? [{ at: `${kind}s`, what: `cannot be read: ${read.unread}` }] : [],
    ),
    ...('unread' in tokens.drivers
      ? [{ at: 'CSIDrivers', what: `cannot be read: ${tokens.drivers.unread}` }]
      : []),
  ]
}

/** Returns the nodes with mounted tokens of a key, and the number of these tokens. */
export function nodesWithMounted({ tokens }: Observed<'tokens'>, keyId: string): ReadonlyMap<string, number> {
  const counts = tokens.nodes.map(({ node, tokens: read }) => {
    const mounted = 'value' in read ? read.value.mounted.filter(isOfPod) : []
    return [node, mounted.filter((one) => one.keyId === keyId).length] as const
  })
  return new Map(counts.filter(([, count]) => count > 0))
}

/**
 * Returns true for a token that a kubelet requested. Its volumes may also contain tokens of Secrets and ConfigMaps, which no kubelet
 * renews; these count where they are stored.
 */
export function isOfPod({ boundTo }: ServiceAccountToken): boolean {
  return boundTo?.startsWith('pod ') === true
}

/** Returns the unexpired tokens of a key in files of nodes and in objects. No program of Kubernetes renews them. */
export function heldTokens({ tokens, atMs }: Observed<'tokens'>, keyId: string): readonly FoundToken[] {
  return tokensIn({ atMs, ...tokens }).held.filter(({ claims }) => claims.keyId === keyId)
}

/**
 * Returns these tokens and those without a key ID. Kubernetes before 1.16 issued legacy tokens without one, and API servers try every
 * key for them.
 */
export function oldTokens({ tokens, atMs }: Observed<'tokens'>, oldKeyId: string): readonly FoundToken[] {
  return tokensIn({ atMs, ...tokens }).held.filter(({ claims: { keyId = oldKeyId } }) => keyId === oldKeyId)
}

/** Returns the CSI drivers for which kubelets request tokens. */
export function driversIn({ tokens: { drivers } }: Observed<'tokens'>): readonly TokenDriver[] {
  return 'value' in drivers ? drivers.value : []
}

/** Returns the ID with which the operator accepts that tokens of a CSI driver become invalid. */
export function driverId({ name }: TokenDriver): string {
  return `CSIDriver ${name}`
}

/** Returns the ID with which the operator accepts that a token becomes invalid. */
export function tokenId({ kind, location }: FoundToken): string {
  return `${kind} ${location}`
}

/** Returns the service account and the owner of a token. */
export function holderOf({ claims: { namespace, serviceAccount }, owner }: FoundToken): string {
  return `${namespace}/${serviceAccount}, ${owner === undefined ? 'owner unknown' : `owner ${owner}`}`
}
