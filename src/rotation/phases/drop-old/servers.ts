import type { ProbeSubject } from '../../action.ts'
import { bundlesWithOldCa, patchingBundle } from '../../ca-bundles.ts'
import { isSignedByCa } from '../../certificate-record.ts'
import { handshakeSubject } from '../../handshake-errors.ts'
import { leafFile, leafIn } from '../../leaves.ts'
import { clusterPart } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { apiServers, certificatesIn } from '../../snapshot.ts'
import { withoutOld } from '../../target.ts'
import { probe, rewrite, wait } from '../../tasks.ts'

/** The first API server without the bridge certificate is watched for --soak. Other watches in this phase last this long. */
export const shortSoakMs = 5_000

/** caBundles, then the bridge certificate in the API servers' serving files. */
export const servers = clusterPart((observed, target, change) => {
  const bundles = bundlesWithOldCa(observed, change)
  const apis = apiServers(observed).flatMap((api, index) => {
    const { id: at } = api
    const file = leafFile(observed, api, 'serving')
    const leaf = leafIn(observed, file)
    if (file === undefined || leaf === undefined) return []
    const isBridged = certificatesIn(file).some((digest) =>
      isSignedByCa(observed.certificates.get(digest), change.oldCa),
    )
    const isDropped = observed.copies.some(
      ({ phase, node, of }) => phase === 12 && node === file.node && 'path' in of && of.path === file.path,
    )
    if (!isBridged && !isDropped) return []
    // The order matters: kcert's own connection that trusts only the old CA would count as one of the watched errors.
    const both: readonly ProbeSubject[] = [
      handshakeSubject(observed, target, at, index === 0 ? target.soakMs : shortSoakMs),
      { kind: 'old-trust', at, expects: 'refused' },
    ]
    const subjects = both.filter((subject) => isBridged || !isProven(observed, subject, file.changedAtMs))
    const until = { kind: 'serves', server: at, signedBy: change.newCa.spki, bridged: false } as const
    const alone = [
      rewrite(file, { kind: 'certificates', certificates: [leaf.digest] }),
      wait(until, `${at} serves only its leaf certificate`, 60_000),
    ]
    const what = isBridged
      ? 'serves the bridge certificate'
      : 'TLS handshake errors not watched since the bridge certificate was removed'
    const probes = subjects.map((subject) => probe(subject, target.soakMs + 60_000))
    return subjects.length === 0 ? [] : [{ at, what, steps: [...(isBridged ? alone : []), ...probes] }]
  })
  return {
    gaps: [
      ...bundles.map(({ id }) => ({ at: id, what: 'contains the old CA' })),
      ...apis.map(({ at, what }) => ({ at, what })),
    ],
    steps: [
      ...bundles.flatMap((bundle) => patchingBundle(bundle, withoutOld(bundle.trust, change))),
      // A client that trusts only the old CA fails now for the first time. It must fail at one API server first, not at all of
      // them.
      ...apis.flatMap(({ steps }) => steps),
    ],
  }
})
