import { commandLine } from '../../errors/command-line.ts'
import { listed, quoted } from '../quoting.ts'
import type { Finding } from '../rule.ts'
import { nodeNameOf } from '../signers.ts'
import { type Cidr, canonicalIp, isInRanges, parseCidr } from './addresses.ts'
import type { Candidate } from './candidate.ts'
import type { ApprovalFacts, ClusterAddresses, NodeFacts } from './facts.ts'
import { approvalRule } from './request-rules.ts'

// Whether the names in a kubelet serving request belong to the node: the part of the policy that reads the cluster.

export type NameSource = 'node' | 'served' | 'node-or-served'

export interface ServingNameOptions {
  /** What the names are compared with: the Node's addresses, the certificate that the kubelet currently serves, or either. */
  readonly names: NameSource
  /** Addresses of API servers in addition to those that the cluster reports: load balancers, virtual addresses. */
  readonly apiServers: readonly string[]
  readonly serviceCidrs: readonly Cidr[]
  /** Names and addresses that several Nodes may have, such as the address of a NAT gateway. */
  readonly sharedAddresses: readonly string[]
}

/** Returns the findings of comparing the names with the Node, the served certificate, and the names of others. */
export async function servingNameFindings(
  candidate: Candidate,
  facts: ApprovalFacts,
  options: ServingNameOptions,
): Promise<Finding[]> {
  const name = nodeNameOf(candidate.request.subject.commonName) ?? ''
  const node = await facts.findNode(name)
  const exists = nodeFinding(name, node)
  if (node === undefined || node === 'absent') return [exists, namesNotCompared]
  return [
    exists,
    await ownNamesFinding(candidate, node, facts, options),
    await clusterFinding(candidate, node, facts, options),
    await othersFinding(candidate, node, facts, options),
  ]
}

/** The finding when no lookup was made. */
export const namesNotCompared: Finding = approvalRule('own-names', 'entitlement').unknown(
  'the names were not compared with a Node',
  {
    fix: 'check the request on the cluster (--cluster), or add --nodes nodes.json (kubectl get nodes -o json > nodes.json)',
  },
)

function nodeFinding(name: string, node: NodeFacts | 'absent' | undefined): Finding {
  const { met, unmet, unknown } = approvalRule('node-exists', 'identity')
  const observe = commandLine`kubectl get node ${name} -o yaml`
  if (node === undefined) return unknown(`the addresses of Node ${quoted(name)} are unknown`, observe)
  if (node !== 'absent') return met(`Node ${quoted(name)} exists`)
  return unmet(`Node ${quoted(name)} does not exist`, {
    fix: 'wait until the kubelet registers its Node; it then submits a new request',
  })
}

async function ownNamesFinding(
  candidate: Candidate,
  node: NodeFacts,
  facts: ApprovalFacts,
  { names }: ServingNameOptions,
): Promise<Finding> {
  if (names === 'served') return servedFinding(candidate, node, facts)
  const { met, unmet } = approvalRule('own-names', 'entitlement')
  const foreign = foreignToNode(candidate, node)
  if (foreign.length === 0) return met(`all names are among the addresses of Node ${quoted(node.name)}`)
  const detail = `${listed(foreign)} is not an address of Node ${quoted(node.name)}`
  const next = commandLine`kubectl get node ${node.name} -o jsonpath='{.status.addresses}'`
  if (names === 'node') return unmet(detail, next)
  const served = await servedFinding(candidate, node, facts)
  return served.outcome === 'met' ? served : { ...served, detail: `${detail}, and ${served.detail}`, next }
}

/**
 * Returns the names that the Node does not have. Kubelets request what their Node has: Hostname, InternalDNS and ExternalDNS as
 * DNS names, InternalIP and ExternalIP as addresses.
 */
function foreignToNode({ request }: Candidate, { addresses }: NodeFacts): string[] {
  const ownNames = new Set<string>()
  const ownIps = new Set<string>()
  for (const { type, address } of addresses) {
    const ip = canonicalIp(address)
    // A Hostname may be an IP address, and kubelets then request it as one.
    if (ip !== undefined && (type.endsWith('IP') || type === 'Hostname')) ownIps.add(ip)
    else if (type.endsWith('DNS') || type === 'Hostname') ownNames.add(address.toLowerCase())
  }
  const { dns, ip } = request.subjectAltNames
  return [
    ...dns.filter((name) => !ownNames.has(name.toLowerCase())),
    ...ip.filter((address) => !ownIps.has(address)),
  ]
}

