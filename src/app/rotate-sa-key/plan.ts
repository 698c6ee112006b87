import { openClusterOf } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import { jobsImage } from '../../rotation/inventory.ts'
import { serviceAccountKeysOf } from '../../rotation/service-account-key/observation.ts'
import type { PlannedKeys } from '../../rotation/service-account-key/observed.ts'
import { keyRotation } from '../../rotation/service-account-key/phase-table.ts'
import { verifierSections } from '../../rotation/service-account-key/phases/3-await-verifiers.ts'
import { type RotationReason, serviceAccountKeyPlan } from '../../rotation/service-account-key/plan.ts'
import type { ServiceAccountKeyPlan } from '../../rotation/service-account-key/report.ts'
import { SiteObserver } from '../../rotation-io/observer.ts'
import { kubeadmConfiguration } from '../../rotation-io/published.ts'
import { reading } from '../../site/service-account-keys.ts'
import { openSite, type Site } from '../../site/site.ts'
import { inventoryIn } from '../rotate-ca/node-inventory.ts'
import { openNodeJobs } from '../rotate-ca/node-jobs.ts'
import type { RotationPlaceFlags } from '../rotate-ca/site.ts'

/** Returns the plan for the cluster of an inventory. Writes nothing. Throws errors of inventory and cluster. */
export async function planServiceAccountKey(
  context: Context,
  flags: Omit<RotationPlaceFlags, 'journal'>,
  reason: RotationReason,
): Promise<ServiceAccountKeyPlan> {
  const inventory = await inventoryIn(flags.inventory, context)
  await using opening = new AsyncDisposableStack()
  const cluster = await openClusterOf(context, flags)
  opening.defer(() => cluster.close())
  const { objects, through } = cluster
  const jobs = await openNodeJobs(context, cluster, jobsImage(inventory))
  opening.defer(() => jobs?.close())
  const site = openSite({ inventory, objects, clock: context.clock, through, jobs })
  opening.defer(() => site.close())
  return serviceAccountKeyPlan(await observeServiceAccountKeys(site), reason)
}

/** Returns the keys and tokens of a cluster, as the phases observe them. Throws if the cluster does not answer. */
export async function observeServiceAccountKeys(site: Site): Promise<PlannedKeys> {
  const [observed, hasUploadedCerts] = await Promise.all([
    new SiteObserver(site, keyRotation).observe(verifierSections),
    reading(async () => (await kubeadmConfiguration(site))?.certsSecret !== undefined),
  ])
  return { ...serviceAccountKeysOf(observed), hasUploadedCerts }
}
