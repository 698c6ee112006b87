import { checkBootstrap } from '../../app/bootstrap/check.ts'
import { tokenIdOf } from '../../app/token/input.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags, operand, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderProgress } from '../../output/bootstrap.ts'

export default class BootstrapCheck extends KcertCommand {
  static override summary = 'Say how far a node came on its way into the cluster, and why it stopped.'

  static override description =
    `Follows the fifteen steps of TLS bootstrap as the cluster sees them, and needs no way to the node: the kubelet starts (1), finds no usable
kubeconfig (2) but a bootstrap kubeconfig (3) with a server and a token (4); the token makes it known (5), a binding lets it ask (6),
its request comes (7), is approved (8), signed (9), and the certificate stands on the object (10); the kubelet fetches it (11), writes
its kubeconfig (12), and registers: Node, Lease, CSINode (13); later it renews (14), and that is approved and signed (15).

A later sign proves the steps before it. What only the node itself shows (1 to 4) is unknown until then; each step that is open names
the next command. Requests are kept for an hour after they were issued or denied, the rest for a day (those
that are approved and never signed stay, until Kubernetes 1.34).`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'it has arrived: registered and alive',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'it stopped, and where is said',
  }

  static override examples = KcertCommand.examplesOf({
    'A node that does not come': 'kcert bootstrap check node-7',
    'The token that it was given is known': 'kcert bootstrap check node-7 --token-id abcdef',
    'Where it stopped, for a script': "kcert bootstrap check node-7 -o json | jq -r '.stoppedAt'",
    'Wait for it, in a provisioning script': 'until kcert bootstrap check node-7; do sleep 10; done',
  })

  static override args = { node: operand('the name of the Node') }

  static override flags = {
    'token-id': valueFlag('ID', 'the token that the node was given: its first six characters'),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(BootstrapCheck)
    const { context } = this
    const id = flags['token-id']
    const tokenId = id === undefined ? undefined : tokenIdOf(id)
    const node = args.node.replace(/^nodes?\//, '')
    const report = await this.onCluster(flags, (cluster) =>
      checkBootstrap(cluster, { node, tokenId }, context.clock),
    )
    await this.show(flags.output, report, renderProgress)
    return report.verdict === 'arrived' ? exitCodes.done : exitCodes.no
  }
}
