import { listRequests } from '../../app/csr/list.ts'
import { listPodRequests } from '../../app/csr/pod-requests.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { booleanFlag, clusterExits, clusterFlags, listFlags, valueFlag } from '../../cli/flags.ts'
import { podResourceNameOf, resourceNameOf } from '../../csr/request-name.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderRequestList } from '../../output/csr-list.ts'
import { renderPodRequestList } from '../../output/csr-pods.ts'
import { printable } from '../../output/terminal.ts'

const states = ['pending', 'approved', 'failed', 'denied', 'issued'] as const

export default class CsrList extends KcertCommand {
  static override summary = 'List the CertificateSigningRequests of a cluster.'

  static override description =
    `Pending requests come first, then approved and unsigned, failed, denied and issued ones, the oldest of each first. kcert reads SUBJECT and
SANS from the request itself. On a narrow terminal, it leaves out columns instead of shortening names.

DELETED IN says when kube-controller-manager will delete the object: an hour after it was issued, denied or failed, a day after its creation
if it is still pending, and a day after its approval if it is still unsigned. Kubernetes 1.34 and older never delete an approved, unsigned object.

With --pods, kcert lists the PodCertificateRequests that kubelets create for pods. Kubernetes 1.37 serves them, and so do 1.35 and 1.36 if
v1beta1 is enabled. They need no approval. kube-controller-manager deletes each one 15 minutes after its creation.`

  static override exitCodes = {
    ...clusterExits,
    [exitCodes.done]: 'the list is printed, even if it is empty',
    [exitCodes.usage]: 'wrong usage, or no kubeconfig',
    [exitCodes.no]: "the API server's certificate is not trusted",
  }

  static override examples = KcertCommand.examplesOf({
    'List all requests': 'kcert csr list',
    "List pending requests for kubelets' serving certificates":
      'kcert csr list --pending --signer kubernetes.io/kubelet-serving',
    'List the requests of one node': 'kcert csr list --requester system:node:node-1',
    'Delete denied and failed requests': 'kcert csr list --denied --failed -o name | xargs -r kubectl delete',
    'List pods that wait for a certificate': 'kcert csr list --pods --pending',
    'Print names and subjects of pending requests, for a script': `kcert csr list --pending -o json | jq -r '.requests[] | [.name, .request.subject.text] | @tsv'`,
  })

  static override flags = {
    signer: valueFlag('NAME', 'only requests for this signer'),
    selector: valueFlag('LABELS', 'only requests with these labels, as in kubectl', { char: 'l' }),
    requester: valueFlag('USER', 'only requests of this user', { exclusive: ['pods'] }),
    pods: booleanFlag('list PodCertificateRequests instead', { exclusive: ['approved'] }),
    namespace: valueFlag('NAMESPACE', 'with --pods: only this namespace', {
      char: 'n',
      dependsOn: ['pods'],
    }),
    pending: booleanFlag('only requests that are neither approved nor denied'),
    approved: booleanFlag('only requests that are approved and not yet signed'),
    failed: booleanFlag('only requests that the signer refused'),
    denied: booleanFlag('only denied requests'),
    issued: booleanFlag('only requests with an issued certificate'),
    ...clusterFlags,
    ...listFlags(['name'], 'name: names for kubectl'),
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
