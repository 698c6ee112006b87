import type { Cluster } from '../../cluster/cluster.ts'
import type { ApprovalFacts } from '../../csr/approval/facts.ts'
import type { Policy } from '../../csr/approval/policy.ts'
import { checkRequest } from '../../csr/check.ts'
import type { CheckReport } from '../../csr/check-report.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { Clock } from '../../system/clock.ts'
import { approvalFactsOf } from './approval-facts.ts'
import { noSuchRequest } from './request-names.ts'

/** Returns the check of an object of the cluster, with the facts that the cluster gives, unless others are to be taken. */
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
