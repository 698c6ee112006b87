import { checkEnabled } from '../app/controller/approved-by.ts'
import { runController } from '../app/controller/controller.ts'
import { controllerFlags, watchIntervalFlag, watchIntervalMs } from '../app/controller/flags.ts'
import { KcertCommand } from '../cli/base-command.ts'
import { connectionOptions, openClusterOf } from '../cli/cluster.ts'
import * as Flag from '../cli/flags.ts'
import { interruptible } from '../cli/interruption.ts'
import { exitCodes } from '../errors/codes.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { logFormats, logLine } from '../output/log-line.ts'
import { parseEndpoint } from '../tls/endpoint.ts'

/** V8 needs many times the size of a page: its bytes, its text and its objects. The memory limit of the pods is 128 MiB. */
const limits = { mostPageBytes: 2 * 1024 * 1024 }

export default class Controller extends KcertCommand {
  static override summary = 'Run in a cluster: approve CSRs by a policy, and export metrics.'

  static override description =
    `Runs until SIGTERM or Ctrl-C. Several replicas may run: a Lease selects the one that acts.

With --approve, kcert approves each pending CertificateSigningRequest that the policy approves, like kcert csr approve --policy. It denies
nothing. For each request that it leaves pending, it logs the reason, counts it in the metrics and writes it to an Event.
kcert csr explain shows this Event. kcert evaluates these requests again after 5 s and then at growing intervals of up to 15 minutes.

kcert reads a policy file again when it changes. If the new file cannot be used, the earlier policy stays in use, and /readyz and the metrics say so.

With --watch, kcert reads the cluster at an interval and exports metrics: the time until each certificate expires in objects and as API
servers, kubelets and webhooks serve it, pending CSRs by reason, CA bundles, cluster-info, and the phase of a rotation. docs/metrics.md lists
them, with the alerts in deploy/prometheus. kcert reads Secrets only with --watch-secrets, and keeps no key. It reads nothing on nodes.

/healthz, /readyz and /metrics are served over HTTP on --listen. Logs go to standard error. A replica that loses the Lease exits with
code 4: the kubelet starts it again.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'stopped by a signal',
    usage: 'wrong usage, or a policy that cannot be read at the start',
    unreachable: 'the Lease was lost',
    refused: 'other users can change the policy file at the start',
  })

  static override examples = KcertCommand.examplesOf({
    "Approve kubelets' serving certificates": 'kcert controller --approve kubelet-serving',
    'Apply your own policy in a pod, with probes and metrics on all addresses':
      'kcert controller --approve /etc/kcert/policy.yaml --listen 0.0.0.0:9465 --log-format json',
    'Export metrics about all certificates, also those in Secrets':
      'kcert controller --watch --watch-secrets',
    'Keep the Lease in your own namespace': 'kcert controller --approve builtin --namespace kcert',
  })

  static override flags = {
    ...controllerFlags,
    listen: Flag.value(
      'ADDRESS',
      'serve /healthz, /readyz and /metrics here, to every client that can connect; in a pod 0.0.0.0:9465',
      { default: '127.0.0.1:9465' },
    ),
    'watch-interval': watchIntervalFlag,
    'log-format': Flag.word(logFormats, 'format of the log', { default: 'text' }),
    ...Flag.clusterFlags,
  }

  protected override async perform() {
    const { flags } = await this.parse(Controller)
    checkEnabled(flags)
    const intervalMs = watchIntervalMs(flags['watch-interval'])
    const listen = parseEndpoint(flags.listen)
    if (listen === undefined)
      throw new KcertError('KCERT_USAGE', `invalid --listen ${JSON.stringify(flags.listen)}`, {
        why: 'the form is ADDRESS:PORT',
        next: '--listen 127.0.0.1:9465',
      })
    const { context } = this
    const cluster = await openClusterOf(context, flags, limits)
    // The deadline for a renewal is 10 s.
    const leaseCluster = await openClusterOf(context, { ...flags, 'request-timeout': '4s' })
    // A call that never ends would keep its part of the scan from starting again.
    const { requestTimeoutMs } = connectionOptions(context, flags)
    const scanTimeoutMs = Math.min(requestTimeoutMs || intervalMs, intervalMs)
    const scanCluster = await openClusterOf(
      context,
      { ...flags, 'request-timeout': `${scanTimeoutMs / 1000}s` },
      limits,
    )
    using interruption = interruptible()
    const watch = flags.watch ? { intervalMs, readSecrets: flags['watch-secrets'] } : undefined
    const settings = { approve: flags.approve, watch, leaseNamespace: flags.namespace, listen }
    const log = (entry: Parameters<typeof logLine>[2]): void =>
      this.notice(logLine(flags['log-format'], context.clock(), entry))
    try {
      const clusters = { cluster, leaseCluster, scanCluster }
      await runController(settings, { ...clusters, context, log, ended: interruption.signal })
    } finally {
      for (const one of [cluster, leaseCluster, scanCluster]) one.close()
    }
    return exitCodes.done
  }
}
