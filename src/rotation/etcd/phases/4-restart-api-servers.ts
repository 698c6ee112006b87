import { shortList } from '../../../errors/short-list.ts'
import { shutdownDelayMs } from '../../../pki/component-flags.ts'
import type { Task } from '../../action.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { apiServers, type Observed } from '../../snapshot.ts'
import { changeOf } from '../../target.ts'
import { restart, wait } from '../../tasks.ts'
import {
  apiTrustFiles,
  type EtcdSections,
  type EtcdTrustFile,
  restartInPlace,
  trustsNewAlone,
} from '../members.ts'
import { etcdRow } from '../phase-table.ts'

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

/** With SIGTERM alone, an API server waits up to 60 s for open watches. Other requests end within this time. */
const drainMs = 5_000

/** Returns the restart of an API server. It has until the end of its shutdown delay, in which it serves, and then 5 s. */
export function restartedApi(
  observed: Observed<'components'>,
  trust: Pick<EtcdTrustFile, 'process' | 'running'>,
): readonly Task[] {
  const { process: id, running } = trust
  const api = apiServers(observed).find((one) => one.id === id)
  return [
    // systemd does not start a unit again that ended after SIGTERM, unless its Restart= says so.
    api?.runsAs === 'unit'
      ? restart(id, running, 'service')
      : restartInPlace(trust, shutdownDelayMs(running?.flags ?? {}) + drainMs),
    wait({ kind: 'healthy', process: id }, `${id} is ready again`, 120_000),
  ]
}
