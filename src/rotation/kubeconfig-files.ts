import type { WriteFile } from './action.ts'
import type { Digest } from './certificate-record.ts'
import { isOfOldCa } from './leaves.ts'
import type { FilePicture, Seen } from './picture.ts'
import type { CaChange, Target } from './target.ts'

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
