import { type Alert, checkController } from './alerts.ts'
import { type Labels, labelText, metric } from './metrics-text.ts'

// The metrics of `kcert controller --watch`. The controller, docs/metrics.md, the alert rules and the dashboard in deploy/ all
// come from this table.

interface WatchMetric {
  /** A sentence, which is also HELP in the output. */
  readonly help: string
  readonly labels: readonly string[]
  /** The stored value is a time in milliseconds, and the metric counts down to it. */
  readonly isRemaining?: true
  readonly alerts?: readonly Alert[]
  /** A panel of the dashboard. */
  readonly panel?: { readonly title: string; readonly expr: string; readonly unit: string }
}

const place = ['kind', 'namespace', 'name', 'entry'] as const
const tenth = 'kcert_certificate_remaining_seconds < 0.1 * kcert_certificate_lifetime_seconds'
const named = '{{ $labels.kind }} {{ $labels.namespace }} {{ $labels.name }} {{ $labels.entry }}'

/** Each rotation has a status command of its own, and `next` is one command. */
const rotationStopped = (name: string, rotation: string, next: string): Alert => ({
  name,
  expr: `time() - kcert_rotation_entry_timestamp_seconds{rotation="${rotation}"} > 86400 and kcert_rotation_in_progress == 1`,
  for: '15m',
  severity: 'warning',
  summary: 'the rotation {{ $labels.rotation }} is not finished, and made no progress for a day',
  next,
})

