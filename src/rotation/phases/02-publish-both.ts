import { commandLine } from '../../errors/command-line.ts'
import type { Step } from '../action.ts'
import { hasLostBundle, isWaived } from '../convergence.ts'
import { definePhase, type Refusal } from '../phase.ts'
import { type ComponentPicture, certificatesIn, fileAt, type Seen } from '../picture.ts'
import { isProven, probe } from '../proof.ts'
import { componentsNamed, isAsWanted, latestStart, passOver } from '../restart.ts'
import { extraArgs, signingGeneration, wantedOfControllerManager } from '../signing.ts'
import { changeOf, type Target } from '../target.ts'
import { restoreObjects } from '../undo.ts'
import { backToDefinitions } from '../undo-pass.ts'

const name = 'kube-controller-manager'

export const publishBoth = definePhase('publish-both', {
  sees: ['components', 'files', 'leases', 'kubeadm', 'published', 'pods', 'evidence'],

  gaps(seen, target) {
    if (isOver(target)) return []
    const unready = componentsNamed(seen, name)
      .filter((component) => !isAsWanted(seen, component, wantedOf(seen, target, component)))
      .map(({ id }) => ({ at: id, what: 'does not run with both CAs to publish and one pair to sign with' }))
    const configuration = extraArgs(seen, 2, wantedExtraArgs(seen, target)).map(() => ({
      at: 'ConfigMap kube-system/kubeadm-config',
      what: 'an upgrade would take the flags back',
    }))
    const leader = seen.leases.some((lease) => lease.name === name && lease.holder !== undefined)
    return [
      ...unready,
      ...manySigners(seen),
      ...configuration,
      ...(leader ? [] : [{ at: name, what: 'no leader' }]),
      ...(unready.length > 0 || isSigningProven(seen)
        ? []
        : [{ at: name, what: 'no request signed by the old CA since the restart' }]),
    ]
  },

  plan(seen, target): readonly Step[] {
    if (isOver(target)) return []
    const pass = passOver(seen, 2, name, (component) => wantedOf(seen, target, component))
    return [
      ...extraArgs(seen, 2, wantedExtraArgs(seen, target)),
      ...pass,
      ...(isLedToNew(seen) || (pass.length === 0 && isSigningProven(seen))
        ? []
        : [probe(2, { kind: 'signer', generation: 'old' })]),
    ]
  },

  refusals: (seen, target) => (isOver(target) ? [] : bundlesByName(seen, target)),

  undo: (before, now) => ({
    kind: 'steps',
    steps: [...restoreObjects(before, () => now.kubeadm?.version), ...backToDefinitions(before, now)],
  }),
})

function isOver(target: Target): boolean {
  return target.isDropping || changeOf(target, 'cluster') === undefined
}

/** Phase 7 leads the same flags to the new pair; then they stay there, and who lost them is led where the others are. */
function wantedOf(seen: Seen<'components'>, target: Target, component: ComponentPicture) {
  const common = isLedToNew(seen) ? 'new' : 'old'
  return wantedOfControllerManager(seen, target, component, signingGeneration(seen, component) ?? common)
}

function isLedToNew(seen: Seen<'components'>): boolean {
  return componentsNamed(seen, name).some((component) => signingGeneration(seen, component) === 'new')
}

function wantedExtraArgs(seen: Seen<'components' | 'kubeadm'>, target: Target) {
  const component = componentsNamed(seen, name)[0]
  if (component === undefined) return undefined
  const wanted = wantedOf(seen, target, component).flags
  const led = wantedOfControllerManager(seen, target, component, 'new').flags
  // Phase 7 writes them here first: stopped behind that, it is phase 7 that goes on.
  return extraArgs(seen, 2, led).length === 0 ? led : wanted
}

function manySigners(seen: Seen<'components' | 'files'>) {
  return componentsNamed(seen, name).flatMap(({ id, node, flags }) => {
    const count = certificatesIn(fileAt(seen, node, flags['cluster-signing-cert-file'])).length
    return count === 1 ? [] : [{ at: id, what: `signing file with ${count} certificates` }]
  })
}

function isSigningProven(seen: Seen<'components' | 'evidence'>): boolean {
  const components = componentsNamed(seen, name)
  // Once phase 7 leads one of them to the new pair, it is that phase's to prove.
  if (isLedToNew(seen)) return true
  return isProven(seen, { kind: 'signer', generation: 'old' }, latestStart(components))
}

/** The object is named after its content: with another bundle kube-controller-manager creates another, and deletes this one. */
function bundlesByName(seen: Seen<'published' | 'pods'>, target: Target): readonly Refusal[] {
  return seen.pods
    .filter(
      (pod) => pod.trustBundle?.name !== undefined && !isWaived(pod, target) && !hasLostBundle(seen, pod),
    )
    .map(({ id, trustBundle }) => ({
      what: `pod ${id} mounts ClusterTrustBundle ${JSON.stringify(trustBundle?.name)} by name`,
      why: 'kube-controller-manager deletes it in this phase, and the pod would not start again',
      next: commandLine`mount it by signerName, or accept the risk with --waive ${id}`,
    }))
}
