import { commandLine } from '../errors/command-line.ts'
import { isUsage, usages as knownUsages } from '../pki/usages.ts'
import { nameOfOid } from '../x509/oids.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { signatureFault } from '../x509/signature-fault.ts'
import { listed, quoted } from './quoting.ts'
import { objectNameDefect } from './request-name.ts'
import type { Finding } from './rule.ts'
import { signerNameDefect } from './signer-name.ts'
import {
  apiServerClient,
  kubeletClient,
  kubeletServing,
  legacyUnknown,
  mastersGroup,
  nodeNameOf,
  nodesGroup,
} from './signers.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

// Whether the API server accepts a new object: validation (k8s.io/kubernetes pkg/apis/certificates/validation) and the two
// admission plugins that check CSRs, CertificateSubjectRestriction and NodeRestriction.

/** The shortest lifetime that a request may ask for, in seconds. */
const shortestExpirationSeconds = 600
/** expirationSeconds is an int32. */
const longestExpirationSeconds = 2 ** 31 - 1

/** Returns one finding per rule of the API server, in the order in which it checks. */
export function admissionFindings(object: SigningRequest): Finding[] {
  const { request, fault } = readRequestContent(object.request)
  return [
    ...objectFindings(object),
    ...(fault ? [finding(fault.id, fault.detail, fault.fix)] : contentFindings(request)),
    ...usageFindings(object.usages),
    signerNameFinding(object.signerName),
    expirationFinding(object.expirationSeconds),
    ...(request
      ? [mastersFinding(object.signerName, request), ...nodeRestrictionFindings(object, request)]
      : []),
  ]
}

/** Returns a finding for a rule of the API server: met without `fix`, otherwise unmet. */
function finding(id: string, detail: string, fix?: string): Finding {
  const found = { id, question: 'admission', detail } as const
  return fix === undefined ? { ...found, outcome: 'met' } : { ...found, outcome: 'unmet', fix }
}

/** How a rule is broken: what is wrong, and what to change. */
type Fault = readonly [detail: string, fix: string]

/** Returns a finding with the detail `right` when there is no fault. */
function ruled(id: string, right: string, fault: Fault | false | undefined): Finding {
  return fault ? finding(id, ...fault) : finding(id, right)
}

const mostFaults = 3

function objectFindings({ apiVersion, name, generateName, faults = [] }: SigningRequest): Finding[] {
  // A bare PEM or DER request has no object.
  if (apiVersion === undefined) return []
  return [
    ruled(
      'api-version',
      apiVersion,
      apiVersion !== 'certificates.k8s.io/v1' && [
        apiVersion === '' ? 'the object has none' : quoted(apiVersion),
        'write apiVersion: certificates.k8s.io/v1',
      ],
    ),
    ruled(
      'object-form',
      'every field has its type, and the metadata is valid',
      faults.length > 0 && [faults.slice(0, mostFaults).join('; '), 'correct the manifest'],
    ),
    objectNameFinding(name, generateName),
  ]
}

function objectNameFinding(name = '', generateName = ''): Finding {
  const id = 'object-name'
  if (name === '' && generateName === '') return finding(id, 'the object has none', 'write metadata.name')
  const defect = objectNameDefect(name) ?? objectNameDefect(generateName)
  const fix = 'use lower-case letters, digits, "-" and "."'
  return ruled(id, quoted(name || `${generateName}…`), defect !== undefined && [defect, fix])
}

function contentFindings(request: CertificateRequest): Finding[] {
  const verdict = request.verifySignature()
  const { algorithm, curve, bits } = request.publicKey
  return [
    finding(
      'request-form',
      `PKCS#10 request for the key ${[nameOfOid(algorithm) ?? algorithm, curve ?? bits].filter(Boolean).join(' ')}`,
    ),
    ruled(
      'request-signature',
      'signed with the private key of the request',
      !verdict.ok && [
        signatureFault(request, verdict.reason),
        verdict.reason === 'bad-signature'
          ? 'create a new request with its own key'
          : 'create a key and a request that Kubernetes supports',
      ],
    ),
  ]
}

function usageFindings(usages: readonly string[]): Finding[] {
  const unknown = usages.filter((usage) => !isUsage(usage))
  const seen = new Set<string>()
  const doubled = usages.filter((usage) => seen.size === seen.add(usage).size)
  return [
    ruled(
      'usages-present',
      listed(usages),
      usages.length === 0 && ['spec.usages is empty', 'add usages, such as --usage "client auth"'],
    ),
    ruled(
      'usages-known',
      'all are usages of certificates.k8s.io',
      unknown.length > 0 && [
        `${listed(unknown)} is not one`,
        ['spell them as Kubernetes does', knownUsages.join(', ')].join(': '),
      ],
    ),
    ruled(
      'usages-once',
      'no usage is repeated',
      doubled.length > 0 && [`${listed(doubled)} is repeated`, 'list every usage once'],
    ),
  ]
}

function signerNameFinding(signerName: string): Finding {
  if (signerName === legacyUnknown) {
    const fix = `use ${apiServerClient}, ${kubeletClient}, ${kubeletServing}, or your own signer`
    return finding('signer-name', `${signerName} was removed with the v1beta1 API`, fix)
  }
  const defect = signerNameDefect(signerName)
  const fix = 'write a domain, "/" and a path, such as example.com/serving'
  return ruled('signer-name', signerName, defect !== undefined && [`${quoted(signerName)} ${defect}`, fix])
}

function expirationFinding(seconds: number | undefined): Finding {
  const id = 'expiration-seconds'
  if (seconds === undefined) return finding(id, 'not set: the signer decides')
  if (!Number.isInteger(seconds) || seconds > longestExpirationSeconds)
    return finding(id, `${seconds} is not a 32-bit number`, 'write whole seconds, such as 86400 for a day')
  const fix = 'use at least 600 seconds, or leave it out'
  const isShort = seconds < shortestExpirationSeconds
  return ruled(id, `${seconds}`, isShort && [`${seconds} is below ${shortestExpirationSeconds}`, fix])
}

/** The rule of CertificateSubjectRestriction. */
export function mastersFinding(signerName: string, request: CertificateRequest): Finding {
  const id = 'system-masters'
  if (!request.subject.organization.includes(mastersGroup)) return finding(id, 'not requested')
  return ruled(
    id,
    `forbidden for ${apiServerClient} alone`,
    signerName === apiServerClient && [
      `${signerName} with O=${mastersGroup} is forbidden`,
      'use another group and bind cluster-admin to it; deleting the binding then revokes the access',
    ],
  )
}

// NodeRestriction, which kubeadm enables: a node may request a certificate only for itself.
function nodeRestrictionFindings(
  { signerName, username, groups }: SigningRequest,
  request: CertificateRequest,
): Finding[] {
  const requester = nodeNameOf(username)
  const isNode = requester !== undefined && groups.includes(nodesGroup)
  if (isNode && requester === '') {
    const fix = 'give the node a client certificate with CN=system:node: and its name'
    return [finding('node-restriction', `the user ${quoted(username ?? '')} is a node without a name`, fix)]
  }
  if (!isNode || (signerName !== kubeletServing && signerName !== kubeletClient)) return []
  const commonName = request.subject.commonName ?? ''
  const right = `${username} requests its own name`
  return [
    ruled(
      'node-restriction',
      right,
      commonName !== username && [
        `${username} requests ${quoted(commonName)}`,
        commandLine`a node may only request CN=${username}`,
      ],
    ),
  ]
}
