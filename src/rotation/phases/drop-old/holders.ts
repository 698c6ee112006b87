import type { WriteFile } from '../../action.ts'
import { publishing } from '../../cluster-info.ts'
import { rewritingKubeconfig } from '../../kubeconfig-files.ts'
import { clusterPart } from '../../phase.ts'
import { fileAt, fileKey, type Picture } from '../../picture.ts'
import { type CaChange, type Target, withoutOld } from '../../target.ts'

/** cluster-info and kubeconfigs; processes that read them follow in the next part. */
export const holders = clusterPart((seen, target, change) => {
  const info = seen.clusterInfo
  const writes = kubeconfigWrites(seen, change, target)
  const isOldInInfo = info?.trust.includes(change.oldCa.digest) === true
  return {
    gaps: [
      ...(isOldInInfo ? [{ at: 'ConfigMap kube-public/cluster-info', what: 'holds the old CA' }] : []),
      ...writes.map(({ node, path }) => ({ at: fileKey(node, path), what: 'holds the old CA' })),
    ],
    steps: [...(info === undefined ? [] : publishing(seen, 12, withoutOld(info.trust, change))), ...writes],
  }
})

export function kubeconfigWrites(seen: Picture, change: CaChange, target: Target): readonly WriteFile[] {
  return seen.kubeconfigs.flatMap(({ at }) =>
    at === undefined
      ? []
      : rewritingKubeconfig(seen, 12, fileAt(seen, at.node, at.path), change, target, withoutOld),
  )
}
