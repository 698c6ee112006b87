import { commandLine, embed } from '../../errors/command-line.ts'
import { accessCommand } from '../approval/node-access.ts'
import { quoted } from '../quoting.ts'
import { apiServerClient, kubeletClient, kubeletServing, nodeNameOf, nodesGroup } from '../signers.ts'
import { anew, type CauseRow, wordOf } from './cause.ts'
import { isControllerOff, isManagerAlive, managerText } from './controller-manager.ts'
import type { Holder } from './facts.ts'
import type { Situation } from './situation.ts'

// Why nobody has approved or denied a request.

const nodeRole = 'system:certificates.k8s.io:certificatesigningrequests'

/** csrapproving tries again after 200 ms, then at longer and longer intervals, of at most 1000 s. */
const longestRetrySeconds = 1000

const pending =
  (holds: CauseRow['holds']): CauseRow['holds'] =>
  (situation) =>
    situation.state === 'pending' && situation.request !== undefined && holds(situation)

const sound = ({ broken }: Situation): boolean => broken.length === 0
const forKubeletClient = (situation: Situation): boolean =>
  situation.object.signerName === kubeletClient && sound(situation)

/** Causes of objects without a decision. */
export const pendingCauses: readonly CauseRow[] = [
  {
    id: 'would-fail',
    weight: 'stuck',
    holds: pending((situation) => !sound(situation)),
    says: (situation) => ({
      detail:
        situation.object.signerName === kubeletClient
          ? `kube-controller-manager passes over it, and once approved it would fail for good: ${situation.broken[0]!.detail}`
          : `do not approve it, it would fail for good: ${situation.broken[0]!.detail}`,
      next: [situation.broken[0]!.next, 'delete this object first'].join('; '),
      commands: anew(situation),
    }),
  },
  {
    id: 'node-asks-for-another',
    weight: 'stuck',
    holds: pending((situation) => forKubeletClient(situation) && foreignNode(situation) !== undefined),
    says: (situation) => ({
      detail: `${quoted(situation.object.username ?? '')} asks for the identity of ${quoted(foreignNode(situation)!)}: only a node itself may renew its certificate`,
      next: 'deny it, unless you know why; a node that was renamed joins anew with a bootstrap token',
      commands: [commandLine`kcert csr deny ${wordOf(situation)}`],
    }),
  },
  {
    id: 'rbac-missing',
    weight: 'stuck',
    holds: pending(
      ({ nodeAccess, ...rest }) =>
        forKubeletClient({ nodeAccess, ...rest }) && nodeAccess?.isAllowed === false,
    ),
    says: (situation) => {
      const { subresource } = situation.nodeAccess!
      const subject = boundSubject(situation)
      return {
        detail: `kube-controller-manager approves it once RBAC lets its requester create ${subresource}, and nothing gives ${quoted(situation.object.username ?? '')} (${situation.object.groups.join(', ')}) this right`,
        next: commandLine`bind ${embed(subject.text)} to the ClusterRole ${nodeRole}:${subresource}; the request is then approved within ${longestRetrySeconds} s`,
        commands: [
          commandLine`kubectl create clusterrolebinding ${bindingName(subresource)} --clusterrole=${nodeRole}:${subresource} ${embed(subject.flag)}`,
        ],
      }
    },
  },
  {
    id: 'rbac-unknown',
    weight: 'note',
    holds: pending((situation) => forKubeletClient(situation) && situation.nodeAccess === undefined),
    says: (situation) => {
      const { username = '' } = situation.object
      const subresource = username === situation.request?.subject.commonName ? 'selfnodeclient' : 'nodeclient'
      return {
        detail: `kube-controller-manager approves it once RBAC lets its requester create ${subresource}; whether it does could not be asked`,
        next: 'ask with a user who may',
        commands: [accessCommand(situation.object, subresource)],
      }
    },
  },
  {
    id: 'controller-manager-down',
    weight: 'stuck',
    holds: pending((situation) => forKubeletClient(situation) && isManagerAlive(situation) === false),
    says: (situation) => ({
      detail: `kube-controller-manager, which approves kubelets' requests, does not run: ${managerText(situation)}`,
      next: 'start it, and look at its logs; the request is approved then',
      commands: ['kubectl -n kube-system get pods -l component=kube-controller-manager -o wide'],
    }),
  },
  {
    id: 'approver-off',
    weight: 'stuck',
    holds: pending((situation) => forKubeletClient(situation) && isControllerOff(situation, 'approving')),
    says: (situation) => ({
      detail:
        "kube-controller-manager runs with --controllers, which switches its approver of kubelets' requests off",
      next: 'decide yourself, or switch csrapproving on in its --controllers',
      commands: [
        commandLine`kcert csr check ${wordOf(situation)} --cluster`,
        commandLine`kcert csr approve ${wordOf(situation)}`,
      ],
    }),
  },
  {
    id: 'approver-tries-again',
    weight: 'waiting',
    holds: pending(
      (situation) =>
        forKubeletClient(situation) &&
        situation.nodeAccess?.isAllowed === true &&
        foreignNode(situation) === undefined &&
        isManagerAlive(situation) !== false &&
        !isControllerOff(situation, 'approving'),
    ),
    says: (situation) => ({
      detail: `RBAC allows it, so kube-controller-manager approves it at its next try, at most ${longestRetrySeconds} s from now`,
      next: 'wait; where it stays so, look at the logs of kube-controller-manager, or approve it yourself',
      commands: [
        commandLine`kcert csr fetch ${wordOf(situation)} --wait 20m --out node.crt`,
        commandLine`kcert csr approve ${wordOf(situation)}`,
      ],
    }),
  },
  {
    id: 'no-approver-for-serving',
    weight: 'stuck',
    holds: pending((situation) => situation.object.signerName === kubeletServing && sound(situation)),
    says: (situation) => ({
      detail: `Kubernetes has no approver for kubelets' serving certificates: nothing in it knows whether the names are the node's own${helpers(situation.approvers)}`,
      next: "hold it against the Node's addresses and approve it; csr approve --policy does it for all, by hand or on a timer",
      commands: [
        commandLine`kcert csr check ${wordOf(situation)} --cluster`,
        commandLine`kcert csr approve ${wordOf(situation)}`,
      ],
    }),
  },
  {
    id: 'waits-for-a-person',
    weight: 'stuck',
    holds: pending((situation) => situation.object.signerName === apiServerClient && sound(situation)),
    says: (situation) => ({
      detail: `Kubernetes has no approver for clients of the API server: a person decides, by hand${helpers(situation.approvers)}`,
      next: 'see what it asks for, and approve or deny it',
      commands: [
        commandLine`kcert csr check ${wordOf(situation)} --cluster`,
        commandLine`kcert csr approve ${wordOf(situation)}`,
      ],
    }),
  },
  {
    id: 'no-approver-for-signer',
    weight: 'stuck',
    holds: pending(({ signedBy }) => signedBy === 'another'),
    says: (situation) => ({
      detail: `Kubernetes approves nothing for ${quoted(situation.object.signerName)}: whoever runs that signer does, or a person${helpers(situation.approvers)}`,
      next: 'see what it asks for, and approve or deny it',
      commands: [
        commandLine`kcert csr check ${wordOf(situation)} --cluster`,
        commandLine`kcert csr approve ${wordOf(situation)}`,
      ],
    }),
  },
]

