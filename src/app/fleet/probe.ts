import type { Context } from '../../cli/context.ts'
import type { ChosenCluster } from '../../cli/flags.ts'
import type { FleetKind } from '../../output/fleet.ts'
import { labelText, metric } from '../../output/metrics-text.ts'
import { minuteOf } from '../../output/time.ts'
import type { ProbeReport } from '../../probe/report.ts'
import { type ProbeSection, probeSections } from '../probe/flags.ts'
import { probe } from '../probe/probe.ts'
import type { Found } from './run.ts'

const states = ['ok', 'failed', 'unreachable'] as const

/** How `kcert fleet probe` shows the report of a cluster. */
export const probeKind: FleetKind<ProbeReport> = {
  kind: 'FleetProbe',
  title: 'TLS endpoints of all clusters',
  columns: [
    { title: 'ENDPOINTS', width: 6, cell: ({ summary }) => `${summary.endpoints}` },
    { title: 'OK', width: 6, cell: ({ summary }) => `${summary.ok}` },
    { title: 'FAILED', width: 6, cell: ({ summary }) => `${summary.failed}` },
    { title: 'NOT REACHED', width: 6, cell: ({ summary }) => `${summary.unreachable}` },
    {
      title: 'NEXT EXPIRY',
      width: 16,
      cell: ({ summary: { nextExpiry } }) => (nextExpiry === undefined ? '' : minuteOf(nextExpiry)),
    },
  ],
  details: ({ endpoints, notes }) => [
    ...endpoints.flatMap(({ name, problems }) =>
      problems.map(({ code, message }) => `${name}: ${code} ${message}`),
    ),
    ...notes.map((note) => `note: ${note}`),
  ],
  metrics: ({ summary }) =>
    metric(
      'probed_endpoints',
      'How many TLS endpoints were probed, by result.',
      states.map((status) => [labelText({ status }), summary[status]]),
    ),
}

/** The flags of `kcert fleet probe` besides those of every fleet command. */
export interface FleetProbeFlags extends Readonly<Record<ProbeSection | 'all', boolean>> {
  readonly tls?: '1.2' | '1.3' | undefined
  readonly timeout: string
  readonly 'request-timeout': string
}

/** Returns the result of `kcert probe` for one cluster. Throws as it does. */
export async function probeMember(
  flags: FleetProbeFlags,
  chosen: ChosenCluster,
  context: Context,
): Promise<Found<ProbeReport>> {
  const { all, tls, timeout, 'request-timeout': requestTimeout } = flags
  const asked = probeSections.filter((section) => all || flags[section])
  const sections = new Set<ProbeSection>(asked.length === 0 ? ['api-servers'] : asked)
  const given = { inventory: undefined, ca: undefined, name: undefined, tls }
  const files = { 'kubelet-certificate-authority': undefined, 'etcd-ca': undefined }
  const client = { 'client-certificate': undefined, 'client-key': undefined, 'password-file': undefined }
  const selection = {
    'api-servers': false,
    nodes: false,
    etcd: false,
    webhooks: false,
    'all-nodes': false,
    all,
  }
  const connection = {
    timeout,
    'request-timeout': requestTimeout,
    chosen: { ...chosen, onBytes: chosen.onKept },
  }
  const job = {
    ...given,
    ...files,
    ...client,
    ...selection,
    ...connection,
    endpoints: [],
    sections,
    isAll: false,
  }
  return probe(job, context)
}
