import { listRequests } from '../../app/csr/list.ts'
import { listPodRequests } from '../../app/csr/pod-requests.ts'
import * as Flag from '../../cli/flags.ts'
import { type Frame, WatchingCommand, watchFlags } from '../../cli/watching-command.ts'
import { requestStates } from '../../csr/life.ts'
import { podResourceNameOf, resourceNameOf } from '../../csr/request-name.ts'
import type { ExitCode } from '../../errors/codes.ts'
import { renderRequestList } from '../../output/csr-list.ts'
import { renderPodRequestList } from '../../output/csr-pods.ts'

export default class CsrList extends WatchingCommand {
  static override summary = 'List the CertificateSigningRequests of a cluster.'

  static override description =
    `Pending requests come first, then approved and unsigned, failed, denied and issued ones, the oldest of each first. kcert reads SUBJECT and
SANS from the request itself. On a narrow terminal, it leaves out columns instead of shortening names. With -o wide it also shows when the
certificate expires, the type of the key and the groups of the requester.

DELETED IN says when kube-controller-manager will delete the object: an hour after it was issued, denied or failed, a day after its creation
if it is still pending, and a day after its approval if it is still unsigned. Kubernetes 1.34 and older never delete an approved, unsigned object.

With --pods, kcert lists the PodCertificateRequests that kubelets create for pods. Kubernetes 1.37 serves them, and so do 1.35 and 1.36 if
v1beta1 is enabled. They need no approval. kube-controller-manager deletes each one 15 minutes after its creation.`

  static override exitCodes = WatchingCommand.exitsOf({
    ...Flag.clusterExits,
    done: 'the list is printed, even if it is empty',
    usage: 'wrong usage, or no kubeconfig',
    no: "the API server's certificate is not trusted",
  })

  static override examples = WatchingCommand.examplesOf({
    'List all requests': 'kcert csr list',
    "List pending requests for kubelets' serving certificates":
      'kcert csr list --pending --signer kubernetes.io/kubelet-serving',
    'List the requests of one node': 'kcert csr list --requester system:node:node-1',
    'Delete denied and failed requests': 'kcert csr list --denied --failed -o name | xargs -r kubectl delete',
    'Watch pending requests': 'kcert csr list --pending --watch',
    'List pods that wait for a certificate': 'kcert csr list --pods --pending',
    'Print names and subjects of pending requests, for a script': `kcert csr list --pending -o json | jq -r '.requests[] | [.name, .request.subject.text] | @tsv'`,
  })

  static override flags = {
    signer: Flag.value('NAME', 'only requests for this signer'),
    selector: Flag.value('LABELS', 'only requests with these labels, as in kubectl', { char: 'l' }),
    requester: Flag.value('USER', 'only requests of this user', { exclusive: ['pods'] }),
    pods: Flag.boolean('list PodCertificateRequests instead', { exclusive: ['approved'] }),
    namespace: Flag.value('NAMESPACE', 'with --pods: only this namespace', {
      char: 'n',
      dependsOn: ['pods'],
    }),
    pending: Flag.boolean('only requests that are neither approved nor denied'),
    approved: Flag.boolean('only requests that are approved and not yet signed'),
    failed: Flag.boolean('only requests that the signer refused'),
    denied: Flag.boolean('only denied requests'),
    issued: Flag.boolean('only requests with an issued certificate'),
    ...watchFlags('list'),
    ...Flag.clusterFlags,
    ...Flag.listFlags(['name'], 'name: names for kubectl'),
  }

  protected override async perform() {
    const { flags } = await this.parse(CsrList)
    const states = requestStates.filter((state) => flags[state])
    const act = async (frame: Frame): Promise<ExitCode> => {
      const now = this.context.clock()
      const text = await this.onCluster(flags, async (cluster) => {
        if (flags.pods) {
          const wanted = states.filter((state) => state !== 'approved')
          const list = await listPodRequests(cluster, { ...flags, states: wanted }, now)
          return this.textOf(flags.output, list, renderPodRequestList, namesOf(podResourceNameOf))
        }
        const list = await listRequests(cluster.requests, { ...flags, states }, now)
        return this.textOf(flags.output, list, renderRequestList, namesOf(resourceNameOf))
      })
      return this.answer(frame(text, now))
    }
    return this.watch(flags, act)
  }
}

function namesOf(resourceName: (name: string) => string) {
  return ({ requests }: { readonly requests: readonly { readonly name: string }[] }) =>
    requests.map(({ name }) => resourceName(name))
}
