import { commandLine } from '../../errors/command-line.ts'
import { quoted } from '../quoting.ts'
import type { Finding } from '../rule.ts'
import { kubeletClient, nodeNameOf } from '../signers.ts'
import type { Candidate } from './candidate.ts'
import type { ApprovalFacts } from './facts.ts'
import { accessCommand, nodeAccessOf } from './node-access.ts'
import { evaluated, type OnViolation, outOfScope, type Policy, withLookups } from './policy.ts'
import { approvalRule, nodeNameFinding, ownIdentityFinding, requestFindings } from './request-rules.ts'

export interface KubeletClientSettings {
  readonly name?: string
  readonly onViolation?: OnViolation
  /**
   * Approve a first certificate only while no Node of that name exists, so that a stolen bootstrap token cannot take over a node.
   */
  readonly newNodesOnly?: boolean
}

/**
 * Returns the policy of kube-controller-manager's csrapproving for kubelet client certificates. The request must have the right
 * form, and RBAC must let its requester create the subresource selfnodeclient (a node for itself) or nodeclient (a bootstrapping
 * client). Stricter in one point: a node never gets another node's name, whatever RBAC allows.
 */
export function kubeletClientPolicy(settings: KubeletClientSettings = {}): Policy {
  const { name = 'kubelet-client', onViolation = 'ignore', newNodesOnly = false } = settings
  return {
    name,
    signerNames: [kubeletClient],
    lookups: newNodesOnly ? ['access', 'nodes'] : ['access'],
    async evaluate(candidate, facts) {
      const { signerName } = candidate.object
      if (signerName !== kubeletClient) return outOfScope(name, `it is for ${kubeletClient}`)
      const own = [...requestFindings(candidate), nodeNameFinding(candidate), requesterFinding(candidate)]
      const findings = await withLookups(own, notAsked, () => lookup(candidate, facts, newNodesOnly))
      return evaluated(name, findings, onViolation)
    },
  }
}

const notAsked = approvalRule('access-review', 'entitlement').unknown(
  'not checked, because another rule is broken',
  { fix: 'correct the broken rule first' },
)

function requesterFinding(candidate: Candidate): Finding {
  const { username } = candidate.object
  if (username !== undefined && nodeNameOf(username) === undefined)
    return approvalRule('requester', 'identity').met(`${quoted(username)} bootstraps a node`)
  return ownIdentityFinding(candidate, 'deny it: a node must not get the identity of another node')
}

async function lookup(candidate: Candidate, facts: ApprovalFacts, newNodesOnly: boolean): Promise<Finding[]> {
  const isRenewal = candidate.object.username === candidate.request.subject.commonName
  return [
    await accessFinding(candidate, facts, isRenewal),
    ...(newNodesOnly && !isRenewal ? [await newNodeFinding(candidate, facts)] : []),
  ]
}

async function accessFinding(
  { object, request }: Candidate,
  facts: ApprovalFacts,
  isRenewal: boolean,
): Promise<Finding> {
  const { met, unmet, unknown } = approvalRule('access-review', 'entitlement')
  const user = object.username ?? ''
  const { subresource, isAllowed } = await nodeAccessOf(object, request.subject.commonName, facts)
  if (isAllowed === true) return met(`RBAC lets ${quoted(user)} create ${subresource}`)
  if (isAllowed === undefined) {
    const next = accessCommand(object, subresource)
    const who = user === '' ? 'the requester' : quoted(user)
    const detail = `kcert could not check whether RBAC lets ${who} create ${subresource}`
    return unknown(detail, next)
  }
  const asked = isRenewal ? 'selfnodeclient or nodeclient' : 'nodeclient'
  const detail = `RBAC does not let ${quoted(user)} create ${asked}`
  const role = `system:certificates.k8s.io:certificatesigningrequests:${subresource}`
  const fix = `bind the requester's group to the ClusterRole ${role} if it should have this right`
  return unmet(detail, { fix })
}

async function newNodeFinding({ request }: Candidate, facts: ApprovalFacts): Promise<Finding> {
  const { met, unmet, unknown } = approvalRule('new-node', 'entitlement')
  const name = nodeNameOf(request.subject.commonName) ?? ''
  const node = await facts.findNode(name)
  if (node === 'absent') return met(`Node ${quoted(name)} does not exist yet`)
  if (node === undefined)
    return unknown(
      `kcert could not check whether Node ${quoted(name)} exists`,
      commandLine`kubectl get node ${name}`,
    )
  const next = commandLine`kubectl delete node ${name}`
  return unmet(
    `Node ${quoted(name)} exists already; if the machine is being set up again, delete the Node first`,
    next,
  )
}
