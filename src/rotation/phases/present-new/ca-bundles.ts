import { bundlesWithOldCa, patchingBundle } from '../../ca-bundles.ts'
import { clusterPart } from '../../phase.ts'
import { withNew } from '../../target.ts'

export const caBundles = clusterPart<'caBundles'>((observed, _target, change) => {
  const bundles = bundlesWithOldCa(observed, change).filter(
    ({ trust }) => !trust.includes(change.newCa.digest),
  )
  return {
    gaps: bundles.map(({ id }) => ({ at: id, what: 'trusts only the old CA' })),
    steps: bundles.flatMap((bundle) => patchingBundle(bundle, withNew(bundle.trust, change))),
  }
})
