import { labelText, metric } from './metrics-text.ts'

/** The state of `kcert controller`. Labels come from fixed sets of words, never from requests. */
export interface ControllerMetrics {
  readonly info: ControllerInfo
  readonly isLeader: boolean
  readonly leaseFailures: number
  /** Undefined without --approve. */
  readonly policy: PolicyState | undefined
  /** Why requests are pending → how many. */
  readonly pending: ReadonlyMap<string, number>
  readonly decisions: readonly Decisions[]
  readonly events: { readonly created: number; readonly failed: number }
  readonly watchFailures: number
  /** Undefined while unknown. */
  readonly missingRights: readonly Readonly<Record<'verb' | 'resource', string>>[] | undefined
  readonly residentBytes: number
}

/** How the controller was started, for the commands that alerts name. */
interface ControllerInfo {
  /** The built-in policies or the name of the policy file; empty without --approve. */
  readonly approve: string
  readonly watch: boolean
  readonly watchSecrets: boolean
  /** Of the controller and its Lease. */
  readonly namespace: string
}

interface PolicyState {
  /** False while a replaced policy file cannot be used. */
  readonly isUsable: boolean
  /** Since 1970. */
  readonly loadedSeconds: number
  readonly failures: number
}

/** Results of requests. A result that is the same as the last one for the same request is not counted again. */
export interface Decisions {
  readonly outcome: string
  readonly reason: string
  readonly count: number
}

/** Returns the metrics in Prometheus' text format. Unknown values have no sample. */
export function renderControllerMetrics(state: ControllerMetrics): string {
  const { pending, decisions, events, missingRights, policy } = state
  const { approve, watch, watchSecrets, namespace } = state.info
  const started = {
    approve,
    watch: String(watch),
    watch_secrets: String(watchSecrets),
    // Not "namespace": a scrape may set that to the one of the pod.
    lease_namespace: namespace,
  }
  return [
    metric('controller_info', 'Always 1: how the controller was started.', [[labelText(started), 1]]),
    one('leader', 'Whether this replica is the leader (1) or not (0).', Number(state.isLeader)),
    one('lease_errors_total', 'Failed attempts to read or renew the Lease.', state.leaseFailures),
    ...(policy === undefined ? [] : policyMetrics(policy)),
    metric(
      'controller_pending_requests',
      'Requests that the leader leaves pending, by the rule that is not met or the error.',
      [...pending].map(([reason, count]) => [labelText({ reason }), count]),
    ),
    metric(
      'controller_decisions_total',
      'Results of requests since the start, by outcome and reason.',
      decisions.map(({ outcome, reason, count }) => [labelText({ outcome, reason }), count]),
    ),
    metric('controller_events_total', 'Events on requests, by result.', [
      [labelText({ result: 'created' }), events.created],
      [labelText({ result: 'failed' }), events.failed],
    ]),
    one('watch_errors_total', 'Failed watches of requests.', state.watchFailures),
    metric(
      'controller_missing_permission',
      'Always 1; one for each verb and resource of a missing permission.',
      // Several objects of a resource are one series: Prometheus rejects a second one with the same labels.
      [...new Set((missingRights ?? []).map(({ verb, resource }) => labelText({ verb, resource })))].map(
        (labels) => [labels, 1],
      ),
    ),
    one('resident_memory_bytes', 'Resident memory of the process.', state.residentBytes),
  ].join('')
}

function policyMetrics({ isUsable, loadedSeconds, failures }: PolicyState): string[] {
  return [
    one(
      'policy_valid',
      'Whether the policy file can be used (1), or an earlier one is kept (0).',
      Number(isUsable),
    ),
    one('policy_loaded_timestamp_seconds', 'When the policy in use was read.', loadedSeconds),
    one('policy_errors_total', 'How often the policy file became unusable.', failures),
  ]
}

function one(name: string, help: string, value: number): string {
  return metric(`controller_${name}`, help, [['', value]])
}
