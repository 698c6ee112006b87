import { explainRequest } from '../../app/csr/explain.ts'
import { explainPod } from '../../app/csr/pod-requests.ts'
import { namesOf, noSuchPodRequest, noSuchRequest } from '../../app/csr/request-names.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags, operand, reportFormatFlag, valueFlag } from '../../cli/flags.ts'
import { podRequestNameOf } from '../../csr/request-name.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderExplanation } from '../../output/csr-explain.ts'
import { renderPodExplanation } from '../../output/csr-pods.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'

export default class CsrExplain extends KcertCommand {
  static override summary = 'Say why a CertificateSigningRequest is stuck or has failed, and what to do.'

  static override description =
    `Looks at the object, at RBAC, at kube-controller-manager (its Lease, and its flags where it is a pod) and at who may approve and sign
for the signer. Among what it tells apart:

  nobody approves    a person must (users), a policy must (kubelets' serving certificates), RBAC lacks a binding (and for whom),
                     kube-controller-manager does not run or has its approver switched off
  nobody signs       no such signer, no CA given to kube-controller-manager, the signer of somebody else is not there
  failed for good    the usages, names or subject are not what the signer wants; denied by whom and why
  too late           removed soon, expired, issued for another key

What this user may not look up is named, because a cause may be missing then.

A PodCertificateRequest is named with its kind: podcertificaterequest/NAME.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'it is issued',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'it waits, is stuck, was denied or has failed; or there is no such object',
  }

  static override examples = KcertCommand.examplesOf({
    'Why does it wait?': 'kcert csr explain csr-7x2lq',
    'Every request that waits': 'kcert csr list --pending -o name | xargs -n 1 kcert csr explain',
    'Why does a pod wait for its certificate?':
      'kcert csr list --pods --pending -n shop -o name | xargs -n 1 kcert csr explain -n shop',
    'The commands to go on with': `kcert csr explain ann -o json | jq -r '.causes[].commands[]'`,
  })

  static override args = {
    name: operand('name of the object; csr/NAME as well, and podcertificaterequest/NAME'),
  }

  static override flags = {
    namespace: valueFlag('NAMESPACE', "namespace of a PodCertificateRequest (default: the context's)", {
      char: 'n',
    }),
    ...clusterFlags,
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(CsrExplain)
    const podRequest = podRequestNameOf(args.name)
    return podRequest === undefined
      ? this.explainRequest(args.name, flags)
      : this.explainPod(podRequest, flags)
  }

  private async explainPod(name: string, flags: FlagsOf<typeof CsrExplain.flags>): Promise<ExitCode> {
    const now = this.context.clock()
    const explanation = await this.onCluster(flags, (cluster) =>
      explainPod(cluster, flags.namespace ?? cluster.namespace, name, now),
    )
    if (explanation === undefined) throw noSuchPodRequest(name)
    await this.show(flags.output, explanation, (shown, view) =>
      renderPodExplanation(shown, rfc3339(now), view),
    )
    return explanation.verdict === 'issued' ? exitCodes.done : exitCodes.no
  }

  private async explainRequest(word: string, flags: FlagsOf<typeof CsrExplain.flags>): Promise<ExitCode> {
    const now = this.context.clock()
    const [name = ''] = namesOf([word], 'csr explain NAME')
    const explanation = await this.onCluster(flags, (cluster) => explainRequest(cluster, name, now))
    if (explanation === undefined) throw noSuchRequest(name)
    await this.show(flags.output, explanation, (shown, view) => renderExplanation(shown, rfc3339(now), view))
    return explanation.verdict === 'issued' ? exitCodes.done : exitCodes.no
  }
}
