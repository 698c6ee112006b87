import { commandLine } from '../../errors/command-line.ts'
import { listed, quoted } from '../quoting.ts'
import type { Finding } from '../rule.ts'
import { nodeNameOf } from '../signers.ts'
import { type Cidr, canonicalIp, isInRanges, parseCidr } from './addresses.ts'
import type { Candidate } from './candidate.ts'
import type { ApprovalFacts, ClusterAddresses, NodeFacts } from './facts.ts'
import { approvalRule } from './request-rules.ts'

// Whether the names in a kubelet's serving request are the node's own: the part of the policy that looks into the cluster.

export type NameSource = 'node' | 'served' | 'node-or-served'

export interface ServingNameOptions {
  /** What the names are held against: the Node's addresses, the certificate that the kubelet serves now, or either. */
  readonly names: NameSource
  /** Addresses of API servers besides those that the cluster tells: load balancers, virtual addresses. */
  readonly apiServers: readonly string[]
  readonly serviceCidrs: readonly Cidr[]
  /** Names and addresses that several Nodes may have, such as the address of a NAT gateway. */
  readonly sharedAddresses: readonly string[]
}

/** Returns what came of holding the names against the Node, the served certificate, and what belongs to others. */
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

/** Stands where nothing was looked up. */
export const namesNotCompared: Finding = approvalRule('own-names', 'entitlement').unknown(
  'the names were not held against a Node',
  'add --cluster for a request on the cluster; for a file add --nodes nodes.json after this: kubectl get nodes -o json > nodes.json',
)

function nodeFinding(name: string, node: NodeFacts | 'absent' | undefined): Finding {
  const { met, unmet, unknown } = approvalRule('node-exists', 'identity')
  const observe = commandLine`kubectl get node ${name} -o yaml`
  if (node === undefined) return unknown(`the addresses of Node ${quoted(name)} are not known`, observe)
  if (node !== 'absent') return met(`there is a Node ${quoted(name)}`)
  return unmet(`there is no Node ${quoted(name)}`, 'wait until the kubelet has registered; it asks again')
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
  const detail = `${listed(foreign)} is none of the addresses of Node ${quoted(node.name)}`
  const next = commandLine`compare: kubectl get node ${node.name} -o jsonpath='{.status.addresses}'`
  if (names === 'node') return unmet(detail, next)
  const served = await servedFinding(candidate, node, facts)
  return served.outcome === 'met' ? served : { ...served, detail: `${detail}, and ${served.detail}`, next }
}

/** Kubelets ask for what their Node has: Hostname, InternalDNS and ExternalDNS as names, InternalIP and ExternalIP as addresses. */
function foreignToNode({ request }: Candidate, { addresses }: NodeFacts): string[] {
  const ownNames = new Set<string>()
  const ownIps = new Set<string>()
  for (const { type, address } of addresses) {
    const ip = canonicalIp(address)
    // A Hostname may be an address, and then kubelets ask for it as one.
    if (ip !== undefined && (type.endsWith('IP') || type === 'Hostname')) ownIps.add(ip)
    else if (type.endsWith('DNS') || type === 'Hostname') ownNames.add(address.toLowerCase())
  }
  const { dns, ip } = request.subjectAltNames
  return [
    ...dns.filter((name) => !ownNames.has(name.toLowerCase())),
    ...ip.filter((address) => !ownIps.has(address)),
  ]
}

// A renewal: whoever serves on the node's address with a certificate of the cluster's CA already was approved for these names.
async function servedFinding(
  { object, request }: Candidate,
  node: NodeFacts,
  facts: ApprovalFacts,
): Promise<Finding> {
  const { met, unmet, unknown } = approvalRule('own-names', 'entitlement')
  const next = commandLine`approve by hand once the names are seen to be right: kcert csr approve ${object.name ?? 'NAME'}`
  const no = (detail: string): Finding => unmet(detail, next)
  const served = await facts.readServedCertificate(node)
  if (served === undefined)
    return unknown(
      'the certificate that the kubelet serves is not known',
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

// What the cluster tells where the policy has told all.
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
    const next =
      'name both under cluster: in the policy, or look: kubectl get servicecidrs; kubectl get endpoints kubernetes'
    return unknown('the addresses of API servers and services are not known', next)
  }
  const ranges = [...serviceCidrs, ...cluster.serviceCidrs.flatMap((text) => parseCidr(text) ?? [])]
  // A control-plane node has the address of its own API server. The label that says so is one that kubelets cannot set.
  const known = new Set([...apiServers, ...(node.isControlPlane ? [] : cluster.apiServers)].map(spelled))
  const { dns, ip } = request.subjectAltNames
  const wrong = [...dns, ...ip].filter((name) => known.has(spelled(name)) || isInRanges(name, ranges))
  return wrong.length === 0
    ? met('none belongs to an API server or a service')
    : unmet(
        `${listed(wrong)} belongs to an API server or a service`,
        'deny it, and find out why the node says that this address is its own',
      )
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
      const detail = `whether another Node has ${quoted(name)} is not known`
      return unknown(detail, 'kubectl get nodes -o wide')
    }
    const others = owners.filter((owner) => owner !== node.name)
    if (others.length > 0) {
      const next =
        'deny it, and find out which of the two is mistaken or lies; where both are right: sharedAddresses of the policy'
      return unmet(`Node ${listed(others)} has ${quoted(name)} too`, next)
    }
  }
  return met('no other Node has one of them')
}

/** Returns the one spelling of a name or address by which it is compared. */
function spelled(text: string): string {
  return canonicalIp(text) ?? text.toLowerCase()
}
