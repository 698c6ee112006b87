import type { WriteFile } from './action.ts'
import { type Digest, isSignedByCa } from './certificate-record.ts'
import { isOfOldCa } from './leaves.ts'
import { type FilePicture, fileKey, type Seen } from './picture.ts'
import type { CaChange, Target } from './target.ts'

/**
 * True when the current context is one of a cluster of these CAs. Beside them lie others, of the same form: what an API server calls
 * for audit, authorization or tokens, and of other clusters.
 */
export function isOfCluster(
  { certificates }: Pick<Seen<never>, 'certificates'>,
  file: FilePicture | undefined,
  { oldCa, newCa }: CaChange,
): boolean {
  if (file?.holds.kind !== 'kubeconfig') return false
  const { caData, client } = file.holds
  const leaf = certificates.get(client ?? '')
  return [oldCa, newCa].some((ca) => caData.includes(ca.digest) || isSignedByCa(leaf, ca))
}

/** Returns kubeconfigs of which another context than the current one goes by the old CA: those are not changed by kcert. */
export function withOldBesides(
  seen: Seen<'files'>,
  { oldCa }: CaChange,
  { waivers }: Target,
): readonly FilePicture[] {
  const isOld = (digest: Digest): boolean =>
    digest === oldCa.digest || isSignedByCa(seen.certificates.get(digest), oldCa)
  return [...seen.files.values()].filter(
    ({ node, path, holds }) =>
      holds.kind === 'kubeconfig' && holds.besides?.some(isOld) === true && !waivers.has(fileKey(node, path)),
  )
}

/** Returns the writing that gives a kubeconfig this CA data and a client certificate of the new CA; nothing when it has them. */
export function rewritingKubeconfig(
  seen: Seen<'files'>,
  phase: number,
  file: FilePicture | undefined,
  change: CaChange,
  target: Target,
  caDataOf: (trust: readonly Digest[], change: CaChange) => readonly Digest[],
): readonly WriteFile[] {
  if (file?.holds.kind !== 'kubeconfig') return []
  const { node, path, digest, mode, holds } = file
  const caData = caDataOf(holds.caData, change)
  const isOld = isOfOldCa(seen, file, change)
  if (!isOld && caData.join() === holds.caData.join()) return []
  const reissue = isOld && holds.client !== undefined ? { reissue: holds.client } : {}
  const newKey = isOld && target.newKeys ? ({ newKey: true } as const) : {}
  const content = { kind: 'kubeconfig', caData, ...reissue, ...newKey } as const
  return [{ kind: 'write-file', phase, node, path, replaces: digest, content, mode }]
}
