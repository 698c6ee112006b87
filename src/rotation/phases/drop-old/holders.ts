import { clusterInfoPlace, publishing } from '../../cluster-info.ts'
import { kubeconfigWrites } from '../../kubeconfig-files.ts'
import { clusterPart } from '../../phase.ts'
import { fileKey } from '../../snapshot.ts'
import { withoutOld } from '../../target.ts'

/** cluster-info and kubeconfigs. The next part restarts the processes that read them. */
export const holders = clusterPart((observed, target, change) => {
  const trust = observed.clusterInfo?.trust
  const writes = kubeconfigWrites(observed, change, target, withoutOld)
  const places = writes.map(({ node, path }) => fileKey(node, path))
  const isOldInInfo = trust?.includes(change.oldCa.digest)
  return {
    gaps: [...(isOldInInfo ? [clusterInfoPlace] : []), ...places].map((at) => ({
      at,
      what: 'contains the old CA',
    })),
    steps: [...(trust ? publishing(observed, withoutOld(trust, change)) : []), ...writes],
  }
})
