import type { Action, WriteFile } from '../../action.ts'
import { handshakeSubject } from '../../handshake-errors.ts'
import { provingLogs } from '../../kubelet-steps.ts'
import { caFileOf, keyBeside } from '../../material.ts'
import type { Part } from '../../phase.ts'
import { fileAt, fileKey, onNode, type Picture } from '../../picture.ts'
import { probe } from '../../proof.ts'
import { together } from '../../restart.ts'
import type { Target } from '../../target.ts'
import { droppingOld, holdsOld, kubeletTrustFiles, type TrustFile, trustFilesOf } from '../../trust-files.ts'
import { trustOnNode } from '../../trust-on-node.ts'
import { unprovenAt } from '../../verifying.ts'
import { withoutRotation } from './definitions.ts'
import { shortSoakMs } from './servers.ts'

/** One API server with all that is on its node first; when it has held, the others, then the workers. */
export const verifiers: Part = (seen, target) => {
  const files = [
    ...trustFilesOf(seen, ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']),
    ...kubeletTrustFiles(seen),
  ]
  const steps = (node: string): readonly Action[] => {
    const rewriting = (file: TrustFile): readonly WriteFile[] => droppingOld(seen, 12, file, target)
    const { writes, restarts, probes } = trustOnNode(
      seen,
      12,
      node,
      files,
      target,
      rewriting,
      withoutRotation,
    )
    return [...writes, ...keysOf(seen, node, target), ...restarts, ...probes]
  }
  const controlPlanes = seen.nodes.filter((node) => node.isControlPlane).map(({ name }) => name)
  const workers = seen.nodes.filter((node) => !node.isControlPlane).map(({ name }) => name)
  const [first = [], ...others] = controlPlanes.map(steps)
  const firstWrites = first.some(({ kind }) => kind === 'write-file')
  const soak: Action[] = firstWrites
    ? [
        probe(12, handshakeSubject(seen, target, `${controlPlanes[0]}/kube-apiserver`, shortSoakMs)),
        ...[controlPlanes[0], workers[0]].flatMap((node) => (node ? [provingLogs(12, node)] : [])),
      ]
    : []
  return {
    gaps: [
      ...files
        .filter((file) => holdsOld(seen, file, target))
        .map(({ process, path }) => ({ at: process, what: `${path} with the old CA` })),
      ...controlPlanes
        .flatMap((node) => keysOf(seen, node, target))
        .map(({ node, path }) => ({ at: fileKey(node, path), what: 'key of the old CA' })),
      ...unprovenAt(seen, files, target).map((subject) => ({
        at: 'at' in subject ? subject.at : '',
        what: 'not proven to refuse the old CA and accept the new one',
      })),
    ],
    steps: [
      ...first,
      ...soak,
      ...others.flat(),
      ...together(
        target.atOnce,
        workers.map((name) => ({ name, steps: steps(name) })),
      ),
    ],
  }
}

/** Nobody reads the CA's key beside ca.crt now: controller-managers sign with the pair in kcert's folder. */
function keysOf(seen: Picture, node: string, target: Target): readonly WriteFile[] {
  const api = onNode(seen.components, node).find(({ name }) => name === 'kube-apiserver')
  if (api === undefined) return []
  return target.changes.flatMap(({ ca, newCa }) => {
    const certificate = caFileOf(api, ca)
    const file = certificate === undefined ? undefined : fileAt(seen, node, keyBeside(certificate))
    if (file?.holds.kind !== 'key' || file.holds.spki === newCa.spki) return []
    const content = { kind: 'ca-key', ca, generation: 'new' } as const
    const { path, digest, mode } = file
    return [{ kind: 'write-file', phase: 12, node, path, replaces: digest, content, mode }]
  })
}