export const watchMetrics = {
  certificate_remaining_seconds: {
    help: 'Seconds until the certificate expires, negative after that. Of a chain the one that expires first, of a CA bundle the last.',
    labels: place,
    isRemaining: true,
    alerts: [
      {
        name: 'KcertCertificateExpiresSoon',
        expr: `${tenth} and kcert_certificate_remaining_seconds > 0`,
        for: '1h',
        severity: 'warning',
        summary: `less than a tenth of the validity is left: ${named}`,
        next: 'kcert inspect --cluster',
      },
      {
        name: 'KcertCertificateExpired',
        expr: 'kcert_certificate_remaining_seconds <= 0',
        for: '5m',
        severity: 'critical',
        summary: `the certificate expired: ${named}`,
        next: 'kcert inspect --cluster',
      },
    ],
    panel: {
      title: 'Certificates that expire first',
      expr: 'bottomk(20, kcert_certificate_remaining_seconds)',
      unit: 's',
    },
  },
  certificate_lifetime_seconds: {
    help: 'Seconds from notBefore to notAfter of the same certificate.',
    labels: place,
  },
  certificates: {
    help: 'Entries with certificates that were read, also those without a series of their own.',
    labels: ['kind', 'state'],
    panel: {
      title: 'Certificates by state',
      expr: 'sum by (kind, state) (kcert_certificates)',
      unit: 'short',
    },
  },
  unreadable_objects: {
    help: 'Objects that must have a certificate, and have none that can be read.',
    labels: ['kind'],
    alerts: [
      {
        name: 'KcertUnreadableCertificate',
        expr: 'kcert_unreadable_objects > 0',
        for: '1h',
        severity: 'warning',
        summary: '{{ $value }} objects of kind {{ $labels.kind }} have no readable certificate',
        next: 'kcert inspect --cluster',
      },
    ],
  },
  served_endpoints: {
    help: 'Servers that were probed, by result: ok, failed or unreachable.',
    labels: ['kind', 'status'],
    panel: {
      title: 'Servers by result',
      expr: 'sum by (kind, status) (kcert_served_endpoints)',
      unit: 'short',
    },
  },
  served_problem: {
    help: 'Always 1; one for each problem of a server, with the code of kcert probe.',
    labels: ['kind', 'name', 'entry', 'code'],
    alerts: [
      {
        name: 'KcertOldCertificateServed',
        expr: 'kcert_served_problem{code=~"OLD_CERTIFICATE_SERVED|OTHER_CERTIFICATE_SERVED"} == 1',
        for: '30m',
        severity: 'warning',
        summary:
          '{{ $labels.name }} does not serve the certificate that was issued to it last: {{ $labels.code }}',
        next: 'kcert probe --all',
      },
      {
        name: 'KcertServerUnreachable',
        expr: 'kcert_served_problem{code="UNREACHABLE"} == 1',
        for: '30m',
        severity: 'warning',
        summary: '{{ $labels.name }} ({{ $labels.entry }}) does not respond to the controller',
        next: 'kcert probe --all',
      },
      {
        name: 'KcertServedCertificateRejected',
        expr: 'kcert_served_problem{code!~"OLD_CERTIFICATE_SERVED|OTHER_CERTIFICATE_SERVED|UNREACHABLE"} == 1',
        for: '15m',
        severity: 'critical',
        summary: 'clients reject the certificate of {{ $labels.name }}: {{ $labels.code }}',
        next: 'kcert probe --all',
      },
    ],
  },
  kubelet_certificates: {
    help: 'Serving certificates of kubelets, by the state of their renewal as in kcert kubelet forecast.',
    labels: ['state'],
    panel: {
      title: 'Serving certificates of kubelets',
      expr: 'sum by (state) (kcert_kubelet_certificates)',
      unit: 'short',
    },
  },
  kubelet_late: {
    help: 'Always 1; one for each kubelet whose serving certificate is overdue or expired.',
    labels: ['node', 'state'],
    alerts: [
      {
        name: 'KcertKubeletNotRenewed',
        expr: 'kcert_kubelet_late == 1',
        for: '15m',
        severity: 'critical',
        summary: 'the serving certificate of the kubelet on {{ $labels.node }} is {{ $labels.state }}',
        next: 'kcert kubelet forecast',
      },
    ],
  },
  pending_requests: {
    help: 'Pending CertificateSigningRequests, by the first cause of kcert csr explain.',
    labels: ['signer', 'reason'],
    panel: {
      title: 'Pending CSRs by reason',
      expr: 'sum by (signer, reason) (kcert_pending_requests)',
      unit: 'short',
    },
  },
  pending_oldest_seconds: {
    help: 'Age of the oldest pending request when it was read.',
    labels: ['signer'],
    alerts: [
      {
        name: 'KcertRequestPending',
        expr: 'kcert_pending_oldest_seconds > 3600',
        for: '15m',
        severity: 'warning',
        summary: 'a CSR for {{ $labels.signer }} is pending for {{ $value | humanizeDuration }}',
        next: 'kcert csr list',
      },
    ],
  },
  ca_bundles: {
    help: 'ConfigMaps kube-root-ca.crt, by whether they verify every API server that responds: verified or rejected.',
    labels: ['state'],
    panel: { title: 'CA bundles of namespaces', expr: 'sum by (state) (kcert_ca_bundles)', unit: 'short' },
  },
  ca_bundle_rejected: {
    help: 'Always 1; one for each namespace whose kube-root-ca.crt lacks the CA of an API server.',
    labels: ['namespace'],
    alerts: [
      {
        name: 'KcertCaBundleLacksClusterCa',
        expr: 'kcert_ca_bundle_rejected == 1',
        for: '15m',
        severity: 'critical',
        summary:
          'pods in {{ $labels.namespace }} do not trust the API servers: kube-root-ca.crt lacks their CA',
        next: 'kcert inspect --cluster',
      },
    ],
  },
  cluster_info_checks: {
    help: 'Checks of kube-public/cluster-info, by outcome, as in kcert cluster-info verify.',
    labels: ['check', 'outcome'],
    alerts: [
      {
        name: 'KcertClusterInfoInvalid',
        expr: 'kcert_cluster_info_checks{outcome="failed"} > 0',
        for: '15m',
        severity: 'warning',
        summary: 'nodes may not be able to join: the check {{ $labels.check }} of cluster-info failed',
        next: 'kcert cluster-info verify',
      },
    ],
    panel: {
      title: 'Checks of cluster-info',
      expr: 'sum by (check, outcome) (kcert_cluster_info_checks)',
      unit: 'short',
    },
  },
  rotation_phase: {
    help: 'Number of the last phase in the mirrored journal of a rotation, by its last event.',
    labels: ['rotation', 'event'],
    panel: {
      title: 'Rotation phase',
      expr: 'max by (rotation, event) (kcert_rotation_phase)',
      unit: 'short',
    },
  },
  rotation_in_progress: {
    help: 'Whether a rotation began and is not finished (1) or not (0).',
    labels: ['rotation'],
  },
  rotation_entry_timestamp_seconds: {
    help: 'When the last line of the journal was written.',
    labels: ['rotation'],
    alerts: [
      rotationStopped('KcertRotationStopped', 'ca', 'kcert rotate-ca status'),
      rotationStopped('KcertEtcdRotationStopped', 'etcd-ca', 'kcert rotate-ca status --ca etcd'),
      rotationStopped('KcertSaKeyRotationStopped', 'service-account-key', 'kcert rotate-sa-key status'),
    ],
  },
  scan_last_success_timestamp_seconds: {
    help: 'When a part of the scan last succeeded.',
    labels: ['part'],
    alerts: [
      {
        name: 'KcertScanMissing',
        // A controller without --watch has no scan.
        expr: '(absent(kcert_scan_last_success_timestamp_seconds) and on () kcert_controller_info{watch="true"}) or time() - max by (part) (kcert_scan_last_success_timestamp_seconds) > 3600',
        for: '15m',
        severity: 'critical',
        summary: 'the controller did not read {{ or $labels.part "any part" }} for an hour',
        next: checkController,
      },
    ],
  },
  scan_duration_seconds: { help: 'Duration of the last attempt.', labels: ['part'] },
  scan_failed: {
    help: 'Whether the last attempt failed (1) or not (0). A part that failed has no other series.',
    labels: ['part'],
    alerts: [
      {
        name: 'KcertScanFailed',
        expr: 'kcert_scan_failed == 1',
        for: '15m',
        severity: 'warning',
        summary: 'the controller cannot read {{ $labels.part }}',
        next: checkController,
      },
    ],
    panel: { title: 'Parts of the scan that fail', expr: 'kcert_scan_failed', unit: 'short' },
  },
  scan_failures_total: { help: 'Failed attempts since the start.', labels: ['part'] },
  scan_left_out: {
    help: 'Series that were left out of the last scan, because there are too many or the journal of a rotation is incomplete.',
    labels: ['part'],
    alerts: [
      {
        name: 'KcertScanLeftOut',
        expr: 'kcert_scan_left_out > 0',
        for: '1h',
        severity: 'warning',
        summary: '{{ $value }} series of {{ $labels.part }} are left out',
        next: 'kcert inspect --cluster',
      },
    ],
  },
} as const satisfies Readonly<Record<string, WatchMetric>>

