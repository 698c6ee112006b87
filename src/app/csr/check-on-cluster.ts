import type { Cluster } from '../../cluster/cluster.ts'
import type { ApprovalFacts } from '../../csr/approval/facts.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { checkRequest } from '../../csr/check.ts'
import type { CheckReport } from '../../csr/check-report.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { Clock } from '../../system/clock.ts'
import { approvalFactsOf } from './approval-facts.ts'
import { noSuchRequest } from './request-names.ts'

/** Returns the check of a cluster object, with the cluster's facts unless others are given. */
export async function checkOnCluster(
  cluster: Cluster,
  name: string,
  { policies, facts, clock }: { policies: readonly Policy[]; facts: ApprovalFacts | undefined; clock: Clock },
): Promise<CheckReport> {
  const object = await cluster.requests.get(name)
  if (object === undefined) throw noSuchRequest(name)
  return checkRequest(signingRequestOfObject(object), {
    source: `csr/${name}`,
    policies,
    facts: facts ?? approvalFactsOf(cluster, clock),
  })
}
