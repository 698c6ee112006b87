import { alerts } from '../../src/app/controller/prometheus-rule.ts'
import { metricType } from '../../src/output/metrics-text.ts'
import { watchMetricRows } from '../../src/output/watch-metrics.ts'
import { generatedNote, table } from './page.ts'

/** Returns docs/metrics.md: the metrics of `kcert controller --watch`, and their alerts. */
export function metricsPage(): string {
  const code = (text: string): string => `\`${text}\``
  return [
    '# Metrics of kcert controller --watch',
    generatedNote('src/output/watch-metrics.ts'),
    'The leader reads the cluster every 5 minutes (`--watch-interval`), part by part. `kcert_scan_…` says for each part when it succeeded, how long it took and whether it failed. A part that fails, or whose last result is older than three intervals, has no other series until it works again. So a missing series is never a good sign.',
    table(
      ['metric', 'type', 'labels', 'meaning'],
      watchMetricRows.map(([name, { help, labels }]) => [
        code(`kcert_${name}`),
        metricType(name),
        labels.map(code).join(', '),
        help,
      ]),
    ),
    '## Who can read them',
    'The metrics contain the names of namespaces, Secrets, ConfigMaps, Services, webhooks and Nodes, the addresses and ports of servers, and expiry times. They contain no key, no certificate and no subject. `/metrics` is served over HTTP without authentication, so the NetworkPolicy of `kcert controller manifest` lets only Prometheus connect: pods with the label `app.kubernetes.io/name=prometheus` in the namespace `monitoring`, or those of `--prometheus-pods` and `--prometheus-namespace`.',
    '## Limits',
    'A part has at most 5,000 series of a metric. Of the certificates in objects of a kind, the 2,000 that expire first have a series, and of one namespace 200 (objects without a namespace have no limit of one). `kcert_scan_left_out` counts the others, and `kcert_certificates` has all of them. A label has at most 256 characters, and control characters are escaped. Each place with certificates is one series: of a chain the certificate that expires first, of a CA bundle the one that expires last. Values of more than 1 MiB and kubeconfigs of more than 128 KiB count as unreadable. Keystores are not read. The reason is looked up of at most 100 pending CSRs. Signers take turns, and for each signer its requesters. The others have the reason `not-explained`, as have CSRs of more than 16 KiB.',
    'With the NetworkPolicy of `kcert controller manifest`, a webhook on a port that `--webhook-port` does not name counts as unreachable. The controller reads nothing on nodes: of a kubelet, it knows only the certificate that it serves, and its newest CSR. A Secret belongs to a webhook if it is of type kubernetes.io/tls, in the namespace of the Service, and valid for its name. Without `--watch-secrets`, webhooks are not compared with Secrets, and the signatures of cluster-info are unknown.',
    '## Alerts',
    'deploy/prometheus/rules.yaml has these rules for Prometheus, prometheus-rule.yaml for the Prometheus operator, and deploy/grafana/dashboard.json a dashboard. They fit every installation: the next command of an alert has the flags and the namespace of the controller that runs. The alerts about `kcert_scan_…` and other metrics of `--watch` do not fire without `--watch`, and `KcertControllerMissing` fires if the controller does not run at all. The metrics `kcert_controller_…` are in [the decision about the controller](decisions/0017-controller.md#events-and-metrics).',
    table(
      ['alert', 'severity', 'for', 'expression', 'next command'],
      alerts.map((one) => [code(one.name), one.severity, one.for, code(one.expr), code(one.next)]),
    ),
  ]
    .join('\n\n')
    .concat('\n')
}