/** The node whose identity another node asks for. */
function foreignNode({ object, request }: Situation): string | undefined {
  const commonName = request?.subject.commonName
  return nodeNameOf(object.username) !== undefined && object.username !== commonName
    ? (commonName ?? '')
    : undefined
}

/** Whom to bind: the narrowest group of bootstrappers, all nodes, or the user alone where it is in no such group. */
function boundSubject({ object: { username = '', groups }, nodeAccess }: Situation) {
  const bootstrappers = groups
    .filter((group) => group.startsWith('system:bootstrappers'))
    .sort((one, other) => other.length - one.length)
  const group = nodeAccess?.subresource === 'selfnodeclient' ? nodesGroup : bootstrappers[0]
  return group === undefined
    ? { text: commandLine`the user ${username}`, flag: commandLine`--user=${username}` }
    : { text: commandLine`the group ${group}`, flag: commandLine`--group=${group}` }
}

// The names that kubeadm gives them, so that nobody has two.
function bindingName(subresource: 'selfnodeclient' | 'nodeclient'): string {
  return subresource === 'selfnodeclient'
    ? 'kubeadm:node-autoapprove-certificate-rotation'
    : 'kubeadm:node-autoapprove-bootstrap'
}

const mostHolders = 5

function helpers(holders: readonly Holder[] | undefined): string {
  if (holders === undefined) return ''
  if (holders.length === 0) return '; no program has the right to approve for this signer'
  const names = holders.slice(0, mostHolders).map(({ kind, name }) => `${kind} ${name}`)
  const more = holders.length > mostHolders ? `, and ${holders.length - mostHolders} more` : ''
  return `; these have the right, and one of them may leave it alone or be down: ${names.join(', ')}${more}`
}
