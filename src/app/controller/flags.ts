import * as Flag from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { KcertError } from '../../errors/kcert-error.ts'

/** The flags of every command of the controller. */
export const controllerFlags = {
  approve: Flag.value(
    'FILE|builtin',
    'approve what this policy approves: a file (docs/policy.md), builtin, kubelet-client or kubelet-serving',
  ),
  watch: Flag.boolean('export metrics about the certificates of the cluster'),
  'watch-secrets': Flag.boolean('also read the certificates in all Secrets', { dependsOn: ['watch'] }),
  namespace: Flag.value('NAMESPACE', 'namespace of the controller and of its Lease kcert-controller', {
    char: 'n',
    default: 'kube-system',
  }),
}

export const watchIntervalFlag = Flag.value(
  'DURATION',
  'time between two scans of --watch, a tenth more or less; from 10s to 30m',
  { default: '5m' },
)

const shortestIntervalMs = 10_000
/** The alert KcertScanMissing waits for an hour, and a timer of Node has at most 24 days. */
const longestIntervalMs = 1_800_000

/** Returns the milliseconds. Throws KCERT_USAGE. */
export function watchIntervalMs(text: string): number {
  const intervalMs = parseDuration(text, '--watch-interval')
  if (intervalMs >= shortestIntervalMs && intervalMs <= longestIntervalMs) return intervalMs
  throw new KcertError('KCERT_USAGE', `invalid --watch-interval ${text}`, {
    why: 'each scan reads the whole cluster, and the alerts expect several in an hour: the interval is from 10s to 30m',
    next: '--watch-interval 5m',
  })
}
