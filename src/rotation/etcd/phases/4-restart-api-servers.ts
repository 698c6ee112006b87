import { shortList } from '../../../errors/short-list.ts'
import { shutdownDelayMs } from '../../../pki/component-flags.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { apiServers } from '../../snapshot.ts'
import { changeOf } from '../../target.ts'
import { apiTrustFiles, type EtcdSections, trustsNewAlone } from '../members.ts'
import { etcdRow } from '../phase-table.ts'
import { restartedApi } from '../restarts.ts'

const apis: Part<EtcdSections> = (observed, target) => {
  const change = changeOf(target, 'etcd')
  if (change === undefined) return { gaps: [], steps: [] }
  const open = apiTrustFiles(observed).filter((file) => !trustsNewAlone(observed, file, change))
  return {
    gaps: open.map(({ process: at }) => ({ at, what: 'has not read the new etcd CA' })),
    steps: open.flatMap((trust) => restartedApi(observed, trust)),
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

  // The rollback of phase 3 restarts them, once their file has the old CA again.
  undo: () => [],
})
