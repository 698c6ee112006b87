import { type Alert, checkController, controllerAlerts } from '../../output/alerts.ts'
import { watchMetricRows } from '../../output/watch-metrics.ts'

interface AlertRule {
  readonly alert: string
  readonly expr: string
  readonly for: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: { readonly summary: string; readonly next: string }
}

/** Every alert, in the order of docs/metrics.md. Those about --watch do not fire without it. */
export const alerts: readonly Alert[] = [
  ...controllerAlerts,
  ...watchMetricRows.flatMap(([, { alerts: some = [] }]): readonly Alert[] => some),
]

/** Returns the group of the alert rules, as Prometheus reads it from a file. */
export function alertGroups(): readonly { readonly name: string; readonly rules: readonly AlertRule[] }[] {
  return [
    {
      name: 'kcert',
      rules: alerts.map(({ name, expr, for: pending, severity, summary, next }) => ({
        alert: name,
        expr,
        for: pending,
        labels: { severity },
        annotations: { summary, next: nextOf(next) },
      })),
    },
  ]
}

// Prometheus looks up where the controller runs and with which flags, also up to a day after it stopped. So the same rules fit every installation.
// Every pod that Prometheus scrapes can write this metric, and people paste the command: other labels than these are not used.
const info =
  "kcert_controller_info{lease_namespace=~'[a-z0-9][a-z0-9-]*',approve=~'([A-Za-z0-9_][A-Za-z0-9_.,-]*)?'}"
const ofController = (text: string, otherwise: string): string =>
  `{{ range query "topk(1, max_over_time(${info}[1d]))" }}${text}{{ else }}${otherwise}{{ end }}`
const label = (name: string): string => `{{ .Labels.${name} }}`
const place = (namespace: string): string =>
  ` -n ${namespace} --as system:serviceaccount:${namespace}:kcert-controller`
// Without --as, it would check the permissions of the person who is on call.
const checkFlags = ofController(
  [
    `{{ if .Labels.approve }} --approve ${label('approve')}{{ end }}`,
    '{{ if eq .Labels.watch "true" }} --watch{{ end }}',
    '{{ if eq .Labels.watch_secrets "true" }} --watch-secrets{{ end }}',
    place(label('lease_namespace')),
  ].join(''),
  ` --watch${place('kube-system')}`,
)

function nextOf(next: string): string {
  if (next === checkController) return `${next}${checkFlags}`
  return next.replace('NAMESPACE', ofController(label('lease_namespace'), 'kube-system'))
}

/** Returns the same rules as an object of the Prometheus operator. */
export function prometheusRuleOf(metadata: object): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata,
    spec: { groups: alertGroups() },
  }
}
