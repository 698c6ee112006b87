import type { Context } from '../../cli/context.ts'
import { tellLine } from '../../cli/tell-line.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { NodeJobs } from '../../site/node-jobs.ts'

/** Returns the Jobs with this image, which the caller closes; undefined without an image. Throws as `NodeJobs.open` does. */
export async function openNodeJobs(
  { random, stderr }: Pick<Context, 'random' | 'stderr'>,
  cluster: Cluster,
  image: string | undefined,
): Promise<NodeJobs | undefined> {
  if (image === undefined) return undefined
  const { NodeJobs } = await import('../../site/node-jobs.ts')
  return NodeJobs.open({ cluster, image, random, tell: (note) => tellLine(stderr, note) })
}
