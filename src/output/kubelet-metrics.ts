import { metric } from './metrics-text.ts'

/** Metrics of a managed certificate. Times are in seconds since 1970. */
export interface ManagerMetrics {
  /** The label `pair`: the prefix of its files. */
  readonly pair: string
  readonly notAfterSeconds: number | undefined
  readonly nextRenewalSeconds: number | undefined
  readonly isServerHealthy: boolean
  readonly renewals: number
  readonly renewFailures: number
  readonly hookFailures: number
  /** The age of each certificate when it was replaced. */
  readonly usedSeconds: readonly number[]
}

// The kubelet's buckets: a minute, an hour, four, a day, a week, 1, 3, 6 and 12 months, 4 years.
const ages = [60, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000]

/** Returns the metrics in Prometheus' text format. Unknown values have no sample. */
export function renderManagerMetrics(metrics: ManagerMetrics): string {
  const { pair, usedSeconds, notAfterSeconds, nextRenewalSeconds, isServerHealthy } = metrics
  const labels = `{pair="${pair}"}`
  const rows: readonly (readonly [name: string, help: string, value: number | undefined])[] = [
    [
      'not_after_timestamp_seconds',
      'When the current certificate expires. No sample without a certificate.',
      notAfterSeconds,
    ],
    [
      'next_renewal_timestamp_seconds',
      'When the next certificate will be requested. No sample while a request is pending.',
      nextRenewalSeconds,
    ],
    [
      'server_healthy',
      'Whether the last response of the API server was valid (1) or not (0).',
      Number(isServerHealthy),
    ],
    ['renewals_total', 'Certificates issued since the start.', metrics.renewals],
    ['renew_errors_total', 'Failed attempts to obtain a certificate.', metrics.renewFailures],
    ['hook_errors_total', 'Commands and signals after a renewal that failed.', metrics.hookFailures],
  ]
  const age = 'kcert_certificate_manager_rotation_age_seconds'
  const buckets = [...ages, Number.POSITIVE_INFINITY].map((limit) => {
    const count = usedSeconds.filter((used) => used <= limit).length
    return `${age}_bucket{pair="${pair}",le="${limit === Number.POSITIVE_INFINITY ? '+Inf' : limit}"} ${count}\n`
  })
  const sum = usedSeconds.reduce((total, used) => total + used, 0)
  return [
    ...rows.map(([name, help, value]) =>
      metric(`certificate_manager_${name}`, help, value === undefined ? [] : [[labels, value]]),
    ),
    `# HELP ${age} How old certificates were when they were replaced.\n# TYPE ${age} histogram\n`,
    ...buckets,
    `${age}_sum${labels} ${sum}\n${age}_count${labels} ${usedSeconds.length}\n`,
  ].join('')
}
