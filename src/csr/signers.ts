import { argumentVector, commandLine } from '../errors/command-line.ts'
import type { Advice } from '../errors/kcert-error.ts'
import { type Usage, usagesFor } from '../pki/usages.ts'
import { isSubdomain } from '../x509/plain-names.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { listed, quoted } from './quoting.ts'

// What each signer of kube-controller-manager (1.36) signs, as data (k8s.io/kubernetes pkg/controller/certificates/signer,
// pkg/apis/certificates/helpers.go). A request that breaks a rule after its approval gets the condition Failed, for good.

export const kubeletServing = 'kubernetes.io/kubelet-serving'
export const kubeletClient = 'kubernetes.io/kube-apiserver-client-kubelet'
export const apiServerClient = 'kubernetes.io/kube-apiserver-client'
export const legacyUnknown = 'kubernetes.io/legacy-unknown'

export const nodesGroup = 'system:nodes'
export const nodePrefix = 'system:node:'
export const mastersGroup = 'system:masters'

/** What a signer checks. */
export interface SignerInput {
  readonly request: CertificateRequest
  readonly usages: readonly string[]
}

/** One rule of a signer. A request meets it when `fault` finds nothing. */
export interface SignerRule {
  readonly id: string
  /** What the signer wants, as a fragment. */
  readonly wants: string
  /** Returns what the request has instead, as a fragment; undefined when it meets the rule. */
  readonly fault: (input: SignerInput) => string | undefined
  /** What to change. */
  readonly fix?: string
  /** The command that changes it, for a node and SANs. */
  readonly nextFor?: (node: string, names: CertificateRequest['subjectAltNames']) => string
}

export interface Signer {
  readonly name: string
  readonly purpose: 'client auth' | 'server auth' | undefined
  /** In the order in which the signer checks: the first fault becomes the message of the condition Failed. */
  readonly rules: readonly SignerRule[]
}

type AltNameKind = 'dns' | 'ip' | 'email' | 'uri'

const kindNames: Readonly<Record<AltNameKind, string>> = {
  dns: 'DNS names',
  ip: 'IP addresses',
  email: 'email addresses',
  uri: 'URIs',
}

type NodePreset = 'kubelet-client' | 'kubelet-serving'

function organizationIsNodes(preset: NodePreset): SignerRule {
  return {
    id: 'signer-organization',
    wants: `organization (O) exactly ${nodesGroup}`,
    fault: ({ request }) => {
      const { organization } = request.subject
      if (organization.length === 1 && organization[0] === nodesGroup) return undefined
      return organization.length === 0 ? 'the subject has none' : `the subject has ${listed(organization)}`
    },
    ...newRequest(preset),
  }
}

function commonNameIsNode(preset: NodePreset): SignerRule {
  return {
    id: 'signer-common-name',
    wants: `common name (CN) that begins with ${nodePrefix}`,
    fault: ({ request }) => {
      const commonName = request.subject.commonName ?? ''
      return commonName.startsWith(nodePrefix) ? undefined : `it is ${quoted(commonName)}`
    },
    ...newRequest(preset),
  }
}

/** The command that creates a request with the subject of a node, and the SANs that its signer requires. */
function newRequest(preset: NodePreset): Pick<SignerRule, 'nextFor'> {
  return {
    nextFor: (node, { dns, ip }) => {
      const keyFile = `${node}.key`
      if (preset === 'kubelet-client')
        return commandLine`kcert csr create --kubelet-client ${node} --key-out ${keyFile}`
      const names = [
        ...(dns.length === 0 ? [node] : dns).map((name) => ['--dns', name]),
        ...ip.map((one) => ['--ip', one]),
      ]
      return commandLine`kcert csr create --kubelet-serving ${node} ${argumentVector(names.flat())} --key-out ${keyFile}`
    },
  }
}

/**
 * Returns what to change in a request that breaks a rule; nothing where a command would need the name of a node that the request
 * does not have. The node is the one of its common name, or that name alone in the nodes' group.
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
  ...newRequest('kubelet-serving'),
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
    fix: commandLine`use --usage "digital signature" --usage "${purpose}", and --usage "key encipherment" for an RSA key`,
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
      organizationIsNodes('kubelet-client'),
      without('dns'),
      without('email'),
      without('ip'),
      without('uri'),
      commonNameIsNode('kubelet-client'),
      exactly('client auth'),
    ],
  },
  {
    name: kubeletServing,
    purpose: 'server auth',
    rules: [
      organizationIsNodes('kubelet-serving'),
      someAddress,
      without('email'),
      without('uri'),
      exactly('server auth'),
      commonNameIsNode('kubelet-serving'),
    ],
  },
  // Only for objects that were made by the v1beta1 API, which ended with Kubernetes 1.21.
  { name: legacyUnknown, purpose: undefined, rules: [] },
]

/** Returns the signer of kube-controller-manager with this name; undefined for all others. */
export function findSigner(name: string): Signer | undefined {
  return signers.find((signer) => signer.name === name)
}

/** Returns the usages to ask this signer for; undefined where kcert cannot know them. */
export function usagesForSigner(signerName: string, keyAlgorithm: string): readonly Usage[] | undefined {
  const purpose = findSigner(signerName)?.purpose
  return purpose && usagesFor(purpose, keyAlgorithm)
}

/** Returns the common name's node; undefined when it names none. Upstream lets an empty one through: it is returned as ''. */
export function nodeNameOf(commonName: string | undefined): string | undefined {
  return commonName?.startsWith(nodePrefix) ? commonName.slice(nodePrefix.length) : undefined
}

/** kube-controller-manager's --cluster-signing-duration when it is not set: a year of 365 days. */
export const defaultSigningDuration = 365 * 24 * 3600
