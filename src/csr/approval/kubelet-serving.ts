import { commandLine } from '../../errors/command-line.ts'
import { isMappedIpv4 } from '../../x509/ip.ts'
import { listed } from '../quoting.ts'
import type { Finding } from '../rule.ts'
import { kubeletServing, nodeNameOf, nodesGroup } from '../signers.ts'
import { type Cidr, isInRanges, isSpecialAddress } from './addresses.ts'
import type { Candidate } from './candidate.ts'
import { evaluated, type OnViolation, outOfScope, type Policy, withLookups } from './policy.ts'
import {
  approvalRule,
  nameCountFindings,
  nodeNameFinding,
  ownIdentityFinding,
  requestFindings,
} from './request-rules.ts'
import { namesNotCompared, type ServingNameOptions, servingNameFindings } from './serving-names.ts'

export interface KubeletServingSettings extends Partial<ServingNameOptions> {
  readonly name?: string
  readonly onViolation?: OnViolation
  /** DNS names must end in one of these (".nodes.example.com") or be the Node's name; empty: the Node's name, alone or as first labels. */
  readonly dnsSuffixes?: readonly string[]
  /** IP addresses must be in one of these ranges; empty: any address of the Node. */
  readonly cidrs?: readonly Cidr[]
  /** The maximum number of names and addresses in a request. */
  readonly maxNames?: number
  /** The longest lifetime that a request may ask for, in seconds. Without one, the signer's lifetime applies. */
  readonly maxExpirationSeconds?: number
  readonly clusterDomain?: string
}

export type KubeletServingOptions = Required<Omit<KubeletServingSettings, Limits>> &
  Pick<KubeletServingSettings, Limits>
type Limits = 'maxExpirationSeconds' | 'maxNames'

/**
 * Returns the policy for kubelet serving certificates, for which Kubernetes has no approver. A node may request only its own
 * names and addresses. Without a cloud provider, the kubelet writes the addresses of its Node. So the policy refuses names of API
 * servers, Services and other nodes even when the Node lists them.
 */
export function kubeletServingPolicy(settings: KubeletServingSettings = {}): Policy {
  const options: KubeletServingOptions = {
    name: 'kubelet-serving',
    onViolation: 'ignore',
    names: 'node-or-served',
    dnsSuffixes: [],
    cidrs: [],
    apiServers: [],
    serviceCidrs: [],
    sharedAddresses: [],
    clusterDomain: 'cluster.local',
    ...settings,
  }
  const { name, onViolation, names } = options
  return {
    name,
    signerNames: [kubeletServing],
    lookups: ['nodes', 'cluster-addresses', ...(names === 'node' ? [] : (['served-certificates'] as const))],
    async evaluate(candidate, facts) {
      if (candidate.object.signerName !== kubeletServing)
        return outOfScope(name, `it is for ${kubeletServing}`)
      const findings = await withLookups(ownFindings(candidate, options), namesNotCompared, () =>
        servingNameFindings(candidate, facts, options),
      )
      return evaluated(name, findings, onViolation)
    },
  }
}

function ownFindings(candidate: Candidate, options: KubeletServingOptions): Finding[] {
  const { dns, ip, ipBytes } = candidate.request.subjectAltNames
  const { commonName = '' } = candidate.request.subject
  return [
    ...requestFindings(candidate),
    nodeNameFinding(candidate),
    ownIdentityFinding(candidate, commandLine`the kubelet itself must submit it, as ${commonName}`),
    groupFinding(candidate),
    namesFinding(
      'no-wildcard',
      dns.filter((name) => name.includes('*')),
      'a wildcard',
    ),
    namesFinding(
      'no-cluster-name',
      dns.filter((name) => isClusterName(name, options.clusterDomain)),
      'a cluster-internal name',
    ),
    namesFinding(
      'no-special-address',
      ip.filter((address, at) => isSpecialAddress(address) || isMapped(ipBytes[at])),
      'an address that no single node owns',
    ),
    dnsNamesFinding(candidate, options),
    ...rangeFindings(ip, options),
    ...nameCountFindings(candidate.request, options.maxNames),
    ...lifetimeFindings(candidate, options),
  ]
}

/** True for an IPv4-mapped IPv6 address; also true when the bytes are unavailable. */
function isMapped(bytes: Uint8Array | undefined): boolean {
  return bytes === undefined || isMappedIpv4(bytes)
}

