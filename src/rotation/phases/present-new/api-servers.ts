import type { Action } from '../../action.ts'
import { isSignedByCa } from '../../certificate-record.ts'
import { hasOneLeaf, isOfOldCa, type LeafRole, leafFile, leafFlags, reissuing } from '../../leaves.ts'
import type { Gap, Part } from '../../phase.ts'
import type { ComponentPicture, Seen } from '../../picture.ts'
import { componentsNamed } from '../../restart.ts'
import { changeOf, type Target } from '../../target.ts'

type Sees = 'components' | 'kubelets' | 'files' | 'handshakes'

export const leaves: Part<Sees> = (seen, target) => {
  const apis = componentsNamed(seen, 'kube-apiserver')
  return {
    gaps: apis.flatMap((api) =>
      (Object.keys(leafFlags) as LeafRole[]).flatMap((role) => {
        const its = changeOf(target, leafFlags[role].ca)
        const isOld = its !== undefined && isOfOldCa(seen, leafFile(seen, api, role), its)
        return isOld ? [{ at: api.id, what: `${role} certificate of the old CA` }] : []
      }),
    ),
    steps: apis.flatMap((api) => [
      // Before the kubelets' restart, which cuts the connections that still carry the old one. Where the same file serves, only
      // the bridge makes that possible: without it the kubelets must have read the new CA first, and phase 11 waits longer.
      ...(isEarly(api, target) ? serveNew(seen, api, target) : []),
      ...(hasOneLeaf(api) ? [] : reissuing(seen, 9, api, 'kubelet-client', target)),
      ...reissuing(seen, 9, api, 'front-proxy-client', target),
    ]),
  }
}

export const lateServing: Part<Sees> = (seen, target) => ({
  gaps: stillServing(seen, target),
  steps: componentsNamed(seen, 'kube-apiserver').flatMap((api) =>
    isEarly(api, target) ? [] : serveNew(seen, api, target),
  ),
})

function isEarly(api: ComponentPicture, target: Target): boolean {
  return hasOneLeaf(api) && changeOf(target, 'cluster')?.bridge !== undefined
}

function serveNew(seen: Seen<Sees>, api: Parameters<typeof reissuing>[2], target: Target): readonly Action[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const { bridge, newCa } = change
  const chain = bridge === undefined || target.isDropping ? [] : [bridge.digest]
  const writes = reissuing(seen, 9, api, 'serving', target, chain)
  const isServed = stillServing(seen, target).every(({ at }) => at !== api.id)
  if (writes.length === 0 && isServed) return []
  return [...writes, awaitServed(api.id, newCa.spki, chain.length > 0)]
}

export function awaitServed(presenter: string, signedBy: string, bridged: boolean): Action {
  return {
    kind: 'wait',
    phase: 9,
    until: { kind: 'serves', presenter, signedBy, bridged },
    because: `${presenter} serves what its file holds`,
    deadlineMs: 60_000,
  }
}

/** Live handshakes with API servers and kubelets in which the old CA's leaf was shown. */
function stillServing(seen: Seen<'handshakes' | 'components' | 'kubelets'>, target: Target): readonly Gap[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const ours = new Set([
    ...componentsNamed(seen, 'kube-apiserver').map(({ id }) => id),
    ...seen.kubelets.map(({ id }) => id),
  ])
  return seen.handshakes
    .filter(({ presenter, chain }) => {
      const leaf = seen.certificates.get(chain[0] ?? '')
      return ours.has(presenter) && isSignedByCa(leaf, change.oldCa)
    })
    .map(({ presenter }) => ({ at: presenter, what: 'serves a certificate of the old CA' }))
}
