import type { FlagChanges } from '../../../pki/component-flags.ts'
import { awaitsBundles, isBundle } from '../../convergence.ts'
import { kubeconfigWrites } from '../../kubeconfig-files.ts'
import { caFileOf, folderOn, keyBeside } from '../../material.ts'
import { clusterPart } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import {
  isAsWanted,
  latestStart,
  passOver,
  restartWith,
  rotationAnnotation,
  type Wanted,
} from '../../restart.ts'
import { extraArgs } from '../../signing.ts'
import {
  apiServerOn,
  type ComponentSnapshot,
  componentsNamed,
  fileKey,
  onNode,
  type Snapshot,
} from '../../snapshot.ts'
import { withoutOld } from '../../target.ts'
import { inLanes, probe, together, wait } from '../../tasks.ts'
import { movedFlags } from '../../touched-files.ts'

const manager = 'kube-controller-manager'
/** What phase 5 wrote into manifests goes with the last restart. */
export const withoutRotation = { [rotationAnnotation]: null }

/** The last restart: the flags and names that were there before, which now lead to the new CA. */
export const definitions = clusterPart((seen, target, change) => {
  const writes = kubeconfigWrites(seen, change, target, withoutOld)
  const rewritten = new Set(writes.map(({ node, path }) => fileKey(node, path)))
  const wanted = (component: ComponentSnapshot): Wanted => ({
    ...finalOf(seen, component),
    isAboutToChange: rewritten.has(fileKey(component.node, component.flags.kubeconfig ?? '')),
  })
  const names = [manager, 'kube-scheduler', 'cloud-controller-manager'] as const
  const proxies = componentsNamed(seen, 'kube-proxy')
  const open = [...names.flatMap((name) => componentsNamed(seen, name)), ...proxies].filter(
    (one) => !isAsWanted(seen, one, finalOf(seen, one)),
  )
  const bundles = awaitsBundles(seen, target)
  const oldInPublished = seen.published.filter(
    (one) => one.isActive && one.trust?.includes(change.oldCa.digest) && (bundles || !isBundle(one)),
  )
  const passes = names.map((name) => ({ name, steps: passOver(seen, name, wanted) }))
  const isRestarting = passes.some(({ name, steps }) => name === manager && steps.length > 0)
  const signer = { kind: 'signer', generation: 'new' } as const
  const isUnsigned = isRestarting || !isProven(seen, signer, latestStart(componentsNamed(seen, manager)))
  const ours = extraArgs(seen, ownExtraArgs(seen))
  const holds = { holds: [change.newCa.digest], lacks: [change.oldCa.digest] }
  const because = 'kube-controller-manager publishes the new CA alone in every namespace'
  return {
    gaps: [
      ...open.map(({ id }) => ({ at: id, what: 'does not run with its own flags and the new CA' })),
      ...ours.map(() => ({ at: 'ConfigMap kube-system/kubeadm-config', what: "kcert's flags" })),
      ...oldInPublished.map(({ kind, name }) => ({ at: `${kind} ${name}`, what: 'holds the old CA' })),
      ...(isUnsigned ? [{ at: manager, what: 'no request signed by the new CA since the restart' }] : []),
    ],
    steps: [
      ...ours,
      ...inLanes(target.atOnce, proxies, (one) => restartWith(seen, one, wanted(one))),
      ...together(names.length, passes),
      ...(isUnsigned ? [probe(signer)] : []),
      ...(isRestarting || oldInPublished.length > 0
        ? [wait({ kind: 'published', ...holds, bundles }, because, 300_000)]
        : []),
    ],
  }
})

/** As the copies of phase 1 say that it was; without them, as kubeadm writes it. */
function finalOf(seen: Snapshot, component: ComponentSnapshot): Wanted {
  const { node, definition } = component
  const copy = onNode(seen.copies, node).find(
    (one) => 'path' in one.of && one.of.path === definition && one.flags !== undefined,
  )
  const flags = copy?.flags ?? kubeadmFlags(seen, component)
  const files = [component.flags.kubeconfig, flags['root-ca-file'] ?? undefined]
  return { flags, files, annotations: withoutRotation }
}

function kubeadmFlags(seen: Snapshot, { node, flags }: ComponentSnapshot): FlagChanges {
  const folder = folderOn(seen, node)
  const api = apiServerOn(seen, node)
  const ca = api && caFileOf(api, 'cluster')
  if (ca === undefined) return {}
  const moved = movedFlags.filter((flag) => flags[flag]?.startsWith(`${folder}/`))
  const ownFile = (flag: string): string => (flag === 'cluster-signing-key-file' ? keyBeside(ca) : ca)
  return Object.fromEntries(moved.map((flag) => [flag, ownFile(flag)]))
}

/** Takes out of ClusterConfiguration what leads into kcert's folder. */
function ownExtraArgs(seen: Snapshot): FlagChanges {
  const now = seen.kubeadm?.extraArgs.controllerManager ?? {}
  const first = seen.nodes.find((node) => node.isControlPlane)
  const folder = first && folderOn(seen, first.name)
  const ours = movedFlags.filter((flag) => folder !== undefined && now[flag]?.startsWith(`${folder}/`))
  return Object.fromEntries(ours.map((flag) => [flag, null]))
}
