import { commandLine } from '../../errors/command-line.ts'
import { listed, quoted } from '../quoting.ts'
import type { Finding } from '../rule.ts'
import { nodeNameOf } from '../signers.ts'
import { canonicalIp, isInRanges, parseCidr } from './addresses.ts'
import type { ApprovalFacts, ClusterAddresses, NodeFacts } from './facts.ts'
import type { KubeletServingOptions } from './kubelet-serving.ts'
import { approvalFinding, type Candidate, unknownFinding } from './request-rules.ts'

// Whether the names in a kubelet's serving request are the node's own: the part of the policy that looks into the cluster.

/** Returns what came of holding the names against the Node, the served certificate, and what belongs to others. */
export async function servingNameFindings(
  candidate: Candidate,
  facts: ApprovalFacts,
  options: KubeletServingOptions,
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
export const namesNotCompared: Finding = unknownFinding(
  'own-names',
  'entitlement',
  'the names were not held against a Node',
  'add --cluster for a request on the cluster; for a file add --nodes nodes.json after this: kubectl get nodes -o json > nodes.json',
)

function nodeFinding(name: string, node: NodeFacts | 'absent' | undefined): Finding {
  const id = 'node-exists'
  const look = commandLine`kubectl get node ${name} -o yaml`
  if (node === undefined)
    return unknownFinding(id, 'identity', `the addresses of Node ${quoted(name)} are not known`, look)
  if (node !== 'absent') return approvalFinding(id, 'identity', `there is a Node ${quoted(name)}`)
  return approvalFinding(
    id,
    'identity',
    `there is no Node ${quoted(name)}`,
    'wait until the kubelet has registered; it asks again',
  )
}

async function ownNamesFinding(
  candidate: Candidate,
  node: NodeFacts,
  facts: ApprovalFacts,
  { names }: KubeletServingOptions,
): Promise<Finding> {
  if (names === 'served') return servedFinding(candidate, node, facts)
  const id = 'own-names'
  const foreign = foreignToNode(candidate, node)
  if (foreign.length === 0)
    return approvalFinding(
      id,
      'entitlement',
      `all names are among the addresses of Node ${quoted(node.name)}`,
    )
  const detail = `${listed(foreign)} is none of the addresses of Node ${quoted(node.name)}`
  const next = commandLine`compare: kubectl get node ${node.name} -o jsonpath='{.status.addresses}'`
  if (names === 'node') return approvalFinding(id, 'entitlement', detail, next)
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
  const id = 'own-names'
  const next = commandLine`approve by hand once the names are seen to be right: kcert csr approve ${object.name ?? 'NAME'}`
  const no = (detail: string): Finding => approvalFinding(id, 'entitlement', detail, next)
  const served = await facts.readServedCertificate(node)
  if (served === undefined)
    return unknownFinding(
      id,
      'entitlement',
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
    ? approvalFinding(id, 'entitlement', 'the names are those of the certificate that the kubelet serves now')
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
  { apiServers, serviceCidrs }: KubeletServingOptions,
): Promise<Finding> {
  const id = 'no-cluster-address'
  const isSpelledOut = apiServers.length > 0 && serviceCidrs.length > 0
  const cluster = (await facts.readClusterAddresses()) ?? (isSpelledOut ? nothingMore : undefined)
  if (cluster === undefined) {
    const next =
      'name both under cluster: in the policy, or look: kubectl get servicecidrs; kubectl get endpoints kubernetes'
    return unknownFinding(id, 'entitlement', 'the addresses of API servers and services are not known', next)
  }
  const ranges = [...serviceCidrs, ...cluster.serviceCidrs.flatMap((text) => parseCidr(text) ?? [])]
  // A control-plane node has the address of its own API server. The label that says so is one that kubelets cannot set.
  const known = new Set([...apiServers, ...(node.isControlPlane ? [] : cluster.apiServers)].map(spelled))
  const { dns, ip } = request.subjectAltNames
  const wrong = [...dns, ...ip].filter((name) => known.has(spelled(name)) || isInRanges(name, ranges))
  return wrong.length === 0
    ? approvalFinding(id, 'entitlement', 'none belongs to an API server or a service')
    : approvalFinding(
        id,
        'entitlement',
        `${listed(wrong)} belongs to an API server or a service`,
        'deny it, and find out why the node says that this address is its own',
      )
}

async function othersFinding(
  { request }: Candidate,
  node: NodeFacts,
  facts: ApprovalFacts,
  { sharedAddresses }: KubeletServingOptions,
): Promise<Finding> {
  const id = 'no-other-node'
  const shared = new Set(sharedAddresses.map(spelled))
  const { dns, ip } = request.subjectAltNames
  for (const name of [...dns, ...ip].filter((one) => !shared.has(spelled(one)))) {
    const owners = await facts.findNodesAt(name)
    if (owners === undefined) {
      const detail = `whether another Node has ${quoted(name)} is not known`
      return unknownFinding(id, 'entitlement', detail, 'kubectl get nodes -o wide')
    }
    const others = owners.filter((owner) => owner !== node.name)
    if (others.length > 0) {
      const next =
        'deny it, and find out which of the two is mistaken or lies; where both are right: sharedAddresses of the policy'
      return approvalFinding(id, 'entitlement', `Node ${listed(others)} has ${quoted(name)} too`, next)
    }
  }
  return approvalFinding(id, 'entitlement', 'no other Node has one of them')
}

/** Returns the one spelling of a name or address by which it is compared. */
function spelled(text: string): string {
  return canonicalIp(text) ?? text.toLowerCase()
}
