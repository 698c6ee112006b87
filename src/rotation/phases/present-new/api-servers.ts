import type { Task } from '../../action.ts'
import { handshakesWith, hasOneLeaf, oldApiLeaves, reissuing } from '../../leaves.ts'
import type { Part, PendingItem } from '../../phase.ts'
import { apiServers, type ComponentSnapshot, type Observed } from '../../snapshot.ts'
import { changeOf, type Target } from '../../target.ts'
import { wait } from '../../tasks.ts'

type Sees = 'components' | 'kubelets' | 'files' | 'handshakes'

export const leaves: Part<Sees> = (observed, target) => ({
  gaps: oldApiLeaves(observed, target).map(({ api, role }) => ({
    at: api.id,
    what: `${role} certificate of the old CA`,
  })),
  steps: apiServers(observed).flatMap((api) => [
    // Write client certificates before the kubelets restart, because the restart closes the connections that still use the old
    // one. If the same file is also the serving certificate, this requires the bridge certificate. Without it, the kubelets must
    // read the new CA first, and phase 11 waits longer.
    ...(isEarly(api, target) ? serveNew(observed, api, target) : []),
    ...(hasOneLeaf(api) ? [] : reissuing(observed, api, 'kubelet-client', target)),
    ...reissuing(observed, api, 'front-proxy-client', target),
  ]),
})

export const lateServing: Part<Sees> = (observed, target) => ({
  gaps: stillServing(observed, target),
  steps: apiServers(observed).flatMap((api) => (isEarly(api, target) ? [] : serveNew(observed, api, target))),
})

function isEarly(api: ComponentSnapshot, target: Target): boolean {
  return hasOneLeaf(api) && changeOf(target, 'cluster')?.bridge !== undefined
}

function serveNew(observed: Observed<Sees>, api: ComponentSnapshot, target: Target): readonly Task[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const { bridge, newCa } = change
  const chain = bridge === undefined || target.isDropping ? [] : [bridge.digest]
  const writes = reissuing(observed, api, 'serving', target, chain)
  const isServed = stillServing(observed, target).every(({ at }) => at !== api.id)
  if (writes.length === 0 && isServed) return []
  return [...writes, awaitServed(api.id, newCa.spki, chain.length > 0)]
}

export function awaitServed(server: string, signedBy: string, bridged: boolean): Task {
  const until = { kind: 'serves', server, signedBy, bridged } as const
  return wait(until, `${server} serves the certificate in its file`, 60_000)
}

/** Returns API servers and kubelets that presented a leaf certificate of the old CA in an observed handshake. */
function stillServing(
  observed: Observed<'handshakes' | 'components' | 'kubelets'>,
  target: Target,
): readonly PendingItem[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const ours = new Set([...apiServers(observed), ...observed.kubelets].map(({ id }) => id))
  return handshakesWith(observed, change.oldCa)
    .filter(({ server }) => ours.has(server))
    .map(({ server }) => ({ at: server, what: 'serves a certificate of the old CA' }))
}
