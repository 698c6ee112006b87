import pMap from 'p-map'
import { type Cluster, openCluster } from '../../src/cluster/cluster.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'

/** Returns the cluster of a kubeconfig, for queries besides the measured commands. */
export function openBenchCluster(kubeconfig: string): Promise<Cluster> {
  return openCluster({
    files: [kubeconfig],
    filesMustExist: true,
    requestTimeoutMs: 30_000,
    surroundings: { env: {}, stdinIsTerminal: false },
    clock: systemClock,
    random: systemRandom,
  })
}

export async function removeRequests(cluster: Cluster, names: readonly string[]): Promise<void> {
  const resource = { group: 'certificates.k8s.io', version: 'v1', resource: 'certificatesigningrequests' }
  await pMap(names, (name) => cluster.objects.delete({ ...resource, name }), { concurrency: 16 })
}
