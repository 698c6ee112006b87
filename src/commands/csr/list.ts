import * as Flags from '@oclif/core/flags'
import { KcertCommand } from '../../cli/base-command.ts'
import { clusterExits, clusterFlags } from '../../cli/cluster-flags.ts'
import { type ReportFormat, renderReport } from '../../cli/report-format.ts'
import { stdoutView } from '../../cli/view.ts'
import { withCluster } from '../../cli/with-cluster.ts'
import { resourceNameOf } from '../../csr/request-name.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { printable } from '../../output/terminal.ts'

const states = ['pending', 'approved', 'failed', 'denied', 'issued'] as const

export default class CsrList extends KcertCommand {
  static override summary =
    'List the CertificateSigningRequests of a cluster: who asks for what, and until when.'

  static override description =
    `Subject and names are read from the request itself. Those that wait come first, the oldest before the others: pending, then approved
and not signed, failed, denied, issued. REMOVED IN says when kube-controller-manager will remove the object, whatever is in it:
an hour after it was issued, denied or failed, a day after that when nobody decides or signs.`

  static override exitCodes = {
    [exitCodes.done]: 'the list is printed, also when it is empty',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: "the API server's certificate is not trusted",
    [exitCodes.unreachable]: 'the API server could not be reached',
    ...clusterExits,
  }

  static override examples = [
    { description: 'All requests', command: '<%= config.bin %> csr list' },
    {
      description: "What kubelets' serving certificates wait for",
      command: '<%= config.bin %> csr list --pending --signer kubernetes.io/kubelet-serving',
    },
    {
      description: 'What one node has asked for',
      command: '<%= config.bin %> csr list --requester system:node:node-1',
    },
    {
      description: 'Remove what was denied or has failed',
      command: '<%= config.bin %> csr list --denied --failed -o name | xargs -r kubectl delete',
    },
    {
      description: 'Names and subjects that wait, for a script',
      command: `<%= config.bin %> csr list --pending -o json | jq -r '.requests[] | [.name, .request.subject.text] | @tsv'`,
    },
  ]

  static override flags = {
    signer: Flags.string({ description: 'only for this signer', helpValue: 'NAME' }),
    selector: Flags.string({
      char: 'l',
      description: 'only with these labels, as kubectl takes them',
      helpValue: 'LABELS',
    }),
    requester: Flags.string({ description: 'only by this user', helpValue: 'USER' }),
    pending: Flags.boolean({ description: 'nobody has decided' }),
    approved: Flags.boolean({ description: 'approved, and not signed yet' }),
    failed: Flags.boolean({ description: 'refused by the signer' }),
    denied: Flags.boolean({ description: 'denied by an approver' }),
    issued: Flags.boolean({ description: 'with a certificate' }),
    ...clusterFlags,
    output: Flags.option({
      char: 'o',
      options: ['text', 'json', 'yaml', 'name'] as const,
      default: 'text' as const,
    })({
      description: 'how to show them; name as kubectl does, for pipelines',
    }),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(CsrList)
    const [{ listRequests }, { renderRequestList }] = await Promise.all([
      import('../../cli/list-requests.ts'),
      import('../../output/csr-list.ts'),
    ])
    const { context } = this
    const wish = { ...flags, states: states.filter((state) => flags[state]) }
    const list = await withCluster(context, flags, ({ requests }) =>
      listRequests(requests, wish, context.clock()),
    )
    if (flags.output === 'name') {
      await this.answer(list.requests.map(({ name }) => `${printable(resourceNameOf(name))}\n`).join(''))
      return exitCodes.done
    }
    const view = await stdoutView(context)
    const format: ReportFormat = flags.output
    await this.answer(renderReport(format, list, () => renderRequestList(list, view)))
    return exitCodes.done
  }
}
