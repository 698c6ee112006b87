import type { FlagChanges } from '../../../pki/component-flags.ts'
import { awaitsBundles, isBundle } from '../../convergence.ts'
import { kubeconfigWrites } from '../../kubeconfig-files.ts'
import { caFileOf, folderOn, keyPathFor } from '../../material.ts'
import { clusterPart } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import {
  type DesiredProcess,
  isAsDesired,
  latestStart,
  passOver,
  restartWith,
  rotationAnnotation,
} from '../../restart.ts'
import { extraArgs } from '../../signing.ts'
import {
  apiServerOn,
  type ComponentSnapshot,
  componentsNamed,
  controlPlanes,
  fileKey,
  onNode,
  type Snapshot,
} from '../../snapshot.ts'
import { withoutOld } from '../../target.ts'
import { inLanes, inParallel, probe, wait } from '../../tasks.ts'
import { movedFlags } from '../../touched-files.ts'

const manager = 'kube-controller-manager'
/** The last restart removes the annotation that phase 5 wrote into manifests. */
export const withoutRotation = { [rotationAnnotation]: null }

/** The last restart. It restores the flags and names from before the rotation, which now refer to the new CA. */
export const definitions = clusterPart((observed, target, change) => {
  const writes = kubeconfigWrites(observed, change, target, withoutOld)
  const rewritten = new Set(writes.map(({ node, path }) => fileKey(node, path)))
  const wanted = (component: ComponentSnapshot): DesiredProcess => ({
    ...finalOf(observed, component),
    isAboutToChange: rewritten.has(fileKey(component.node, component.flags.kubeconfig ?? '')),
  })
  const names = [manager, 'kube-scheduler', 'cloud-controller-manager'] as const
  const proxies = componentsNamed(observed, 'kube-proxy')
  const open = [...names.flatMap((name) => componentsNamed(observed, name)), ...proxies].filter(
    (one) => !isAsDesired(observed, one, finalOf(observed, one)),
  )
  const bundles = awaitsBundles(observed, target)
  const oldInPublished = observed.published.filter(
    (one) => one.isActive && one.trust?.includes(change.oldCa.digest) && (bundles || !isBundle(one)),
  )
  const passes = names.map((name) => ({ name, steps: passOver(observed, name, wanted) }))
  const isRestarting = passes.some(({ name, steps }) => name === manager && steps.length > 0)
  const signer = { kind: 'signer', generation: 'new' } as const
  const isUnsigned =
    isRestarting || !isProven(observed, signer, latestStart(componentsNamed(observed, manager)))
  const ours = extraArgs(observed, ownExtraArgs(observed))
  const newOnly = { contains: [change.newCa.digest], lacks: [change.oldCa.digest] }
  const because = 'kube-controller-manager publishes only the new CA to every namespace'
  return {
    gaps: [
      ...open.map(({ id }) => ({ at: id, what: 'does not run with its original flags and the new CA' })),
      ...ours.map(() => ({ at: 'ConfigMap kube-system/kubeadm-config', what: "contains kcert's flags" })),
      ...oldInPublished.map(({ kind, name }) => ({ at: `${kind} ${name}`, what: 'contains the old CA' })),
      ...(isUnsigned ? [{ at: manager, what: 'no request signed by the new CA since the restart' }] : []),
    ],
    steps: [
      ...ours,
      ...inLanes(target.atOnce, proxies, (one) => restartWith(observed, one, wanted(one))),
      ...inParallel(names.length, passes),
      ...(isUnsigned ? [probe(signer)] : []),
      ...(isRestarting || oldInPublished.length > 0
        ? [wait({ kind: 'published', ...newOnly, bundles }, because, 300_000)]
        : []),
    ],
  }
})

/** Returns the definition in the copies of phase 1, or kubeadm's default if there is no copy. */
function finalOf(observed: Snapshot, component: ComponentSnapshot): DesiredProcess {
  const { node, definition } = component
  const copy = onNode(observed.copies, node).find(
    (one) => 'path' in one.of && one.of.path === definition && one.flags !== undefined,
  )
  const flags = copy?.flags ?? kubeadmFlags(observed, component)
  const files = [component.flags.kubeconfig, flags['root-ca-file'] ?? undefined]
  return { flags, files, annotations: withoutRotation }
}

function kubeadmFlags(observed: Snapshot, { node, flags }: ComponentSnapshot): FlagChanges {
  const folder = folderOn(observed, node)
  const api = apiServerOn(observed, node)
  const ca = api && caFileOf(api, 'cluster')
  if (ca === undefined) return {}
  const moved = movedFlags.filter((flag) => flags[flag]?.startsWith(`${folder}/`))
  const ownFile = (flag: string): string => (flag === 'cluster-signing-key-file' ? keyPathFor(ca) : ca)
  return Object.fromEntries(moved.map((flag) => [flag, ownFile(flag)]))
}

/** Removes the paths in kcert's folder from ClusterConfiguration. */
function ownExtraArgs(observed: Snapshot): FlagChanges {
  const now = observed.kubeadm?.extraArgs.controllerManager ?? {}
  const [first] = controlPlanes(observed)
  const folder = first && folderOn(observed, first.name)
  const ours = movedFlags.filter((flag) => folder !== undefined && now[flag]?.startsWith(`${folder}/`))
  return Object.fromEntries(ours.map((flag) => [flag, null]))
}