function groupFinding({ object: { username, groups } }: Candidate): Finding {
  const { met, unmet, unknown } = approvalRule('requester-group', 'identity')
  if (username === undefined)
    return unknown('the groups of the requester are unknown', { fix: 'check spec.groups of the object' })
  return groups.includes(nodesGroup)
    ? met(`the requester is in ${nodesGroup}`)
    : unmet(`the requester is not in ${nodesGroup}`, {
        fix: commandLine`submit it with a kubelet's client certificate, which has O=${nodesGroup}`,
      })
}

function namesFinding(id: string, wrong: readonly string[], what: string): Finding {
  const { met, unmet } = approvalRule(id, 'entitlement')
  const fix = 'create a new request with only the names of the node'
  return wrong.length === 0 ? met(`no name is ${what}`) : unmet(`${listed(wrong)} is ${what}`, { fix })
}

/** True for the names under which clients reach API servers, Services, Pods and the host of a container. */
function isClusterName(name: string, clusterDomain: string): boolean {
  const plain = name.toLowerCase().replace(/\.$/, '')
  const domain = clusterDomain.toLowerCase()
  return (
    /^kubernetes(?:\.default(?:\.|$)|$)/.test(plain) ||
    /(?:^|\.)(?:svc|pod)$/.test(plain) ||
    /(?:^|\.)(?:localhost|docker\.internal|containers\.internal)$/.test(plain) ||
    plain === domain ||
    plain.endsWith(`.${domain}`)
  )
}

// The Node object lists its names, and its kubelet writes the Node object. Without a policy setting, a node owns only names that
// begin with the node name that the API server has authenticated.
function dnsNamesFinding({ request }: Candidate, { dnsSuffixes }: KubeletServingOptions): Finding {
  const node = nodeNameOf(request.subject.commonName) ?? ''
  const outside = request.subjectAltNames.dns.filter(
    (name) => !isOwnName(name.toLowerCase(), node, dnsSuffixes),
  )
  return limitFinding(
    'dns-suffix',
    outside,
    dnsSuffixes.length === 0
      ? `the node's name, alone or followed by a domain of two labels or more`
      : `in ${listed(dnsSuffixes)}`,
  )
}

function isOwnName(name: string, node: string, dnsSuffixes: readonly string[]): boolean {
  if (dnsSuffixes.some((suffix) => name.endsWith(dotted(suffix)))) return true
  // Pods find a Service of another namespace by SERVICE.NAMESPACE, so a name of two labels needs its suffix in the policy.
  if (name.split('.').length === 2) return false
  return name === node || (dnsSuffixes.length === 0 && name.startsWith(`${node}.`))
}

function dotted(suffix: string): string {
  const plain = suffix.toLowerCase()
  return plain.startsWith('.') ? plain : `.${plain}`
}

function rangeFindings(ip: readonly string[], { cidrs }: KubeletServingOptions): Finding[] {
  if (cidrs.length === 0) return []
  const outside = ip.filter((address) => !isInRanges(address, cidrs))
  return [limitFinding('cidr', outside, `in ${cidrs.map(({ text }) => text).join(', ')}`)]
}

function limitFinding(id: string, outside: readonly string[], where: string): Finding {
  const { met, unmet } = approvalRule(id, 'entitlement')
  const fix = `add it to ${id === 'cidr' ? 'cidrs' : 'dnsSuffixes'} of the policy if it belongs to the node; otherwise create a new request without it`
  return outside.length === 0 ? met(`all are ${where}`) : unmet(`${listed(outside)} is not ${where}`, { fix })
}

function lifetimeFindings(
  { object: { expirationSeconds } }: Candidate,
  { maxExpirationSeconds }: KubeletServingOptions,
): Finding[] {
  const { met, unmet } = approvalRule('lifetime', 'entitlement')
  if (maxExpirationSeconds === undefined) return []
  if (expirationSeconds === undefined) return [met('not set: the signer decides')]
  return [
    expirationSeconds <= maxExpirationSeconds
      ? met(`${expirationSeconds} s`)
      : unmet(`${expirationSeconds} s is more than ${maxExpirationSeconds} s`, {
          fix: commandLine`use --expiration-seconds ${maxExpirationSeconds} or less`,
        }),
  ]
}
