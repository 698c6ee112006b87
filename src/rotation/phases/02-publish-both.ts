import { commandLine } from '../../errors/command-line.ts'
import { hasLostBundle, isWaived } from '../convergence.ts'
import { clusterPart, definePhase, inParts, type PendingItem, type Refusal } from '../phase.ts'
import { isProven } from '../proof.ts'
import { isAsDesired, latestStart, passOver } from '../restart.ts'
import { extraArgs, signingGeneration, wantedOfControllerManager } from '../signing.ts'
import {
  type ComponentSnapshot,
  certificatesIn,
  componentsNamed,
  fileAt,
  type Observed,
} from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { probe } from '../tasks.ts'
import { restoreObjects } from '../undo.ts'
import { backToDefinitions } from '../undo-pass.ts'

const name = 'kube-controller-manager'
const signer = { kind: 'signer', generation: 'old' } as const

const managers = clusterPart<'components' | 'files' | 'leases' | 'kubeadm' | 'evidence'>(
  (observed, target) => {
    if (target.isDropping) return { gaps: [], steps: [] }
    const wanted = (component: ComponentSnapshot) => wantedOf(observed, target, component)
    const unready = componentsNamed(observed, name).filter((one) => !isAsDesired(observed, one, wanted(one)))
    const configuration = extraArgs(observed, wantedExtraArgs(observed, target))
    const hasLeader = observed.leases.some((lease) => lease.name === name && lease.holder !== undefined)
    const isUnproven = unready.length === 0 && !isSigningProven(observed)
    const pass = passOver(observed, name, wanted)
    const isSigning = isLedToNew(observed) || (pass.length === 0 && isSigningProven(observed))
    return {
      gaps: [
        ...unready.map(({ id: at }) => ({
          at,
          what: 'does not run with both CAs to publish and one signing pair',
        })),
        ...manySigners(observed),
        ...configuration.map(() => ({
          at: 'ConfigMap kube-system/kubeadm-config',
          what: 'an upgrade would remove the flags',
        })),
        ...(hasLeader ? [] : [{ at: name, what: 'no leader' }]),
        ...(isUnproven ? [{ at: name, what: 'no request signed by the old CA since the restart' }] : []),
      ],
      steps: [...configuration, ...pass, ...(isSigning ? [] : [probe(signer)])],
    }
  },
)

export const publishBoth = definePhase('publish-both', {
  sees: ['components', 'files', 'leases', 'kubeadm', 'published', 'pods', 'evidence'],
  ...inParts(managers),
  refusals: bundlesByName,
  undo: (copies, now) => [
    ...restoreObjects(copies, () => now.kubeadm?.version),
    ...backToDefinitions(copies, now),
  ],
})

/**
 * Phase 7 points the same flags at the new pair. They stay there, and a component that lost them gets the value of the others.
 */
function wantedOf(observed: Observed<'components'>, target: Target, component: ComponentSnapshot) {
  const common = isLedToNew(observed) ? 'new' : 'old'
  return wantedOfControllerManager(
    observed,
    target,
    component,
    signingGeneration(observed, component) ?? common,
  )
}

function isLedToNew(observed: Observed<'components'>): boolean {
  return componentsNamed(observed, name).some((component) => signingGeneration(observed, component) === 'new')
}

function wantedExtraArgs(observed: Observed<'components' | 'kubeadm'>, target: Target) {
  const [component] = componentsNamed(observed, name)
  if (component === undefined) return undefined
  const led = wantedOfControllerManager(observed, target, component, 'new').flags
  // Phase 7 writes the extra args first. If it stops after that, phase 7 continues, not this one.
  return extraArgs(observed, led).length === 0 ? led : wantedOf(observed, target, component).flags
}

function manySigners(observed: Observed<'components' | 'files'>): readonly PendingItem[] {
  return componentsNamed(observed, name).flatMap(({ id, node, flags }) => {
    const count = certificatesIn(fileAt(observed, node, flags['cluster-signing-cert-file'])).length
    return count === 1 ? [] : [{ at: id, what: `signing file with ${count} certificates` }]
  })
}

function isSigningProven(observed: Observed<'components' | 'evidence'>): boolean {
  // Once phase 7 points one of them at the new pair, phase 7 must prove the signature.
  return isLedToNew(observed) || isProven(observed, signer, latestStart(componentsNamed(observed, name)))
}

/**
 * The object's name depends on its content. For another bundle, kube-controller-manager creates another object and deletes this
 * one.
 */
function bundlesByName(observed: Observed<'published' | 'pods'>, target: Target): readonly Refusal[] {
  if (target.isDropping || changeOf(target, 'cluster') === undefined) return []
  return observed.pods.flatMap((pod) => {
    const { id } = pod
    const bundle = pod.trustBundle?.name
    if (bundle === undefined || isWaived(pod, target) || hasLostBundle(observed, pod)) return []
    return [
      {
        what: `pod ${id} mounts ClusterTrustBundle ${JSON.stringify(bundle)} by name`,
        why: commandLine`kube-controller-manager deletes this object in this phase, so the pod could not start again; mount it by signerName, or accept the risk with --waive ${id}`,
        next: 'kcert rotate-ca plan',
      },
    ]
  })
}
