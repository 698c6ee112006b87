import { given } from '../errors/given.ts'
import type { Task } from './action.ts'
import { type Digest, isSignedByCa } from './certificate-record.ts'
import { isOfOldCa } from './leaves.ts'
import { type FileSnapshot, fileAt, fileKey, type Observed } from './snapshot.ts'
import type { CaChange, Target } from './target.ts'
import { rewrite } from './tasks.ts'

/** How a phase changes the CA data of a kubeconfig: `withNew`, or `withoutOld`. */
export type CaDataOf = (trust: readonly Digest[], change: CaChange) => readonly Digest[]

/**
 * Returns true when the current context belongs to a cluster with these CAs. Other files have the same format: those that an API
 * server uses for audit, authorization or tokens, and those of other clusters.
 */
export function isOfCluster(
  { certificates }: Pick<Observed<never>, 'certificates'>,
  file: FileSnapshot | undefined,
  { oldCa, newCa }: CaChange,
): boolean {
  if (file?.contains.kind !== 'kubeconfig') return false
  const { caData, client } = file.contains
  const leaf = certificates.get(client ?? '')
  return [oldCa, newCa].some((ca) => caData.includes(ca.digest) || isSignedByCa(leaf, ca))
}

/** Returns kubeconfigs in which a context other than the current one uses the old CA. kcert does not change these contexts. */
export function withOldCaInOtherContext(
  observed: Observed<'files'>,
  { oldCa }: CaChange,
  { waivers }: Target,
): readonly FileSnapshot[] {
  const isOld = (digest: Digest): boolean =>
    digest === oldCa.digest || isSignedByCa(observed.certificates.get(digest), oldCa)
  return [...observed.files.values()].filter(
    ({ node, path, contains }) =>
      contains.kind === 'kubeconfig' &&
      contains.besides?.some(isOld) === true &&
      !waivers.has(fileKey(node, path)),
  )
}

/** Returns the kubeconfigs on nodes, each with its file. */
export function kubeconfigFiles(
  observed: Observed<'kubeconfigs' | 'files'>,
): readonly { readonly id: string; readonly file: FileSnapshot | undefined }[] {
  return observed.kubeconfigs.flatMap(({ id, at }) =>
    at ? [{ id, file: fileAt(observed, at.node, at.path) }] : [],
  )
}

/** Returns the actions that write this CA data and a client certificate of the new CA to kubeconfigs on nodes. */
export function kubeconfigWrites(
  observed: Observed<'kubeconfigs' | 'files'>,
  change: CaChange,
  target: Target,
  caDataOf: CaDataOf,
): readonly Task<'write-file'>[] {
  return kubeconfigFiles(observed).flatMap(({ file }) =>
    rewritingKubeconfig(observed, file, change, target, caDataOf),
  )
}

/** Returns the action that writes this CA data and a client certificate of the new CA to a kubeconfig; empty when it has them. */
export function rewritingKubeconfig(
  observed: Observed<'files'>,
  file: FileSnapshot | undefined,
  change: CaChange,
  target: Target,
  caDataOf: CaDataOf,
): readonly Task<'write-file'>[] {
  if (file?.contains.kind !== 'kubeconfig') return []
  const { client, caData: now } = file.contains
  const caData = caDataOf(now, change)
  const isOld = isOfOldCa(observed, file, change)
  if (!isOld && caData.join() === now.join()) return []
  const reissue = isOld && client !== undefined && { reissue: client }
  const newKey = isOld && target.newKeys && ({ newKey: true, ...given({ keyType: target.keyType }) } as const)
  return [rewrite(file, { kind: 'kubeconfig', caData, ...reissue, ...newKey })]
}
