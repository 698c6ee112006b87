import * as Args from '@oclif/core/args'
import { KcertCommand } from '../../cli/base-command.ts'
import {
  type ClusterFlags,
  clusterExits,
  clusterFlags,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
} from '../../cli/flags.ts'
import { parseDuration } from '../../cli/instant.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { forecastOf } from '../../kubelet/forecast.ts'
import { renderForecast } from '../../output/kubelet-forecast.ts'

export default class KubeletForecast extends KcertCommand {
  static override summary =
    'Tell when the certificates of every kubelet will be renewed, and what will keep them from it.'

  static override description =
    `A kubelet asks for its next certificate at a random point of 70 to 90 % of the life of the one it has, chosen anew at each start. This
shows the earliest and the latest moment for the client and the serving certificate of every node, on one line of time; whether
rotateCertificates and serverTLSBootstrap are on; for how long kube-controller-manager signs; and which requests wait.

Without an operand the cluster is asked: the kubelet's own configuration and metrics through the API server (which needs the right to get
nodes/proxy), a handshake at its port, and the requests that are still there. A metric tells only when a certificate ends: its renewal is
counted back by --cluster-signing-duration then, and marked with "~". With operands the cluster is not asked: files and folders are read, a
node's /var/lib/kubelet and /etc/kubernetes, or copies of many nodes' in one tree; there the certificates themselves are read. With
--inventory the nodes of kcert.yaml are, each through its own shell, whether the API server answers or not: certificates, the kubelet's
configuration and flags, and the manifest of kube-controller-manager.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'nothing keeps any kubelet from renewing',
    [exitCodes.usage]: 'wrong usage, a file that cannot be read, or no kubeconfig',
    [exitCodes.no]:
      'a certificate has expired, is overdue or will not be renewed, or a request has waited for 15 min',
    [exitCodes.unreachable]: 'the API server could not be reached, or a node of the inventory',
    [exitCodes.refused]: 'other users can change the inventory',
  }

  static override examples = KcertCommand.examplesOf({
    'All nodes of the cluster': 'kcert kubelet forecast',
    'Two nodes, as JSON': 'kcert kubelet forecast --node node-1 --node node-2 -o json',
    'On a node itself, without the API server':
      'kcert kubelet forecast /var/lib/kubelet /etc/kubernetes/manifests',
    'Every node of kcert.yaml, with the API server down': 'kcert kubelet forecast --inventory kcert.yaml',
    'Copies of many nodes, each in a folder of its own, and the requests that wait':
      'kubectl get csr -o json > copies/csr.json; kcert kubelet forecast copies',
    'Nodes whose client certificate is overdue, for a script':
      'kcert kubelet forecast -o json | jq -r \'.findings[] | select(.id == "overdue") | .node\'',
  })

  static override strict = false

  static override args = {
    target: Args.string({
      description: 'file or folder to read instead of asking the cluster; may be repeated',
      ignoreStdin: true,
    }),
  }

  static override flags = {
    inventory: valueFlag(
      'FILE',
      'read the files on the nodes of this inventory, instead of asking the cluster',
      { char: 'i', exclusive: ['kubeconfig', 'context'] },
    ),
    node: repeatedFlag('NAME', 'this node alone; may be repeated'),
    timeout: valueFlag('DURATION', 'give up on one handshake with a kubelet after this long', {
      default: '3s',
    }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags, operands: targets } = await this.parse(KubeletForecast)
    const { context } = this
    const only = flags.node ?? []
    const timeoutMs = parseDuration(flags.timeout, '--timeout')
    const [target] = targets
    if (flags.inventory !== undefined && target !== undefined) throw twoSources(target)
    const facts =
      targets.length > 0
        ? await this.fromFiles(targets, only)
        : flags.inventory === undefined
          ? await this.live(flags, only, timeoutMs)
          : await this.fromNodes(flags.inventory, only)
    const report = forecastOf(facts.kubelets, facts.controllerManagers, context.clock())
    await this.show(flags.output, report, renderForecast)
    if (facts.unreachable > 0) return exitCodes.unreachable
    return report.findings.some(({ isProblem }) => isProblem) ? exitCodes.no : exitCodes.done
  }

  private async fromFiles(targets: readonly string[], only: readonly string[]) {
    const { factsInFiles } = await import('../../app/kubelet/forecast-files.ts')
    const facts = await factsInFiles(targets)
    const missing = only.find((name) => !facts.kubelets.some((kubelet) => kubelet.name === name))
    if (missing !== undefined)
      throw new KcertError(
        'KCERT_USAGE',
        `nothing of node ${JSON.stringify(missing)} is in ${targets.join(', ')}`,
        {
          why: `found: ${facts.kubelets.map(({ name }) => name).join(', ')}`,
          next: 'leave --node out',
        },
      )
    const kubelets = facts.kubelets.filter(({ name }) => only.length === 0 || only.includes(name))
    return { ...facts, kubelets, unreachable: 0 }
  }

  private async fromNodes(inventory: string, only: readonly string[]) {
    const { factsOnNodes } = await import('../../app/kubelet/forecast-nodes.ts')
    return factsOnNodes(this.context, inventory, only)
  }

  private async live(flags: ClusterFlags, only: readonly string[], timeoutMs: number) {
    const { context } = this
    const { liveFacts } = await import('../../app/kubelet/forecast-live.ts')
    const facts = await this.onCluster(flags, (cluster) =>
      liveFacts(cluster, { clock: context.clock, timeoutMs, only }),
    )
    return { ...facts, unreachable: 0 }
  }
}

function twoSources(target: string): KcertError {
  return new KcertError('KCERT_USAGE', `both ${JSON.stringify(target)} and --inventory are named`, {
    why: 'files of this machine are read, or those on the nodes',
    next: 'leave one of them out',
  })
}
