import { shortList } from '../../../errors/short-list.ts'
import { shutdownDelayMs } from '../../../pki/component-flags.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { apiServers, fileKey } from '../../snapshot.ts'
import { changeOf } from '../../target.ts'
import { rewrite } from '../../tasks.ts'
import { restoreFiles } from '../../undo.ts'
import { apiTrustFiles, type EtcdSections, ownApiTrustFiles, staleKeys, trustsNewAlone } from '../members.ts'
import { etcdRow } from '../phase-table.ts'
import { apisBack, restartedApi, rewritten } from '../restarts.ts'

const apis: Part<EtcdSections> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  if (change === undefined) return { gaps: [], steps: [] }
  const own = ownApiTrustFiles(observed)
  const open = apiTrustFiles(observed).filter((file) => !trustsNewAlone(observed, file, change))
  const keys = staleKeys(observed, own, change)
  return {
    gaps: [
      ...open.map(({ process: at }) => ({ at, what: 'has not read the new etcd CA' })),
      ...keys.map(({ node, path }) => ({ at: fileKey(node, path), what: 'not the key of the new CA' })),
    ],
    steps: [
      ...open.flatMap((trust) => [
        ...rewritten(
          observed,
          own.filter(({ process }) => process === trust.process),
          () => [change.newCa.digest],
        ),
        ...restartedApi(observed, trust),
      ]),
      ...keys.map((file) => rewrite(file, { kind: 'ca-key', ca: 'etcd', generation: 'new' })),
    ],
  }
}

const parts = inParts(apis)

export const restartApiServers = definePhase<EtcdSections>(etcdRow('restart-api-servers'), {
  sees: ['components', 'files', 'etcdMembers'],
  ...parts,

  refusals(observed, target) {
    if (apiServers(observed).length > 1 || target.acceptsOutage) return []
    if ([...parts.gaps(observed, target)].length === 0) return []
    return [
      {
        what: 'the only API server must be restarted',
        why: 'it reads --etcd-cafile only at startup; the cluster has no API for about 15 s',
        next: 'kcert rotate-ca --phase 4 --accept-outage',
      },
    ]
  },

  remarks(observed) {
    const open = apiServers(observed).filter(({ flags }) => shutdownDelayMs(flags) === 0)
    const names = shortList(open.map(({ id }) => id))
    const what = 'requests that are in flight when an API server stops may fail (up to 3 on the lab)'
    return open.length === 0 ? [] : [`no --shutdown-delay-duration: ${names}; ${what}`]
  },

  /** Their own files. Beside a member, the rollback of phase 3 restarts them, once the file of the member has the old CA again. */
  undo: (copies, now) => [...restoreFiles(copies, now), ...apisBack(copies, now)],
})
