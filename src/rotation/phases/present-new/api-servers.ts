import type { Task } from '../../action.ts'
import { handshakesWith, hasOneLeaf, oldApiLeaves, reissuing } from '../../leaves.ts'
import type { Gap, Part } from '../../phase.ts'
import { apiServers, type ComponentSnapshot, type Seen } from '../../snapshot.ts'
import { changeOf, type Target } from '../../target.ts'
import { wait } from '../../tasks.ts'

type Sees = 'components' | 'kubelets' | 'files' | 'handshakes'

export const leaves: Part<Sees> = (seen, target) => ({
  gaps: oldApiLeaves(seen, target).map(({ api, role }) => ({
    at: api.id,
    what: `${role} certificate of the old CA`,
  })),
  steps: apiServers(seen).flatMap((api) => [
    // Before the kubelets' restart, which cuts the connections that still carry the old one. Where the same file serves, only
    // the bridge makes that possible: without it the kubelets must have read the new CA first, and phase 11 waits longer.
    ...(isEarly(api, target) ? serveNew(seen, api, target) : []),
    ...(hasOneLeaf(api) ? [] : reissuing(seen, api, 'kubelet-client', target)),
    ...reissuing(seen, api, 'front-proxy-client', target),
  ]),
})

export const lateServing: Part<Sees> = (seen, target) => ({
  gaps: stillServing(seen, target),
  steps: apiServers(seen).flatMap((api) => (isEarly(api, target) ? [] : serveNew(seen, api, target))),
})

function isEarly(api: ComponentSnapshot, target: Target): boolean {
  return hasOneLeaf(api) && changeOf(target, 'cluster')?.bridge !== undefined
}

function serveNew(seen: Seen<Sees>, api: ComponentSnapshot, target: Target): readonly Task[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const { bridge, newCa } = change
  const chain = bridge === undefined || target.isDropping ? [] : [bridge.digest]
  const writes = reissuing(seen, api, 'serving', target, chain)
  const isServed = stillServing(seen, target).every(({ at }) => at !== api.id)
  if (writes.length === 0 && isServed) return []
  return [...writes, awaitServed(api.id, newCa.spki, chain.length > 0)]
}

export function awaitServed(presenter: string, signedBy: string, bridged: boolean): Task {
  const until = { kind: 'serves', presenter, signedBy, bridged } as const
  return wait(until, `${presenter} serves what its file holds`, 60_000)
}

/** Live handshakes with API servers and kubelets in which the old CA's leaf was shown. */
function stillServing(seen: Seen<'handshakes' | 'components' | 'kubelets'>, target: Target): readonly Gap[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  const ours = new Set([...apiServers(seen), ...seen.kubelets].map(({ id }) => id))
  return handshakesWith(seen, change.oldCa)
    .filter(({ presenter }) => ours.has(presenter))
    .map(({ presenter }) => ({ at: presenter, what: 'serves a certificate of the old CA' }))
}
