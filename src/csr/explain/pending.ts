import { commandLine, embed } from '../../errors/command-line.ts'
import { accessCommand } from '../approval/node-access.ts'
import { quoted } from '../quoting.ts'
import { apiServerClient, kubeletClient, kubeletServing, nodeNameOf, nodesGroup } from '../signers.ts'
import { brokenFix, brokenText, type CauseRow, deleteObject, wordOf } from './cause.ts'
import { isControllerOff, isManagerAlive, managerText } from './controller-manager.ts'
import type { Holder } from './facts.ts'
import type { Situation } from './situation.ts'

// Why a request is neither approved nor denied.

const nodeRole = 'system:certificates.k8s.io:certificatesigningrequests'

/** csrapproving retries after 200 ms, then at growing intervals of at most 1000 s. */
const longestRetrySeconds = 1000

const pending =
  (holds: CauseRow['holds']): CauseRow['holds'] =>
  (situation) =>
    situation.state === 'pending' && situation.request !== undefined && holds(situation)

/** Applies to this signer when no rule of it is broken. */
const soundFor = (signer: string, holds: CauseRow['holds'] = () => true): CauseRow['holds'] =>
  pending(
    (situation) =>
      situation.object.signerName === signer && situation.broken.length === 0 && holds(situation),
  )

const decideByHand = (situation: Situation): string[] => [
  commandLine`kcert csr check ${wordOf(situation)} --cluster`,
  commandLine`kcert csr approve ${wordOf(situation)}`,
]

/** Causes for objects without a decision. */
export const pendingCauses: readonly CauseRow[] = [
  {
    id: 'controller-left-pending',
    weight: 'note',
    holds: ({ state, leftPending }) => state === 'pending' && typeof leftPending === 'object',
    detail: ({ leftPending }) =>
      typeof leftPending === 'object'
        ? `an Event of kcert-controller at ${leftPending.time} says: ${leftPending.message}`
        : '',
    fix: 'change what the rule names, or decide yourself; the controller evaluates it again within 20 minutes',
    commands: decideByHand,
  },
  {
    id: 'would-fail',
    holds: pending(({ broken }) => broken.length > 0),
    detail: (situation) =>
      situation.object.signerName === kubeletClient
        ? `kube-controller-manager ignores it, and if you approve it, it fails permanently: ${brokenText(situation)}`
        : `do not approve it: it would fail permanently: ${brokenText(situation)}`,
    fix: brokenFix,
    commands: deleteObject,
  },
  {
    id: 'node-requests-other-identity',
    holds: soundFor(kubeletClient, (situation) => foreignNode(situation) !== undefined),
    detail: (situation) =>
      `${quoted(situation.object.username ?? '')} requests the identity of ${quoted(foreignNode(situation) ?? '')}: only a node itself may renew its certificate`,
    fix: 'deny it, unless you know the reason; a renamed node must join again with a bootstrap token',
    commands: (situation) => commandLine`kcert csr deny ${wordOf(situation)}`,
  },
  {
    id: 'rbac-missing',
    holds: soundFor(kubeletClient, ({ nodeAccess }) => nodeAccess?.isAllowed === false),
    detail: ({ nodeAccess, object: { username = '', groups } }) =>
      `kube-controller-manager approves it if RBAC lets the requester create ${nodeAccess?.subresource}, and no binding gives ${quoted(username)} (${groups.join(', ')}) this right`,
    fix: (situation) =>
      commandLine`bind ${embed(boundSubject(situation).text)} to the ClusterRole ${nodeRole}:${situation.nodeAccess?.subresource}; kube-controller-manager then approves the request within ${longestRetrySeconds} s`,
    commands: (situation) => {
      const { subresource } = situation.nodeAccess ?? {}
      return [
        commandLine`kubectl create clusterrolebinding ${bindingName(subresource)} --clusterrole=${nodeRole}:${subresource} ${embed(boundSubject(situation).flag)}`,
      ]
    },
  },
  {
    id: 'rbac-unknown',
    weight: 'note',
    holds: soundFor(kubeletClient, ({ nodeAccess }) => nodeAccess === undefined),
    detail: (situation) =>
      `kube-controller-manager approves it if RBAC lets the requester create ${neededRight(situation)}; kcert could not check that`,
    fix: 'check it as a user with more rights',
    commands: (situation) => [accessCommand(situation.object, neededRight(situation))],
  },
  {
    id: 'controller-manager-down',
    holds: soundFor(kubeletClient, (situation) => isManagerAlive(situation) === false),
    detail: (situation) =>
      `kube-controller-manager, which approves kubelets' requests, does not run: ${managerText(situation)}`,
    fix: 'start it and read its logs; it then approves the request',
    commands: () => 'kubectl -n kube-system get pods -l component=kube-controller-manager -o wide',
  },
  {
    id: 'approver-off',
    holds: soundFor(kubeletClient, (situation) => isControllerOff(situation, 'approving')),
    detail: "the --controllers flag of kube-controller-manager disables its approver of kubelets' requests",
    fix: 'decide yourself, or enable csrapproving in --controllers',
    commands: decideByHand,
  },
  {
    id: 'approver-retries',
    weight: 'waiting',
    holds: soundFor(
      kubeletClient,
      (situation) =>
        situation.nodeAccess?.isAllowed === true &&
        foreignNode(situation) === undefined &&
        isManagerAlive(situation) !== false &&
        !isControllerOff(situation, 'approving'),
    ),
    detail: `RBAC allows it, so kube-controller-manager approves it at its next try, at most ${longestRetrySeconds} s from now`,
    fix: 'wait; if it stays pending, read the logs of kube-controller-manager, or approve it yourself',
    commands: (situation) => [
      commandLine`kcert csr fetch ${wordOf(situation)} --wait 20m --out node.crt`,
      commandLine`kcert csr approve ${wordOf(situation)}`,
    ],
  },
  {
    id: 'no-approver-for-serving',
    holds: soundFor(kubeletServing),
    detail: ({ approvers }) =>
      `Kubernetes has no approver for kubelets' serving certificates: it cannot know whether the names belong to the node${helpers(approvers)}`,
    fix: "compare the names with the Node's addresses and approve it; kcert csr approve --policy does that for all requests, also from cron",
    commands: decideByHand,
  },
  {
    id: 'waits-for-a-person',
    holds: soundFor(apiServerClient),
    detail: ({ approvers }) =>
      `Kubernetes has no approver for API server clients: a person must decide${helpers(approvers)}`,
    fix: 'check what it requests, then approve or deny it',
    commands: decideByHand,
  },
  {
    id: 'no-approver-for-signer',
    holds: pending(({ signedBy }) => signedBy === 'other-signer'),
    detail: ({ object, approvers }) =>
      `Kubernetes has no approver for ${quoted(object.signerName)}: a person or the signer's own approver must decide${helpers(approvers)}`,
    fix: 'check what it requests, then approve or deny it',
    commands: decideByHand,
  },
]

