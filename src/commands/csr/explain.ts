import * as Args from '@oclif/core/args'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { renderReport, reportFormatFlag } from '../../cli/report-format.ts'
import { namesOf, noSuchRequest } from '../../cli/request-names.ts'
import { stdoutView } from '../../cli/view.ts'
import { withCluster } from '../../cli/with-cluster.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'

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

What this user may not look up is named, because a cause may be missing then.`

  static override exitCodes = {
    [exitCodes.done]: 'it is issued',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: 'it waits, is stuck, was denied or has failed; or there is no such object',
    [exitCodes.unreachable]: 'the API server could not be reached',
    ...clusterExits,
  }

  static override examples = [
    { description: 'Why does it wait?', command: '<%= config.bin %> csr explain csr-7x2lq' },
    {
      description: 'Every request that waits',
      command: '<%= config.bin %> csr list --pending -o name | xargs -n 1 <%= config.bin %> csr explain',
    },
    {
      description: 'The commands to go on with',
      command: `<%= config.bin %> csr explain ann -o json | jq -r '.causes[].commands[]'`,
    },
  ]

  static override args = {
    name: Args.string({
      description: 'name of the object; csr/NAME as well',
      required: true,
      ignoreStdin: true,
    }),
  }

  static override flags = { ...clusterFlags, output: reportFormatFlag() }

  protected override async perform(): Promise<ExitCode> {
    const { args, flags } = await this.parse(CsrExplain)
    const [{ explainRequest }, { renderExplanation }, { rfc3339 }] = await Promise.all([
      import('../../cli/explain-request.ts'),
      import('../../output/csr-explain.ts'),
      import('../../pki/rfc3339.ts'),
    ])
    const { context } = this
    const now = context.clock()
    const [name = ''] = namesOf([args.name], 'csr explain NAME')
    const explanation = await withCluster(context, flags, (cluster) => explainRequest(cluster, name, now))
    if (explanation === undefined) throw noSuchRequest(name)
    const view = await stdoutView(context)
    await this.answer(
      renderReport(flags.output, explanation, () => renderExplanation(explanation, rfc3339(now), view)),
    )
    return explanation.verdict === 'issued' ? exitCodes.done : exitCodes.no
  }
}
