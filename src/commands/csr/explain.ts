import { explainRequest } from '../../app/csr/explain.ts'
import { explainPod } from '../../app/csr/pod-requests.ts'
import { namesOf, noSuchPodRequest, noSuchRequest } from '../../app/csr/request-names.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { podRequestNameOf } from '../../csr/request-name.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderExplanation } from '../../output/csr-explain.ts'
import { renderPodExplanation } from '../../output/csr-pods.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'

export default class CsrExplain extends KcertCommand {
  static override summary = 'Explain why a CSR is pending, unsigned, denied or failed, and what to do.'

  static override description =
    `Reads the object, RBAC, kube-controller-manager (its Lease, and its flags if it is a pod), and who may approve and sign for the signer.
It finds these causes, among others:

  not approved      Kubernetes does not approve users' requests and kubelets' serving requests: an administrator or a policy must. For
                    others, an RBAC binding is missing, or kube-controller-manager does not run, or its approver is disabled
  not signed        the signer does not exist, kube-controller-manager has no CA, or the signer is not installed
  failed or denied  the usages, SANs or subject are not what the signer accepts; for a denial, which program denied it and why
  too late          kube-controller-manager deletes it soon, the certificate expired, or it was issued for another key

kcert lists what your user may not read, because a cause may be missing then.

For a PodCertificateRequest, write podcertificaterequest/NAME.`

  static override exitCodes = KcertCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the certificate is issued',
    usage: 'wrong usage, or no kubeconfig',
    no: 'the request is pending, unsigned, denied or failed, or does not exist',
  })

  static override examples = KcertCommand.examplesOf({
    'Explain why a request is pending': 'kcert csr explain csr-7x2lq',
    'Explain every pending request': 'kcert csr list --pending -o name | xargs -n 1 kcert csr explain',
    'Explain why a pod waits for its certificate':
      'kcert csr list --pods --pending -n shop -o name | xargs -n 1 kcert csr explain -n shop',
    'Print the next commands only': `kcert csr explain ann -o json | jq -r '.causes[].commands[]'`,
  })

  static override args = {
    name: Flag.operand('object, as NAME, csr/NAME or podcertificaterequest/NAME'),
  }

  static override flags = {
    namespace: Flag.value('NAMESPACE', "namespace of a PodCertificateRequest (default the context's)", {
      char: 'n',
    }),
    ...Flag.clusterFlags,
    output: Flag.reportFormat(),
  }

  protected override async perform() {
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
    const [name = ''] = namesOf([word])
    const explanation = await this.onCluster(flags, (cluster) => explainRequest(cluster, name, now))
    if (explanation === undefined) throw noSuchRequest(name)
    await this.show(flags.output, explanation, (shown, view) => renderExplanation(shown, rfc3339(now), view))
    return explanation.verdict === 'issued' ? exitCodes.done : exitCodes.no
  }
}