/** Returns the node whose identity another node requests. */
function foreignNode({ object, request }: Situation): string | undefined {
  const commonName = request?.subject.commonName
  return nodeNameOf(object.username) !== undefined && object.username !== commonName
    ? (commonName ?? '')
    : undefined
}

type NodeRight = 'selfnodeclient' | 'nodeclient'

function neededRight({ object, request }: Situation): NodeRight {
  return (object.username ?? '') === request?.subject.commonName ? 'selfnodeclient' : 'nodeclient'
}

/** Returns the subject to bind: the narrowest bootstrappers group, all nodes, or the user itself if it is in neither. */
function boundSubject({ object: { username = '', groups }, nodeAccess }: Situation) {
  const bootstrappers = groups
    .filter((group) => group.startsWith('system:bootstrappers'))
    .sort((one, other) => other.length - one.length)
  const group = nodeAccess?.subresource === 'selfnodeclient' ? nodesGroup : bootstrappers[0]
  return group === undefined
    ? { text: commandLine`the user ${username}`, flag: commandLine`--user=${username}` }
    : { text: commandLine`the group ${group}`, flag: commandLine`--group=${group}` }
}

// The names that kubeadm uses, so that the bindings are not created twice.
function bindingName(subresource: NodeRight | undefined): string {
  return subresource === 'selfnodeclient'
    ? 'kubeadm:node-autoapprove-certificate-rotation'
    : 'kubeadm:node-autoapprove-bootstrap'
}

const mostHolders = 5

function helpers(holders: readonly Holder[] | undefined): string {
  if (holders === undefined) return ''
  if (holders.length === 0) return '; RBAC allows no program to approve for this signer'
  const names = holders.slice(0, mostHolders).map(({ kind, name }) => `${kind} ${name}`)
  const more = holders.length > mostHolders ? `, and ${holders.length - mostHolders} more` : ''
  return `; these programs may approve, and may have skipped it or be down: ${names.join(', ')}${more}`
}