export type WatchMetricName = keyof typeof watchMetrics

/** The labels of a metric, by its name. */
export type WatchLabels<Name extends WatchMetricName> = Readonly<
  Record<(typeof watchMetrics)[Name]['labels'][number], string>
>

export const watchMetricRows = Object.entries(watchMetrics) as readonly (readonly [
  WatchMetricName,
  WatchMetric,
])[]

const longestLabel = 256

/** Returns the labels in the order of the table. */
export function watchLabelText(name: WatchMetricName, labels: Labels): string {
  const row: WatchMetric = watchMetrics[name]
  return labelText(
    Object.fromEntries(row.labels.map((label) => [label, (labels[label] ?? '').slice(0, longestLabel)])),
  )
}

/** The samples of metrics: the text of the labels → the value. */
export type WatchSamples = ReadonlyMap<WatchMetricName, ReadonlyMap<string, number>>

/** Returns the samples in Prometheus' text format. A metric without a sample is left out. */
export function renderWatchMetrics(parts: readonly WatchSamples[], nowMs: number): string {
  return watchMetricRows
    .map(([name, { help, isRemaining }]) => {
      const samples = new Map(parts.flatMap((part) => [...(part.get(name) ?? [])]))
      if (samples.size === 0) return ''
      if (!isRemaining) return metric(name, help, samples)
      return metric(
        name,
        help,
        [...samples].map(([labels, endMs]) => [labels, Math.floor((endMs - nowMs) / 1000)]),
      )
    })
    .join('')
}
