import { type WatchAlert, watchMetricRows } from '../../output/watch-metrics.ts'

interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: { readonly summary: string; readonly next: string }
}

/** Returns the group of the alert rules of --watch for a controller in a namespace, as Prometheus reads it from a file. */
export function alertGroups(
  namespace = 'kube-system',
): readonly { readonly name: string; readonly rules: readonly AlertRule[] }[] {
  const alerts = watchMetricRows.flatMap(([, { alerts: some = [] }]): readonly WatchAlert[] => some)
  return [
    {
      name: 'kcert',
      rules: alerts.map(({ name, expr, for: pending, severity, summary, next }) => ({
        alert: name,
        expr,
        for: pending,
        labels: { severity },
        annotations: { summary, next: nextIn(namespace, next) },
      })),
    },
  ]
}

/** Returns the command for a controller in another namespace: its service account and its Lease are there. */
function nextIn(namespace: string, next: string): string {
  if (namespace === 'kube-system') return next
  return next.replace(
    /--as system:serviceaccount:kube-system:/,
    `-n ${namespace} --as system:serviceaccount:${namespace}:`,
  )
}

/** Returns the same rules as an object of the Prometheus operator. */
export function prometheusRuleOf(metadata: object, namespace: string): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata,
    spec: { groups: alertGroups(namespace) },
  }
}
