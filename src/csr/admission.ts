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

// Whether the API server takes a new object: validation (k8s.io/kubernetes pkg/apis/certificates/validation) and the two
// admission plugins that look into it, CertificateSubjectRestriction and NodeRestriction.

/** The shortest lifetime that may be asked for, in seconds. */
const shortestExpirationSeconds = 600
/** expirationSeconds is an int32. */
const longestExpirationSeconds = 2 ** 31 - 1

/** Returns what came of each of the API server's rules, in the order in which it checks. */
export function admissionFindings(object: SigningRequest): Finding[] {
  const { request, fault } = readRequestContent(object.request)
  return [
    ...objectFindings(object),
    ...(fault ? [finding(fault.id, fault.detail, fault.next)] : contentFindings(request)),
    ...usageFindings(object.usages),
    signerNameFinding(object.signerName),
    expirationFinding(object.expirationSeconds),
    ...(request ? restrictionFindings(object, request) : []),
  ]
}

/** A finding of the API server's: met without `next`, else unmet. */
function finding(id: string, detail: string, next?: string): Finding {
  const found = { id, question: 'admission', detail } as const
  return next === undefined ? { ...found, outcome: 'met' } : { ...found, outcome: 'unmet', next }
}

const mostFaults = 3

function objectFindings({ apiVersion, name, generateName, faults = [] }: SigningRequest): Finding[] {
  // A request that is still a file has no object around it yet.
  if (apiVersion === undefined) return []
  return [
    apiVersion === 'certificates.k8s.io/v1'
      ? finding('api-version', apiVersion)
      : finding(
          'api-version',
          apiVersion === '' ? 'the object has none' : quoted(apiVersion),
          'write apiVersion: certificates.k8s.io/v1',
        ),
    faults.length === 0
      ? finding('object-form', 'every field has its type, and the metadata is valid')
      : finding('object-form', faults.slice(0, mostFaults).join('; '), 'correct the manifest'),
    objectNameFinding(name, generateName),
  ]
}

function objectNameFinding(name = '', generateName = ''): Finding {
  const id = 'object-name'
  if (name === '' && generateName === '') return finding(id, 'the object has none', 'write metadata.name')
  const defect = objectNameDefect(name) ?? objectNameDefect(generateName)
  return defect === undefined
    ? finding(id, quoted(name || `${generateName}…`))
    : finding(id, defect, 'take lower-case letters, digits, "-" and "."')
}

function contentFindings(request: CertificateRequest): Finding[] {
  const verdict = request.verifySignature()
  const { algorithm, curve, bits } = request.publicKey
  return [
    finding(
      'request-form',
      `PKCS#10 request for the key ${[nameOfOid(algorithm) ?? algorithm, curve ?? bits].filter(Boolean).join(' ')}`,
    ),
    verdict.ok
      ? finding('request-signature', 'made with the private key of the request')
      : finding(
          'request-signature',
          signatureFault(request, verdict.reason),
          verdict.reason === 'bad-signature'
            ? 'create a new request with the key that belongs to it: kcert csr create --key FILE'
            : 'make a key and a request that Kubernetes reads: kcert csr create --key-out FILE',
        ),
  ]
}

function usageFindings(usages: readonly string[]): Finding[] {
  const unknown = usages.filter((usage) => !isUsage(usage))
  const doubled = usages.filter((usage, index) => usages.indexOf(usage) !== index)
  return [
    usages.length > 0
      ? finding('usages-present', listed(usages))
      : finding(
          'usages-present',
          'spec.usages is empty',
          'say what the certificate is for: --usage "client auth"',
        ),
    unknown.length === 0
      ? finding('usages-known', 'all are usages of certificates.k8s.io')
      : finding(
          'usages-known',
          `${listed(unknown)} is none`,
          ['spell them as Kubernetes does', knownUsages.join(', ')].join(': '),
        ),
    doubled.length === 0
      ? finding('usages-once', 'none stands twice')
      : finding('usages-once', `${listed(doubled)} stands more than once`, 'name every usage once'),
  ]
}

function signerNameFinding(signerName: string): Finding {
  if (signerName === legacyUnknown) {
    const next = `ask one of ${apiServerClient}, ${kubeletClient}, ${kubeletServing}, or a signer of your own`
    return finding('signer-name', `${signerName} ended with the v1beta1 API`, next)
  }
  const defect = signerNameDefect(signerName)
  return defect === undefined
    ? finding('signer-name', signerName)
    : finding(
        'signer-name',
        `${quoted(signerName)} ${defect}`,
        'write DOMAIN/NAME, such as example.com/serving',
      )
}

function expirationFinding(seconds: number | undefined): Finding {
  const id = 'expiration-seconds'
  if (seconds === undefined) return finding(id, 'not asked for: the signer decides')
  if (!Number.isInteger(seconds) || seconds > longestExpirationSeconds)
    return finding(id, `${seconds} is no 32-bit number`, 'write whole seconds, such as 86400 for a day')
  return seconds >= shortestExpirationSeconds
    ? finding(id, `${seconds}`)
    : finding(
        id,
        `${seconds} is below ${shortestExpirationSeconds}`,
        'ask for 600 seconds at least, or leave it out',
      )
}

function restrictionFindings(object: SigningRequest, request: CertificateRequest): Finding[] {
  return [mastersFinding(object.signerName, request), ...nodeRestrictionFindings(object, request)]
}

/** The rule of CertificateSubjectRestriction. */
export function mastersFinding(signerName: string, request: CertificateRequest): Finding {
  const id = 'system-masters'
  if (!request.subject.organization.includes(mastersGroup)) return finding(id, `not asked for`)
  return signerName === apiServerClient
    ? finding(
        id,
        `${signerName} with O=${mastersGroup} is forbidden`,
        'take another group and bind cluster-admin to it: such a certificate can be revoked by its binding',
      )
    : finding(id, `forbidden for ${apiServerClient} alone`)
}

// NodeRestriction, which kubeadm switches on: a node asks for itself.
function nodeRestrictionFindings(
  { signerName, username, groups }: SigningRequest,
  request: CertificateRequest,
): Finding[] {
  const requester = nodeNameOf(username)
  const isNode = requester !== undefined && groups.includes(nodesGroup)
  if (isNode && requester === '')
    return [
      finding(
        'node-restriction',
        `the user ${quoted(username!)} is a node without a name`,
        'give the node a client certificate with CN=system:node:NAME',
      ),
    ]
  if (!isNode || (signerName !== kubeletServing && signerName !== kubeletClient)) return []
  const commonName = request.subject.commonName ?? ''
  return [
    commonName === username
      ? finding('node-restriction', `${username} asks for itself`)
      : finding(
          'node-restriction',
          `${username} asks for ${quoted(commonName)}`,
          commandLine`a node may only ask for CN=${username}`,
        ),
  ]
}
