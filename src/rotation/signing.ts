import type { FlagChanges } from '../pki/component-flags.ts'
import type { Task } from './action.ts'
import { folderOn, materialPaths } from './material.ts'
import { type DesiredProcess, differences } from './restart.ts'
import type { ComponentSnapshot, KubeadmSnapshot, Observed } from './snapshot.ts'
import { changeOf, type Target } from './target.ts'
import { patch } from './tasks.ts'

// The files of a controller-manager during the rotation: a bundle to publish, and one pair to sign with. A second certificate in
// the signing file stops signing at once and stops the process at its next start, so bundle and pair are separate files.

export type Generation = 'old' | 'new'

/** Returns what a controller-manager must run with: it publishes both CAs and signs with the pair of this generation. */
export function wantedOfControllerManager(
  observed: Observed<'components'>,
  target: Target,
  component: ComponentSnapshot,
  generation: Generation,
): DesiredProcess & Required<Pick<DesiredProcess, 'flags' | 'files'>> {
  if (changeOf(target, 'cluster') === undefined) return { flags: {}, files: [] }
  const paths = materialPaths(folderOn(observed, component.node), 'cluster')
  const flags = {
    'root-ca-file': paths.bundle,
    'cluster-signing-cert-file': generation === 'old' ? paths.oldCertificate : paths.newCertificate,
    'cluster-signing-key-file': generation === 'old' ? paths.oldKey : paths.newKey,
  }
  return { flags, files: [paths.bundle] }
}

/** Returns which of the rotation's pairs a controller-manager signs with; undefined when it still uses its own file. */
export function signingGeneration(
  observed: Observed<'components'>,
  component: ComponentSnapshot,
): Generation | undefined {
  const paths = materialPaths(folderOn(observed, component.node), 'cluster')
  const path = component.flags['cluster-signing-cert-file']
  if (path === paths.newCertificate) return 'new'
  return path === paths.oldCertificate ? 'old' : undefined
}

/**
 * Returns the patch that writes temporary flags to kubeadm's ClusterConfiguration too. Otherwise `kubeadm upgrade` in the middle
 * of a rotation would overwrite them. Empty when they are already there, or without kubeadm.
 */
export function extraArgs({ kubeadm }: Observed<'kubeadm'>, flags?: FlagChanges): readonly Task[] {
  if (kubeadm === undefined) return []
  const missing = differences(kubeadm.extraArgs.controllerManager ?? {}, flags)
  if (Object.keys(missing).length === 0) return []
  const change = { kind: 'extra-args', component: 'controllerManager', flags: missing } as const
  return [patch(kubeadmConfig, kubeadm.version, change)]
}

export const kubeadmConfig = { kind: 'ConfigMap', namespace: 'kube-system', name: 'kubeadm-config' }

/**
 * Returns the patch that writes the type of the new keys to kubeadm's ClusterConfiguration. Otherwise `kubeadm certs renew` and
 * `kubeadm join` would create keys of the old type.
 */
export function encryptionAlgorithm(
  { kubeadm }: Observed<'kubeadm'>,
  { keyType }: Pick<Target, 'keyType'>,
): readonly Task[] {
  if (kubeadm === undefined || keyType === undefined) return []
  if (keyType === algorithmIn(kubeadm) || keyType === kubeadm.noAlgorithm?.creates) return []
  return [patch(kubeadmConfig, kubeadm.version, { kind: 'encryption-algorithm', keyType })]
}

/** Returns the type of the keys that kubeadm creates. */
export function algorithmIn({ encryptionAlgorithm = 'RSA-2048' }: KubeadmSnapshot): string {
  return encryptionAlgorithm
}
