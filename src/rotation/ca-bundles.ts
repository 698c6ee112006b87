import type { Task } from './action.ts'
import type { Digest } from './certificate-record.ts'
import type { CaBundleSnapshot, Observed } from './snapshot.ts'
import type { CaChange } from './target.ts'
import { patch, wait } from './tasks.ts'

/** Returns the fields that contain the old CA. The rotation changes only these. */
export function bundlesWithOldCa(
  observed: Observed<'caBundles'>,
  { oldCa }: CaChange,
): readonly CaBundleSnapshot[] {
  return observed.caBundles.filter(({ trust }) => trust.includes(oldCa.digest))
}

/** Returns the steps that write this trust to a field and wait until the API server reaches the server behind it. */
export function patchingBundle(
  { id, object, field, version }: CaBundleSnapshot,
  trust: readonly Digest[],
): readonly Task[] {
  return [
    patch(object, version, { kind: 'ca-bundle', field, trust }),
    wait({ kind: 'available', bundle: id }, `${id} is available with its new caBundle`, 60_000),
  ]
}
