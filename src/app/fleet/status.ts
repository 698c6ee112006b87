import { withCluster } from '../../cli/cluster.ts'
import type { Context } from '../../cli/context.ts'
import type { ChosenCluster } from '../../cli/flags.ts'
import { exitCodes } from '../../errors/codes.ts'
import type { FleetKind } from '../../output/fleet.ts'
import { labelText, metric } from '../../output/metrics-text.ts'
import { minuteOf } from '../../output/time.ts'
import { watchMetrics } from '../../output/watch-metrics.ts'
import {
  type MirroredRotation,
  mirroredRotations,
  rotationSamples,
  rotations,
} from '../../rotation-io/mirrored-rotations.ts'
import type { Found } from './run.ts'

/** The rotations of a cluster that have a journal there. */
interface ClusterRotations {
  readonly rotations: readonly MirroredRotation[]
}

const titles = { ca: 'CA', 'etcd-ca': 'ETCD CA', 'service-account-key': 'SA KEY' } as const

/** How `kcert fleet status` shows the rotations of a cluster. */
export const rotationKind: FleetKind<ClusterRotations> = {
  kind: 'FleetRotation',
  title: 'Rotations of all clusters',
  columns: Object.entries(titles).map(([name, title]) => ({
    title,
    width: 'phase 12 rolled-back'.length,
    cell: ({ rotations: all }) => cellOf(all.find(({ rotation }) => rotation === name)),
  })),
  details: ({ rotations: all }) =>
    all.flatMap((one) => {
      const { rotation, state, writtenAt } = one
      const next = `${rotations[rotation].command} status${rotation === 'etcd-ca' ? ' --ca etcd' : ''}`
      if (state === 'unknown')
        return [`${rotation}: the journal in the cluster is incomplete; run ${next} with the inventory`]
      if (state !== 'in-progress') return []
      const time = writtenAt === undefined ? 'at an unknown time' : `at ${minuteOf(writtenAt)} UTC`
      return [`${rotation}: in progress, ${cellOf(one)}; last journal entry ${time}`]
    }),
  metrics: ({ rotations: all }) => all.map(metricsOf).join(''),
}

function cellOf(one: MirroredRotation | undefined): string {
  if (one === undefined) return 'none'
  const { state, phase } = one
  return state === 'in-progress' && phase !== undefined ? `phase ${phase.number} ${phase.event}` : state
}

function metricsOf(one: MirroredRotation): string {
  return rotationSamples(one)
    .map(([name, labels, value]) => metric(name, watchMetrics[name].help, [[labelText(labels), value]]))
    .join('')
}

/** Returns the rotations of one cluster, from the copies of their journals there. Throws as `mirroredRotations` does. */
export async function statusOfMember(
  requestTimeout: string,
  chosen: ChosenCluster,
  context: Context,
): Promise<Found<ClusterRotations>> {
  const flags = { 'request-timeout': requestTimeout, chosen: { ...chosen, onBytes: chosen.onKept } }
  const found = await withCluster(context, flags, ({ objects }) => mirroredRotations(objects))
  const isUnknown = found.some(({ state }) => state === 'unknown')
  return { report: { rotations: found }, exit: isUnknown ? exitCodes.no : exitCodes.done }
}
