import { listRequests } from '../../app/csr/list.ts'
import { listPodRequests } from '../../app/csr/pod-requests.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { booleanFlag, clusterExits, clusterFlags, formatFlag, valueFlag } from '../../cli/flags.ts'
import { podResourceNameOf, resourceNameOf } from '../../csr/request-name.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderRequestList } from '../../output/csr-list.ts'
import { renderPodRequestList } from '../../output/csr-pods.ts'
import { printable } from '../../output/terminal.ts'

const states = ['pending', 'approved', 'failed', 'denied', 'issued'] as const

export default class CsrList extends KcertCommand {
  static override summary =
    'List the CertificateSigningRequests of a cluster: who asks for what, and until when.'

  static override description =
    `Subject and names are read from the request itself. Those that wait come first, the oldest before the others: pending, then approved
and not signed, failed, denied, issued. REMOVED IN says when kube-controller-manager will remove the object, whatever is in it:
an hour after it was issued, denied or failed, a day after it was created or approved when nobody decides or signs.
Until Kubernetes 1.34 an object that is approved and never signed stays.

With --pods the PodCertificateRequests that kubelets create for pods: Kubernetes 1.37 serves them, 1.35 and 1.36 where v1beta1 is turned on. Nobody
approves them. kube-controller-manager removes each 15 minutes after it was created.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the list is printed, also when it is empty',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: "the API server's certificate is not trusted",
  }

  static override examples = KcertCommand.examplesOf({
    'All requests': 'kcert csr list',
    "What kubelets' serving certificates wait for":
      'kcert csr list --pending --signer kubernetes.io/kubelet-serving',
    'What one node has asked for': 'kcert csr list --requester system:node:node-1',
    'Remove what was denied or has failed':
      'kcert csr list --denied --failed -o name | xargs -r kubectl delete',
    'Pods that wait for a certificate': 'kcert csr list --pods --pending',
    'Names and subjects that wait, for a script': `kcert csr list --pending -o json | jq -r '.requests[] | [.name, .request.subject.text] | @tsv'`,
  })

  static override flags = {
    signer: valueFlag('NAME', 'only for this signer'),
    selector: valueFlag('LABELS', 'only with these labels, as kubectl takes them', { char: 'l' }),
    requester: valueFlag('USER', 'only by this user', { exclusive: ['pods'] }),
    pods: booleanFlag('list PodCertificateRequests instead', { exclusive: ['approved'] }),
    namespace: valueFlag('NAMESPACE', 'with --pods, only of this namespace', {
      char: 'n',
      dependsOn: ['pods'],
    }),
    pending: booleanFlag('nobody has decided'),
    approved: booleanFlag('approved, and not signed yet'),
    failed: booleanFlag('refused by the signer'),
    denied: booleanFlag('denied by an approver'),
    issued: booleanFlag('with a certificate'),
    ...clusterFlags,
    output: formatFlag(
      ['text', 'json', 'yaml', 'name'],
      'how to show them; name as kubectl does, for pipelines',
    ),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(CsrList)
    const { context } = this
    const now = context.clock()
    const wanted = states.filter((state) => flags[state])
    if (flags.pods) {
      const options = { ...flags, states: wanted.filter((state) => state !== 'approved') }
      const list = await this.onCluster(flags, (cluster) => listPodRequests(cluster, options, now))
      if (flags.output === 'name') await this.answer(namesIn(list, podResourceNameOf))
      else await this.show(flags.output, list, renderPodRequestList)
      return exitCodes.done
    }
    const options = { ...flags, states: wanted }
    const list = await this.onCluster(flags, ({ requests }) => listRequests(requests, options, now))
    if (flags.output === 'name') await this.answer(namesIn(list, resourceNameOf))
    else await this.show(flags.output, list, renderRequestList)
    return exitCodes.done
  }
}

function namesIn(
  { requests }: { readonly requests: readonly { readonly name: string }[] },
  resourceName: (name: string) => string,
): string {
  return requests.map(({ name }) => `${printable(resourceName(name))}\n`).join('')
}
