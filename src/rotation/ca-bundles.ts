import type { Action } from './action.ts'
import type { Digest } from './certificate-record.ts'
import type { CaBundlePicture, Seen } from './picture.ts'
import type { CaChange } from './target.ts'

/** Returns the fields that hold the old CA: only these are the rotation's business. */
export function bundlesWithOldCa(seen: Seen<'caBundles'>, { oldCa }: CaChange): readonly CaBundlePicture[] {
  return seen.caBundles.filter(({ trust }) => trust.includes(oldCa.digest))
}

/** Returns the steps that give a field this trust and wait until the API server reaches the server behind it. */
export function patchingBundle(
  phase: number,
  bundle: CaBundlePicture,
  trust: readonly Digest[],
): readonly Action[] {
  const { id, object, field, version } = bundle
  return [
    { kind: 'patch-object', phase, object, version, change: { kind: 'ca-bundle', field, trust } },
    {
      kind: 'wait',
      phase,
      until: { kind: 'available', bundle: id },
      because: `${id} is available by its new caBundle`,
      deadlineMs: 60_000,
    },
  ]
}
