import type { Task } from '../../action.ts'
import { handshakeSubject } from '../../handshake-errors.ts'
import { provingLogs } from '../../kubelet-steps.ts'
import { caFileOf, keyPathFor } from '../../material.ts'
import type { Part } from '../../phase.ts'
import { apiServerOn, controlPlanes, fileAt, fileKey, type Snapshot } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { inLanes, probe, rewrite } from '../../tasks.ts'
import { allTrustFiles, containsOld, droppingOld, type TrustFile } from '../../trust-files.ts'
import { trustOnNode } from '../../trust-on-node.ts'
import { unprovenAt } from '../../verifying.ts'
import { withoutRotation } from './definitions.ts'
import { shortSoakMs } from './servers.ts'

/** One API server and everything else on its node first. After it succeeds, the other API servers, then the workers. */
export const trustHolders: Part = (observed, target) => {
  const files = allTrustFiles(observed)
  const stepsOn = ({ name }: { readonly name: string }): readonly Task[] => {
    const dropping = (file: TrustFile) => droppingOld(observed, file, target)
    const its = trustOnNode(observed, name, files, target, dropping, withoutRotation)
    return [...its.writes, ...keysOf(observed, name, target), ...its.restarts, ...its.probes]
  }
  const planes = controlPlanes(observed)
  const workers = observed.nodes.filter(({ isControlPlane }) => !isControlPlane)
  const [first = [], ...others] = planes.map(stepsOn)
  const watched = [planes[0], workers[0]].flatMap((node) => node?.name ?? [])
  const soak = [
    probe(handshakeSubject(observed, target, `${watched[0]}/kube-apiserver`, shortSoakMs)),
    ...watched.map(provingLogs),
  ]
  return {
    gaps: [
      ...files
        .filter((file) => containsOld(observed, file, target))
        .map(({ process, path }) => ({ at: process, what: `${path} with the old CA` })),
      ...planes
        .flatMap(({ name }) => keysOf(observed, name, target))
        .map(({ node, path }) => ({ at: fileKey(node, path), what: 'key of the old CA' })),
      ...unprovenAt(observed, files, target).map(({ at }) => ({
        at,
        what: 'not yet seen to reject the old CA and accept the new one',
      })),
    ],
    steps: [
      ...first,
      ...(first.some(({ kind }) => kind === 'write-file') ? soak : []),
      ...others.flat(),
      ...inLanes(target.atOnce, workers, stepsOn),
    ],
  }
}

/** No component reads the CA key next to ca.crt at this point: controller-managers sign with the pair in kcert's folder. */
function keysOf(observed: Snapshot, node: string, target: Target): readonly Task<'write-file'>[] {
  const api = apiServerOn(observed, node)
  if (api === undefined) return []
  return target.changes.flatMap(({ ca, newCa }) => {
    const certificate = caFileOf(api, ca)
    const file = certificate === undefined ? undefined : fileAt(observed, node, keyPathFor(certificate))
    if (file?.contains.kind !== 'key' || file.contains.spki === newCa.spki) return []
    return [rewrite(file, { kind: 'ca-key', ca, generation: 'new' })]
  })
}
