import { checkBootstrap } from '../../app/bootstrap/check.ts'
import { tokenIdOf } from '../../app/token/input.ts'
import * as Flag from '../../cli/flags.ts'
import { renderReport, stdoutView } from '../../cli/view.ts'
import { type Frame, WatchingCommand, watchFlags } from '../../cli/watching-command.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderProgress } from '../../output/bootstrap.ts'

export default class BootstrapCheck extends WatchingCommand {
  static override summary = "Diagnose a node's TLS bootstrap."

  static override description =
    `Shows how far a node got in joining the cluster, and why it stopped. kcert reads the API server only and needs no access to the node.

The steps are:

  1-4     on the node: the kubelet starts without a usable kubeconfig, and finds a bootstrap kubeconfig with a server and a token
  5-7     the token authenticates, RBAC allows the request, the CertificateSigningRequest exists
  8-10    it is approved, signed, and the certificate is in its status
  11-13   the kubelet fetches it, writes its kubeconfig, and registers: Node, Lease, CSINode
  14-15   later the kubelet requests a renewal, which is approved and signed

Evidence of a later step proves the steps before it. Steps 1 to 4 are visible on the node only, so they are unknown until step 7 is complete. Each
incomplete step has a next command. Kubernetes deletes issued and denied requests after an hour, and pending ones after a day.
Kubernetes 1.34 and older keep requests that are approved and never signed.`

  static override exitCodes = WatchingCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the node is registered and its kubelet reports; with --watch: it is Ready',
    usage: 'wrong usage, or no kubeconfig',
    no: 'the bootstrap stopped: the output names the step',
  })

  static override examples = WatchingCommand.examplesOf({
    'Find out why a node does not join': 'kcert bootstrap check node-7',
    'Include the token that you gave to the node': 'kcert bootstrap check node-7 --token-id abcdef',
    'Watch until the node is Ready': 'kcert bootstrap check node-7 --watch',
    'Print the step at which it stopped, for a script':
      "kcert bootstrap check node-7 -o json | jq -r '.stoppedAt'",
  })

  static override args = { node: Flag.operand('name of the Node') }

  static override flags = {
    'token-id': Flag.value('ID', 'ID (first six characters) of the token that you gave to the node'),
    ...watchFlags('check'),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { args, flags } = await this.parse(BootstrapCheck)
    const { context } = this
    const id = flags['token-id']
    const tokenId = id === undefined ? undefined : tokenIdOf(id)
    const node = args.node.replace(/^nodes?\//, '')
    let isReady = false
    const act = async (frame: Frame): Promise<ExitCode> => {
      const found = await this.onCluster(flags, (cluster) =>
        checkBootstrap(cluster, { node, tokenId }, context.clock),
      )
      const report = this.advising(found)
      const view = await stdoutView(context)
      await this.answer(frame(renderReport(flags.output, report, () => renderProgress(report, view))))
      isReady = report.verdict === 'joined' && report.ready === true
      return report.verdict === 'joined' ? exitCodes.done : exitCodes.no
    }
    return this.watch(flags, act, { isOver: () => isReady })
  }
}
