import { bindingAdvice, type KubeadmKubeconfig, type KubeadmLeaf, type OlderOrganization } from './kubeadm.ts'

/** A version of kubeadm. The patch is infinite for the latest of a minor version, as in "stable-1.35". */
export interface KubeadmVersion {
  readonly minor: number
  readonly patch: number
}

/** Returns the version of "v1.36.1", "1.36", "v1.34.2+vendor" or "stable-1.35"; undefined for text without a minor version. */
export function kubeadmVersion(text: string): KubeadmVersion | undefined {
  const [, minor, patch] =
    /^(?:v|(?:ci\/)?(?:stable|latest)-)?1\.(\d{1,3})(?:\.(\d{1,3}))?(?![\d.])/.exec(text) ?? []
  if (minor === undefined) return undefined
  return { minor: Number(minor), patch: patch === undefined ? Number.POSITIVE_INFINITY : Number(patch) }
}

/** True for a key type that kubeadm of this version refuses: ECDSA-P384 came with 1.34 (kubernetes#131677). */
export function isNewerKeyType(name: string, version: KubeadmVersion | undefined): boolean {
  return name === 'ECDSA-P384' && version !== undefined && version.minor < 34
}

/** Returns the organizations that a version of kubeadm writes into a subject: the newest kubeadm's if the version is unknown. */
export function organizationAt(
  row: KubeadmLeaf | KubeadmKubeconfig,
  version: KubeadmVersion | undefined,
): readonly string[] {
  const older =
    version && row.olderOrganizations?.find(({ droppedIn }) => isBefore(version, droppedIn))?.organization
  return older === undefined ? row.organization : [older]
}

/** Returns a notice about the ClusterRoleBinding that a certificate of this row needs if it has no O. */
export function bindingNotices(
  row: KubeadmLeaf | KubeadmKubeconfig,
  organization: readonly string[] = [],
): readonly string[] {
  if (row.kind !== 'leaf' || row.binding === undefined || organization.length > 0) return []
  return [`${row.name}: ${bindingAdvice(row.binding)}`]
}

/** True before the first version without it: the patch of its own minor version, or any minor version below the first one. */
function isBefore({ minor, patch }: KubeadmVersion, droppedIn: OlderOrganization['droppedIn']): boolean {
  const versions = droppedIn.flatMap((text) => kubeadmVersion(text) ?? [])
  const same = versions.find((one) => one.minor === minor)
  return same === undefined ? versions.every((one) => minor < one.minor) : patch < same.patch
}
