/** An alert of Prometheus about the metrics of `kcert controller`. */
export interface Alert {
  readonly name: string
  /** PromQL, with the whole names of metrics. */
  readonly expr: string
  readonly for: string
  readonly severity: 'warning' | 'critical'
  /** What is wrong, with labels as Prometheus' templates write them. */
  readonly summary: string
  /** The next command. src/app/controller/prometheus-rule.ts adds the flags and the namespace of the controller that runs. */
  readonly next: string
}

export const checkController = 'kcert controller check'
export const controllerLogs = 'kubectl logs -n NAMESPACE -l app.kubernetes.io/name=kcert-controller'

/** The alerts about the controller itself, whichever of its parts is enabled. */
export const controllerAlerts: readonly Alert[] = [
  {
    name: 'KcertControllerMissing',
    expr: 'absent(kcert_controller_leader == 1)',
    for: '10m',
    severity: 'critical',
    summary: 'no replica of the controller is the leader: no CSR is approved, and no metric is current',
    next: controllerLogs,
  },
  {
    name: 'KcertPermissionMissing',
    expr: 'kcert_controller_missing_permission == 1',
    for: '15m',
    severity: 'warning',
    summary: 'the controller may not {{ $labels.verb }} {{ $labels.resource }}',
    next: checkController,
  },
  {
    name: 'KcertPolicyUnusable',
    expr: 'kcert_controller_policy_valid == 0',
    for: '15m',
    severity: 'warning',
    summary: 'the policy file cannot be used, and the controller keeps the earlier policy',
    next: controllerLogs,
  },
  {
    name: 'KcertRequestsNotWatched',
    expr: 'increase(kcert_controller_watch_errors_total[30m]) > 5',
    for: '15m',
    severity: 'warning',
    summary: 'the controller cannot watch CSRs, so it approves them late or not at all',
    next: controllerLogs,
  },
  {
    name: 'KcertRequestLeftPending',
    // Without a policy for it, a CSR belongs to another approver.
    expr: 'sum by (reason) (kcert_controller_pending_requests{reason!~"new|no-policy"}) > 0',
    for: '1h',
    severity: 'warning',
    summary: 'the controller leaves {{ $value }} CSRs pending: {{ $labels.reason }}',
    next: 'kcert csr list',
  },
]
