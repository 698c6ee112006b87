import { KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { exitCodes } from '../../errors/codes.ts'
import { argumentVector, commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { forecastOf } from '../../kubelet/forecast.ts'
import { renderForecast } from '../../output/kubelet-forecast.ts'

export default class KubeletForecast extends KcertCommand {
  static override summary = 'Forecast when kubelet certificates are renewed, and find what prevents it.'

  static override description =
    `A kubelet requests its next certificate at a random point between 70 and 90 % of the current certificate's validity. It chooses that
point again at each start. For every node, the forecast shows on one timeline the earliest and latest renewal of the client and the
serving certificate. It also shows rotateCertificates and serverTLSBootstrap, the validity that kube-controller-manager gives to certificates,
and pending requests.

There are three sources:

  the API server   the default. kcert reads each kubelet's configuration and metrics (this needs permission to get nodes/proxy), probes
                   its port and lists the requests. A metric has the expiry only: the renewal is calculated from
                   --cluster-signing-duration, and marked with "~".
  files            TARGET arguments: a node's /var/lib/kubelet and /etc/kubernetes, or one tree with copies of many nodes.
  nodes            --all-nodes or --inventory: the files on each node, whether or not the API server is up.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'nothing prevents a renewal',
    usage: 'wrong usage, an unreadable file, or no kubeconfig',
    no: 'a certificate has expired, is overdue or will not be renewed, or a request has been pending for 15 min',
    unreachable: 'the API server or a node could not be reached',
    refused: 'other users can change the inventory',
  })

  static override examples = KcertCommand.examplesOf({
    'Forecast all nodes of the cluster': 'kcert kubelet forecast',
    'Forecast two nodes, as JSON': 'kcert kubelet forecast --node node-1 --node node-2 -o json',
    'Forecast this node, without the API server':
      'sudo kcert kubelet forecast /var/lib/kubelet /etc/kubernetes/manifests',
    'Forecast every node of kcert.yaml while the API server is down': 'kcert kubelet forecast --all-nodes',
    'Forecast from copies of many nodes, one folder each, with the pending requests':
      'kubectl get csr -o json > copies/csr.json; kcert kubelet forecast copies',
    'List nodes whose renewal is overdue, for a script':
      'kcert kubelet forecast -o json | jq -r \'.findings[] | select(.id == "overdue") | .node\'',
  })

  static override args = {
    target: Flag.operands('file or folder to read instead of the API server'),
  }

  static override flags = {
    ...Flag.nodeFlags,
    inventory: Flag.inventoryFlag('none: read the API server', {
      exclusive: [...Flag.otherClusterFlags, 'server', 'user'],
    }),
    timeout: Flag.value('DURATION', 'time limit for the TLS handshake with one kubelet', {
      default: '3s',
    }),
    ...Flag.clusterFlags,
    ...Flag.listFlags(['name'], 'name: only the names of the nodes'),
  }

  protected override async perform() {
    const { flags, operands: targets } = await this.parse(KubeletForecast)
    const { context } = this
    const only = flags.node ?? []
    const timeoutMs = parseDuration(flags.timeout, '--timeout')
    const [target] = targets
    const inventory = Flag.namedInventory(flags)
    if (inventory !== undefined && target !== undefined)
      throw new KcertError(
        'KCERT_USAGE',
        `${JSON.stringify(target)} and --inventory are mutually exclusive`,
        {
          why: 'kcert reads files of this machine, or files on the nodes',
          next: commandLine`kcert kubelet forecast ${argumentVector([target])}`,
        },
      )
    const facts =
      targets.length > 0
        ? await this.fromFiles(targets, only)
        : inventory === undefined
          ? await this.live(flags, only, timeoutMs)
          : await this.fromNodes(inventory, only)
    const report = forecastOf(facts.kubelets, facts.controllerManagers, context.clock())
    await this.show(flags.output, report, renderForecast, {
      namesOf: ({ nodes }) => nodes.map(({ name }) => `node/${name}`),
    })
    if (facts.unreachable > 0) return exitCodes.unreachable
    return report.findings.some(({ isProblem }) => isProblem) ? exitCodes.no : exitCodes.done
  }

  private async fromFiles(targets: readonly string[], only: readonly string[]) {
    const { factsInFiles } = await import('../../app/kubelet/forecast-files.ts')
    const facts = await factsInFiles(targets)
    const missing = only.find((name) => !facts.kubelets.some((kubelet) => kubelet.name === name))
    if (missing !== undefined) {
      const what = `no files of node ${JSON.stringify(missing)} in ${targets.join(', ')}`
      throw new KcertError('KCERT_USAGE', what, {
        why: `found: ${facts.kubelets.map(({ name }) => name).join(', ')}`,
        next: commandLine`kcert kubelet forecast ${argumentVector(targets)}`,
      })
    }
    const kubelets = facts.kubelets.filter(({ name }) => only.length === 0 || only.includes(name))
    return { ...facts, kubelets, unreachable: 0 }
  }

  private async fromNodes(inventory: string, only: readonly string[]) {
    const { factsOnNodes } = await import('../../app/kubelet/forecast-nodes.ts')
    return factsOnNodes(this.context, inventory, only)
  }

  private async live(flags: Flag.ClusterFlags, only: readonly string[], timeoutMs: number) {
    const { context } = this
    const { liveFacts } = await import('../../app/kubelet/forecast-live.ts')
    const facts = await this.onCluster(flags, (cluster) =>
      liveFacts(cluster, { clock: context.clock, timeoutMs, only }),
    )
    return { ...facts, unreachable: 0 }
  }
}
