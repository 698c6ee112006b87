import { argumentVector, commandLine } from '../errors/command-line.ts'
import type { Advice } from '../errors/kcert-error.ts'
import { type Usage, usagesFor } from '../pki/usages.ts'
import { isSubdomain } from '../x509/plain-names.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { listed, quoted } from './quoting.ts'

// The rules of each signer of kube-controller-manager (1.36), as data (k8s.io/kubernetes pkg/controller/certificates/signer,
// pkg/apis/certificates/helpers.go). A request that breaks a rule after its approval gets the condition Failed permanently.

export const kubeletServing = 'kubernetes.io/kubelet-serving'
export const kubeletClient = 'kubernetes.io/kube-apiserver-client-kubelet'
export const apiServerClient = 'kubernetes.io/kube-apiserver-client'
export const legacyUnknown = 'kubernetes.io/legacy-unknown'

export const nodesGroup = 'system:nodes'
export const nodePrefix = 'system:node:'
export const mastersGroup = 'system:masters'

export interface SignerInput {
  readonly request: CertificateRequest
  readonly usages: readonly string[]
}

/** One rule of a signer. A request meets it when `fault` returns undefined. */
export interface SignerRule {
  readonly id: string
  /** What the signer requires, as a fragment. */
  readonly wants: string
  /** Returns what the request has instead, as a fragment; undefined when it meets the rule. */
  readonly fault: (input: SignerInput) => string | undefined
  /** How to fix the request. */
  readonly fix?: string
  /** Returns the command that fixes it, for a node and SANs. */
  readonly nextFor?: (node: string, names: CertificateRequest['subjectAltNames']) => string
}

export interface Signer {
  readonly name: string
  readonly purpose: 'client auth' | 'server auth' | undefined
  /** In the order in which the signer checks: the first broken rule becomes the message of the condition Failed. */
  readonly rules: readonly SignerRule[]
}

type AltNameKind = 'dns' | 'ip' | 'email' | 'uri'

const kindNames: Readonly<Record<AltNameKind, string>> = {
  dns: 'DNS names',
  ip: 'IP addresses',
  email: 'email addresses',
  uri: 'URIs',
}

/** Returns the command that creates a request with the subject of a node and the SANs that its signer requires. */
type NextFor = NonNullable<SignerRule['nextFor']>

const newClientRequest: NextFor = (node) =>
  commandLine`kcert csr create --kubelet-client ${node} --key-out ${`${node}.key`}`

const newServingRequest: NextFor = (node, { dns, ip }) => {
  const names = [
    ...(dns.length === 0 ? [node] : dns).map((name) => ['--dns', name]),
    ...ip.map((one) => ['--ip', one]),
  ]
  return commandLine`kcert csr create --kubelet-serving ${node} ${argumentVector(names.flat())} --key-out ${`${node}.key`}`
}

function organizationIsNodes(nextFor: NextFor): SignerRule {
  return {
    id: 'signer-organization',
    wants: `organization (O) exactly ${nodesGroup}`,
    fault: ({ request }) => {
      const { organization } = request.subject
      if (organization.length === 1 && organization[0] === nodesGroup) return undefined
      return organization.length === 0 ? 'the subject has none' : `the subject has ${listed(organization)}`
    },
    nextFor,
  }
}

function commonNameIsNode(nextFor: NextFor): SignerRule {
  return {
    id: 'signer-common-name',
    wants: `common name (CN) that begins with ${nodePrefix}`,
    fault: ({ request }) => {
      const commonName = request.subject.commonName ?? ''
      return commonName.startsWith(nodePrefix) ? undefined : `it is ${quoted(commonName)}`
    },
    nextFor,
  }
}

/**
 * Returns how to fix a request that breaks a rule; no command when it needs a node name that the request does not have. The node
 * is the one in the common name, or the bare common name when the organization is system:nodes.
 */
export function adviceOf(
  { fix, nextFor }: SignerRule,
  { subject, subjectAltNames }: CertificateRequest,
): Advice {
  const { commonName = '', organization } = subject
  const node = nodeNameOf(commonName) ?? (organization.includes(nodesGroup) ? commonName : '')
  return nextFor !== undefined && isSubdomain(node) ? { next: nextFor(node, subjectAltNames) } : { fix }
}

