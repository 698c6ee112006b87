import { awaitsBundles, isBundle } from '../../convergence.ts'
import { caFileOf, folderOn, keyBeside } from '../../material.ts'
import { clusterPart } from '../../phase.ts'
import { type ComponentPicture, fileKey, onNode, type Picture } from '../../picture.ts'
import { isProven, probe } from '../../proof.ts'
import {
  componentsNamed,
  isAsWanted,
  latestStart,
  passOver,
  restartWith,
  rotationAnnotation,
  together,
  type Wanted,
} from '../../restart.ts'
import { extraArgs } from '../../signing.ts'
import { movedFlags } from '../../touched-files.ts'
import { kubeconfigWrites } from './holders.ts'

const manager = 'kube-controller-manager'
/** What phase 5 wrote into manifests goes with the last restart. */
export const withoutRotation = { [rotationAnnotation]: null }

/** The last restart: the flags and names that were there before, which now lead to the new CA. */
export const definitions = clusterPart((seen, target, change) => {
  const rewritten = new Set(
    kubeconfigWrites(seen, change, target).map(({ node, path }) => fileKey(node, path)),
  )
  const wanted = (component: ComponentPicture): Wanted => ({
    ...finalOf(seen, component),
    isAboutToChange: rewritten.has(fileKey(component.node, component.flags.kubeconfig ?? '')),
  })
  const names = [manager, 'kube-scheduler', 'cloud-controller-manager'] as const
  const open = [...names, 'kube-proxy' as const].flatMap((name) =>
    componentsNamed(seen, name).filter((one) => !isAsWanted(seen, one, finalOf(seen, one))),
  )
  const bundles = awaitsBundles(seen, target)
  const oldInPublished = seen.published.filter(
    (one) => one.isActive && one.trust?.includes(change.oldCa.digest) && (bundles || !isBundle(one)),
  )
  const managers = componentsNamed(seen, manager)
  const passes = names.map((name) => ({ name, steps: passOver(seen, 12, name, wanted) }))
  const isRestarting = passes.some(({ name, steps }) => name === manager && steps.length > 0)
  const signer = { kind: 'signer', generation: 'new' } as const
  const isUnsigned = isRestarting || !isProven(seen, signer, latestStart(managers))
  const ours = extraArgs(seen, 12, ownExtraArgs(seen))
  return {
    gaps: [
      ...open.map(({ id }) => ({ at: id, what: 'does not run with its own flags and the new CA' })),
      ...ours.map(() => ({ at: 'ConfigMap kube-system/kubeadm-config', what: "kcert's flags" })),
      ...oldInPublished.map(({ kind, name }) => ({ at: `${kind} ${name}`, what: 'holds the old CA' })),
      ...(isUnsigned ? [{ at: manager, what: 'no request signed by the new CA since the restart' }] : []),
    ],
    steps: [
      ...ours,
      ...together(
        target.atOnce,
        componentsNamed(seen, 'kube-proxy').map((one) => ({
          name: one.id,
          steps: restartWith(seen, 12, one, wanted(one)),
        })),
      ),
      ...together(names.length, passes),
      ...(isUnsigned ? [probe(12, signer)] : []),
      ...(isRestarting || oldInPublished.length > 0
        ? [
            {
              kind: 'wait',
              phase: 12,
              until: {
                kind: 'published',
                holds: [change.newCa.digest],
                lacks: [change.oldCa.digest],
                bundles,
              },
              because: 'kube-controller-manager publishes the new CA alone in every namespace',
              deadlineMs: 300_000,
            } as const,
          ]
        : []),
    ],
  }
})

/** As the copies of phase 1 say that it was; without them, as kubeadm writes it. */
function finalOf(seen: Picture, component: ComponentPicture): Wanted {
  const { node, definition } = component
  const copy = onNode(seen.copies, node).find(
    (one) => 'path' in one.of && one.of.path === definition && one.flags !== undefined,
  )
  const its = copy?.flags ?? kubeadmFlags(seen, component)
  const files = [component.flags.kubeconfig, its['root-ca-file'] ?? undefined]
  return { flags: its, files, annotations: withoutRotation }
}

function kubeadmFlags(seen: Picture, { node, flags }: ComponentPicture): Record<string, string | null> {
  const folder = folderOn(seen, node)
  const api = onNode(seen.components, node).find(({ name }) => name === 'kube-apiserver')
  const ca = api && caFileOf(api, 'cluster')
  if (ca === undefined) return {}
  const own: Record<string, string> = {
    'root-ca-file': ca,
    'cluster-signing-cert-file': ca,
    'cluster-signing-key-file': keyBeside(ca),
  }
  const moved = movedFlags.filter((flag) => flags[flag]?.startsWith(`${folder}/`))
  return Object.fromEntries(moved.map((flag) => [flag, own[flag]!]))
}

/** Takes out of ClusterConfiguration what leads into kcert's folder. */
function ownExtraArgs(seen: Picture): Record<string, null> {
  const now = seen.kubeadm?.extraArgs.controllerManager ?? {}
  const first = seen.nodes.find((node) => node.isControlPlane)
  const folder = first && folderOn(seen, first.name)
  const ours = movedFlags.filter((flag) => folder !== undefined && now[flag]?.startsWith(`${folder}/`))
  return Object.fromEntries(ours.map((flag) => [flag, null]))
}
