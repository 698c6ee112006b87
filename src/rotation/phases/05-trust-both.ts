import { isSignedByCa } from '../certificate-record.ts'
import { clusterInfoObject } from '../cluster-info.ts'
import { leafIn } from '../leaves.ts'
import { definePhase, inParts } from '../phase.ts'
import { apiServers, fileKey, type Observed } from '../snapshot.ts'
import { changeOf, type Target } from '../target.ts'
import { probe } from '../tasks.ts'
import { kubeletCaFileOf } from '../trust-files.ts'
import { restoreObjects } from '../undo.ts'
import { backToFiles, changedFiles } from '../undo-pass.ts'
import { awaitExtension, forgetting, publishes } from '../verifying.ts'
import { joiners } from './trust-both/joiners.ts'
import { proofs, type Sees, trustHolderFiles, trustHolders } from './trust-both/trust-holders.ts'

const parts = inParts<Sees | 'clusterInfo'>(
  // API servers and kubelets add the new CA: one control-plane node after another, then the workers.
  trustHolders,
  // cluster-info gets the new CA.
  joiners,
  // Every verifier has accepted clients of both CAs since then.
  proofs,
)

export const trustBoth = definePhase('trust-both', {
  sees: [
    'nodes',
    'components',
    'kubelets',
    'files',
    'leases',
    'extensionAuthentication',
    'clusterInfo',
    'evidence',
  ],

  ...parts,

  refusals(observed, target) {
    const [api, ...others] = apiServers(observed)
    const restarts = api !== undefined && kubeletCaFileOf(observed, api, target) !== undefined
    if (!restarts || others.length > 0 || target.acceptsOutage) return []
    if ([...parts.gaps(observed, target)].length === 0) return []
    return [
      {
        what: 'the only API server must be restarted',
        why: '--kubelet-certificate-authority is set and only read at startup; the cluster has no API for about 40 s',
        next: 'kcert rotate-ca --phase 5 --accept-outage',
      },
    ]
  },

  remarks: (observed) =>
    apiServers(observed).some(({ flags }) => flags['kubelet-certificate-authority'] !== undefined)
      ? []
      : ['--kubelet-certificate-authority: not configured, so no API server restarts'],

  undo(copies, now, target) {
    const issued = issuedMeanwhile(now, target)
    if (issued.length > 0) {
      return {
        what: `${issued.length} certificates of the new CA are in use: ${issued.slice(0, 5).join(', ')}`,
        why: 'nothing would trust them after phase 5 is rolled back; roll back phase 9 first, or accept the risk with --waive',
        next: 'kcert rotate-ca rollback --to 8',
      }
    }
    const { files, restarts } = backToFiles(copies, now, apiServers(now), 'kubelet-certificate-authority')
    const changed = changedFiles(copies)
    const written = new Set(files.map(({ node, path }) => fileKey(node, path)))
    const extension = now.extensionAuthentication
    // The undo may have stopped after it restored the files. The object that API servers published from them is then still stale.
    const news = target.changes.map(({ newCa }) => newCa.digest)
    const isStale = extension !== undefined && publishes(extension, news)
    const read = trustHolderFiles(now).filter(({ node, path, reload }) => {
      const key = fileKey(node, path)
      return reload === 'hot' && (written.has(key) || (isStale && changed.has(key)))
    })
    return [
      ...restoreObjects(copies, (_kind, name) =>
        name === clusterInfoObject.name ? now.clusterInfo?.version : undefined,
      ),
      ...files,
      ...restarts,
      // An API server that still trusts the new CA would publish it again.
      ...read.map(({ process: at, ca }) =>
        probe({ kind: 'client', at, ca, generation: 'new', expects: 'refused' }),
      ),
      ...(extension !== undefined && (files.length > 0 || isStale)
        ? [forgetting(extension.version), awaitExtension(target, 'oldCa')]
        : []),
    ]
  },
})

/** Returns leaf certificates of the new CA that are in use on nodes. */
function issuedMeanwhile(now: Observed<'files'>, target: Target): readonly string[] {
  const change = changeOf(target, 'cluster')
  if (change === undefined) return []
  return [...now.files.values()]
    .filter((file) => {
      const leaf = leafIn(now, file)
      return leaf?.isCa === false && isSignedByCa(leaf, change.newCa)
    })
    .map(({ node, path }) => fileKey(node, path))
    .filter((key) => !target.waivers.has(key))
}