// A renewal: if the server on the node's address presents a certificate of the cluster's CA, it was approved for these names
// before.
async function servedFinding(
  { object, request }: Candidate,
  node: NodeFacts,
  facts: ApprovalFacts,
): Promise<Finding> {
  const { met, unmet, unknown } = approvalRule('own-names', 'entitlement')
  const { name } = object
  const no = (detail: string): Finding =>
    unmet(detail, {
      fix: 'compare the names with the machine, then approve it by name',
      next: name === undefined ? undefined : commandLine`kcert csr approve ${name}`,
    })
  const served = await facts.readServedCertificate(node)
  if (served === undefined)
    return unknown(
      'the certificate that the kubelet serves is unknown',
      commandLine`kcert probe ${node.name}:10250`,
    )
  if (served === 'none') return no('the kubelet serves no certificate')
  const { certificate, isTrusted, reason } = served
  if (!isTrusted)
    return no(
      `the certificate that the kubelet serves is not trusted: ${reason ?? 'its chain does not verify'}`,
    )
  if (certificate.subject.commonName !== request.subject.commonName)
    return no(`the kubelet serves a certificate of ${quoted(certificate.subject.commonName ?? '')}`)
  const [now, asked] = [namesOf(certificate.subjectAltNames), namesOf(request.subjectAltNames)]
  const differ = [...asked, ...now].filter((name) => asked.has(name) !== now.has(name))
  return differ.length === 0
    ? met('the names are those of the certificate that the kubelet serves now')
    : no(`${listed(differ)} differs from the certificate that the kubelet serves now`)
}

function namesOf({
  dns,
  ip,
}: {
  readonly dns: readonly string[]
  readonly ip: readonly string[]
}): Set<string> {
  return new Set([...dns, ...ip].map(spelled))
}

// The cluster addresses where the policy already gives all of them.
const nothingMore: ClusterAddresses = { apiServers: [], serviceCidrs: [] }

async function clusterFinding(
  { request }: Candidate,
  node: NodeFacts,
  facts: ApprovalFacts,
  { apiServers, serviceCidrs }: ServingNameOptions,
): Promise<Finding> {
  const { met, unmet, unknown } = approvalRule('no-cluster-address', 'entitlement')
  const isSpelledOut = apiServers.length > 0 && serviceCidrs.length > 0
  const cluster = (await facts.readClusterAddresses()) ?? (isSpelledOut ? nothingMore : undefined)
  if (cluster === undefined) {
    const next = 'kubectl get servicecidrs; kubectl get endpoints kubernetes'
    return unknown(
      'the addresses of API servers and Services are unknown; you can set both under cluster: in the policy',
      next,
    )
  }
  const ranges = [...serviceCidrs, ...cluster.serviceCidrs.flatMap((text) => parseCidr(text) ?? [])]
  // A control-plane node has the address of its own API server. Kubelets cannot set the label that marks such a node.
  const known = new Set([...apiServers, ...(node.isControlPlane ? [] : cluster.apiServers)].map(spelled))
  const { dns, ip } = request.subjectAltNames
  const wrong = [...dns, ...ip].filter((name) => known.has(spelled(name)) || isInRanges(name, ranges))
  return wrong.length === 0
    ? met('no name belongs to an API server or a Service')
    : unmet(`${listed(wrong)} belongs to an API server or a Service`, {
        fix: 'deny it, and find out why the node claims this address',
      })
}

async function othersFinding(
  { request }: Candidate,
  node: NodeFacts,
  facts: ApprovalFacts,
  { sharedAddresses }: ServingNameOptions,
): Promise<Finding> {
  const { met, unmet, unknown } = approvalRule('no-other-node', 'entitlement')
  const shared = new Set(sharedAddresses.map(spelled))
  const { dns, ip } = request.subjectAltNames
  for (const name of [...dns, ...ip].filter((one) => !shared.has(spelled(one)))) {
    const owners = await facts.findNodesAt(name)
    if (owners === undefined) {
      const detail = `kcert could not check whether another Node has ${quoted(name)}`
      return unknown(detail, 'kubectl get nodes -o wide')
    }
    const others = owners.filter((owner) => owner !== node.name)
    if (others.length > 0) {
      const fix =
        'deny it, and find out which Node is wrong; if both are right, add the address to sharedAddresses of the policy'
      return unmet(`Node ${listed(others)} has ${quoted(name)} too`, { fix })
    }
  }
  return met('no other Node has one of these names')
}

/** Returns the canonical spelling of a name or address, for comparison. */
function spelled(text: string): string {
  return canonicalIp(text) ?? text.toLowerCase()
}
