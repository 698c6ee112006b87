import type { Action, ProbeSubject } from '../../action.ts'
import { bundlesWithOldCa, patchingBundle } from '../../ca-bundles.ts'
import { type CertificateRecord, isSignedByCa } from '../../certificate-record.ts'
import { handshakeSubject } from '../../handshake-errors.ts'
import { leafFile, leafIn } from '../../leaves.ts'
import { clusterPart } from '../../phase.ts'
import { type ComponentPicture, certificatesIn, type FilePicture } from '../../picture.ts'
import { isProven, probe } from '../../proof.ts'
import { componentsNamed } from '../../restart.ts'
import { type CaChange, withoutOld } from '../../target.ts'

/** The first API server without the bridge certificate is watched for --soak, and whatever else is watched here for this long. */
export const shortSoakMs = 5_000

/** caBundles, and the bridge behind API servers' leaves. */
export const servers = clusterPart((seen, target, change) => {
  const bundles = bundlesWithOldCa(seen, change)
  const apis = componentsNamed(seen, 'kube-apiserver').flatMap((api, index) => {
    const file = leafFile(seen, api, 'serving')
    const leaf = leafIn(seen, file)
    if (file === undefined || leaf === undefined) return []
    const isBridged = certificatesIn(file).some((digest) =>
      isSignedByCa(seen.certificates.get(digest), change.oldCa),
    )
    const isDropped = seen.copies.some(
      ({ phase, node, of }) => phase === 12 && node === file.node && 'path' in of && of.path === file.path,
    )
    if (!isBridged && !isDropped) return []
    // In this order: kcert's own connection with the old CA alone would be one of the errors that are watched.
    const both: readonly ProbeSubject[] = [
      handshakeSubject(seen, target, api.id, index === 0 ? target.soakMs : shortSoakMs),
      { kind: 'old-trust', at: api.id, expects: 'refused' },
    ]
    const subjects = both.filter((subject) => isBridged || !isProven(seen, subject, file.changedAtMs))
    return subjects.length === 0 ? [] : [{ api, file, leaf, isBridged, subjects }]
  })
  return {
    gaps: [
      ...bundles.map(({ id }) => ({ at: id, what: 'holds the old CA' })),
      ...apis.map(({ api, isBridged }) => ({
        at: api.id,
        what: isBridged
          ? 'serves the bridge certificate'
          : 'not watched since the bridge certificate was removed',
      })),
    ],
    steps: [
      ...bundles.flatMap((bundle) => patchingBundle(12, bundle, withoutOld(bundle.trust, change))),
      // A client that trusts the old CA alone fails now for the first time: better at one API server than at all of them.
      ...apis.flatMap(({ api, file, leaf, isBridged, subjects }): Action[] => [
        ...(isBridged ? servingAlone(api, file, leaf, change) : []),
        ...subjects.map((subject) => probe(12, subject, target.soakMs + 60_000)),
      ]),
    ],
  }
})

/** An API server's leaf without the bridge certificate, until it is served so. */
function servingAlone(
  api: ComponentPicture,
  { node, path, digest, mode }: FilePicture,
  leaf: CertificateRecord,
  change: CaChange,
): readonly Action[] {
  const content = { kind: 'certificates', certificates: [leaf.digest] } as const
  return [
    { kind: 'write-file', phase: 12, node, path, replaces: digest, content, mode },
    {
      kind: 'wait',
      phase: 12,
      until: { kind: 'serves', presenter: api.id, signedBy: change.newCa.spki, bridged: false },
      because: `${api.id} shows its leaf alone`,
      deadlineMs: 60_000,
    },
  ]
}
