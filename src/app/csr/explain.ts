import type { Cluster } from '../../cluster/cluster.ts'
import { explainFactsOf } from '../../cluster/explain-facts.ts'
import { explain } from '../../csr/explain/explain.ts'
import type { Explanation } from '../../csr/explain/report.ts'
import { readSituation } from '../../csr/explain/situation.ts'
import { decidedBy } from '../../csr/managers.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'

/** Returns why the named request is in its current state; undefined if it does not exist. */
export async function explainRequest(
  cluster: Cluster,
  name: string,
  now: Date,
): Promise<Explanation | undefined> {
  const object = await cluster.requests.get(name)
  if (object === undefined) return undefined
  const request = signingRequestOfObject(object)
  return explain(await readSituation(request, decidedBy(object), explainFactsOf(cluster), now))
}
