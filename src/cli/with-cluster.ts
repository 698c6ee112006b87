import type { Cluster } from '../cluster/cluster.ts'
import type { ClusterFlags } from './cluster-flags.ts'
import type { Context } from './context.ts'

/** Returns what `act` returns on the cluster that the flags lead to; its connections are ended then. Throws as `openClusterOf` does. */
export async function withCluster<Result>(
  context: Context,
  flags: ClusterFlags,
  act: (cluster: Cluster) => Promise<Result>,
): Promise<Result> {
  const { openClusterOf } = await import('./cluster.ts')
  const cluster = await openClusterOf(context, flags)
  try {
    return await act(cluster)
  } finally {
    cluster.close()
  }
}