function without(kind: AltNameKind): SignerRule {
  return {
    id: `signer-${kind}-names`,
    wants: `no ${kindNames[kind]} in the SANs`,
    fault: ({ request }) => {
      const names = request.subjectAltNames[kind]
      return names.length === 0 ? undefined : `it has ${listed(names)}`
    },
    fix: commandLine`create a new request without ${kindNames[kind]}`,
  }
}

const someAddress: SignerRule = {
  id: 'signer-address',
  wants: 'at least one DNS name or IP address in the SANs',
  fault: ({ request: { subjectAltNames } }) =>
    subjectAltNames.dns.length + subjectAltNames.ip.length > 0 ? undefined : 'it has neither',
  nextFor: newServingRequest,
}

function exactly(purpose: 'client auth' | 'server auth'): SignerRule {
  const needed: readonly string[] = ['digital signature', purpose]
  return {
    id: 'signer-usages',
    wants: `usages digital signature and ${purpose}, optionally key encipherment, and no other`,
    fault: ({ usages }) => {
      const rest = new Set(usages)
      rest.delete('key encipherment')
      const missing = needed.filter((usage) => !rest.delete(usage))
      return usageFault(missing, [...rest])
    },
    fix: `use --usage "digital signature" --usage "${purpose}", and --usage "key encipherment" for an RSA key`,
  }
}

const clientUsages: SignerRule = {
  id: 'signer-usages',
  wants: 'usage client auth, optionally digital signature and key encipherment, and no other',
  fault: ({ usages }) => {
    const rest = new Set(usages)
    const missing = rest.delete('client auth') ? [] : ['client auth']
    rest.delete('digital signature')
    rest.delete('key encipherment')
    return usageFault(missing, [...rest])
  },
  fix: 'use --usage "digital signature" --usage "client auth", and --usage "key encipherment" for an RSA key',
}

function usageFault(missing: readonly string[], foreign: readonly string[]): string | undefined {
  const faults = [
    ...(missing.length > 0 ? [`${listed(missing)} is missing`] : []),
    ...(foreign.length > 0 ? [`${listed(foreign)} is not allowed`] : []),
  ]
  return faults.length === 0 ? undefined : faults.join(', ')
}

/** The signers that kube-controller-manager runs. */
export const signers: readonly Signer[] = [
  { name: apiServerClient, purpose: 'client auth', rules: [clientUsages] },
  {
    name: kubeletClient,
    purpose: 'client auth',
    rules: [
      organizationIsNodes(newClientRequest),
      without('dns'),
      without('email'),
      without('ip'),
      without('uri'),
      commonNameIsNode(newClientRequest),
      exactly('client auth'),
    ],
  },
  {
    name: kubeletServing,
    purpose: 'server auth',
    rules: [
      organizationIsNodes(newServingRequest),
      someAddress,
      without('email'),
      without('uri'),
      exactly('server auth'),
      commonNameIsNode(newServingRequest),
    ],
  },
  // Only for objects of the v1beta1 API, last served by Kubernetes 1.21.
  { name: legacyUnknown, purpose: undefined, rules: [] },
]

/** Returns the signer of kube-controller-manager with this name; undefined for other names. */
export function findSigner(name: string): Signer | undefined {
  return signers.find((signer) => signer.name === name)
}

/** Returns the usages to request from this signer; undefined for a signer that is unknown to kcert. */
export function usagesForSigner(signerName: string, keyAlgorithm: string): readonly Usage[] | undefined {
  const purpose = findSigner(signerName)?.purpose
  return purpose && usagesFor(purpose, keyAlgorithm)
}

/** Returns the node name in a common name; undefined when it has none. Upstream accepts an empty one: it is returned as ''. */
export function nodeNameOf(commonName: string | undefined): string | undefined {
  return commonName?.startsWith(nodePrefix) ? commonName.slice(nodePrefix.length) : undefined
}

/** The default of kube-controller-manager's --cluster-signing-duration: a year of 365 days. */
export const defaultSigningDuration = 365 * 24 * 3600
