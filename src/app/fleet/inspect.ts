import type { Context } from '../../cli/context.ts'
import type { ChosenCluster } from '../../cli/flags.ts'
import type { InspectedReport } from '../../inspection/entry-reports.ts'
import type { FleetKind } from '../../output/fleet.ts'
import { renderPrometheus } from '../../output/inspection/prometheus.ts'
import { nextToExpire } from '../../output/inspection/summary.ts'
import { placeText } from '../../output/places.ts'
import { minuteOf } from '../../output/time.ts'
import { exitOf, type InspectJob, inspectTargets } from '../inspect/inspect.ts'
import type { Found } from './run.ts'

/** How `kcert fleet inspect` shows the report of a cluster. */
export const inspectionKind: FleetKind<InspectedReport> = {
  kind: 'FleetInspection',
  title: 'Certificates of all clusters',
  columns: [
    { title: 'CERTIFICATES', width: 6, cell: ({ summary }) => `${summary.certificates}` },
    { title: 'EXPIRED', width: 7, cell: ({ summary }) => `${summary.expired}` },
    { title: 'CRITICAL', width: 8, cell: ({ summary }) => `${summary.problems.critical}` },
    { title: 'WARNING', width: 7, cell: ({ summary }) => `${summary.problems.warning}` },
    {
      title: 'NEXT EXPIRY',
      width: 16,
      cell: ({ certificates }) => {
        const next = nextToExpire(certificates)
        return next === undefined ? '' : minuteOf(next.notAfter)
      },
    },
  ],
  details: ({ problems }) =>
    problems
      .filter(({ severity }) => severity !== 'info')
      .map((problem) => `${problem.severity}: ${problem.code} ${placeText(problem)}: ${problem.message}`),
  metrics: renderPrometheus,
}

/** Returns the result of `kcert inspect --cluster` for one cluster. Throws as it does. */
export async function inspectMember(
  job: Omit<InspectJob, 'targets' | 'cluster'>,
  requestTimeout: string,
  chosen: ChosenCluster,
  context: Context,
): Promise<Found<InspectedReport>> {
  const cluster = { 'request-timeout': requestTimeout, chosen }
  const inspected = await inspectTargets({ ...job, targets: [], cluster }, context)
  const [error] = inspected.unreachable
  return { report: inspected.report, error, exit: exitOf(inspected) }
}
