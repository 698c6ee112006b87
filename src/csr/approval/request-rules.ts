import { nameOfOid } from '../../x509/oids.ts'
import type { CertificateRequest } from '../../x509/request.ts'
import { signatureFault } from '../../x509/signature-fault.ts'
import { shortestRsaBits } from '../key-strength.ts'
import { listed, quoted } from '../quoting.ts'
import type { Duty, Finding } from '../rule.ts'
import { isDnsName, isSubdomain } from '../signer-name.ts'
import { findSigner, mastersGroup, nodeNameOf, nodesGroup } from '../signers.ts'
import type { SigningRequest } from '../signing-request.ts'

// What no approver should let through, whatever its policy says: each rule closes a way by which an approved request becomes
// more than it looks like. All of them read the object alone.

/** An object together with the request that stands in it. */
export interface Candidate {
  readonly object: SigningRequest
  readonly request: CertificateRequest
}

/** Returns a finding of an approver's. Met without `next`. */
export function approvalFinding(id: string, duty: Duty, detail: string, next?: string): Finding {
  const found = { id, question: 'approval', duty, detail } as const
  return next === undefined ? { ...found, outcome: 'met' } : { ...found, outcome: 'unmet', next }
}

export function unknownFinding(id: string, duty: Duty, detail: string, next: string): Finding {
  return { id, question: 'approval', duty, outcome: 'unknown', detail, next }
}

/** Returns what came of the rules that hold for every approval. */
export function requestFindings({ object, request }: Candidate): Finding[] {
  return [
    possession(request),
    keyStrength(request),
    oneSubject(request),
    noMasters(request),
    noAuthority(object, request),
    plainNames(request),
    signable(object, request),
  ]
}

// The signature is the proof that whoever made the request holds the key. The API server checks it when the object is made;
// it is checked again because the bytes are what is approved.
function possession(request: CertificateRequest): Finding {
  const verdict = request.verifySignature()
  return verdict.ok
    ? approvalFinding('key-possession', 'identity', 'the request is signed with its own key')
    : approvalFinding(
        'key-possession',
        'identity',
        signatureFault(verdict.reason),
        'deny it: whoever sent it may not hold the key',
      )
}

const strongCurves: ReadonlySet<string> = new Set(['P-256', 'P-384', 'P-521'])

function keyStrength({ publicKey }: CertificateRequest): Finding {
  const { algorithm, bits, curve } = publicKey
  const text = [nameOfOid(algorithm) ?? algorithm, curve ?? bits]
    .filter((part) => part !== undefined)
    .join(' ')
  const isStrong =
    algorithm === 'Ed25519' ||
    (algorithm === 'RSA' && bits! >= shortestRsaBits) ||
    (algorithm === 'ECDSA' && strongCurves.has(curve!))
  return isStrong
    ? approvalFinding('key-strength', 'identity', text)
    : approvalFinding(
        'key-strength',
        'identity',
        ['RSA', 'ECDSA'].includes(algorithm)
          ? `${text} is too weak`
          : `${text} keys are none that Kubernetes reads`,
        'make a new key: ECDSA P-256, or RSA of 2048 bits',
      )
}

// With two common names, Go takes the last one as the user and others the first.
function oneSubject({ subject, malformedExtensions }: CertificateRequest): Finding {
  const id = 'one-subject'
  const names = subject.rdns.flat().filter(({ type }) => type === 'CN')
  if (names.length > 1) {
    const values = listed(names.map(({ value }) => value))
    return approvalFinding(
      id,
      'identity',
      `common names ${values}`,
      'make the request anew with one common name',
    )
  }
  if (malformedExtensions.length > 0) {
    const detail = `extension ${malformedExtensions.join(', ')} cannot be read`
    return approvalFinding(id, 'identity', detail, 'make the request anew without it')
  }
  return approvalFinding(id, 'identity', quoted(subject.text))
}

function noMasters({ subject }: CertificateRequest): Finding {
  const id = 'no-system-masters'
  if (!subject.organization.includes(mastersGroup))
    return approvalFinding(id, 'entitlement', `it does not ask for ${mastersGroup}`)
  const next = `never approve it: ${mastersGroup} is above RBAC, and the certificate cannot be revoked`
  return approvalFinding(id, 'entitlement', `it asks for O=${mastersGroup}`, next)
}

function noAuthority({ usages }: SigningRequest, request: CertificateRequest): Finding {
  const id = 'no-authority'
  const signs = usages.filter((usage) => usage === 'cert sign' || usage === 'crl sign')
  const asksToBeCa =
    request.basicConstraints?.ca === true || request.keyUsage?.includes('keyCertSign') === true
  if (!asksToBeCa && signs.length === 0)
    return approvalFinding(id, 'entitlement', 'it does not ask to be a CA')
  const detail = asksToBeCa ? 'its extensions ask for a CA' : `it asks for ${listed(signs)}`
  return approvalFinding(id, 'entitlement', detail, 'make the request anew for a leaf certificate')
}

// A name that is no name is read differently by different programs.
function plainNames({ subjectAltNames: { dns, other } }: CertificateRequest): Finding {
  const id = 'plain-names'
  const next = 'make the request anew with DNS names and IP addresses alone'
  if (other.length > 0) return approvalFinding(id, 'entitlement', `it has ${listed(other)}`, next)
  const odd = dns.filter((name) => !isDnsName(name.replace(/^\*\./, '').toLowerCase()))
  return odd.length === 0
    ? approvalFinding(id, 'entitlement', 'all names are well formed')
    : approvalFinding(id, 'entitlement', `${listed(odd)} is no DNS name`, next)
}

// What is approved and then breaks a rule of the signer ends as Approved, Failed, and its owner must start anew.
function signable({ signerName, usages }: SigningRequest, request: CertificateRequest): Finding {
  const id = 'signer-takes-it'
  const signer = findSigner(signerName)
  if (signer === undefined)
    return approvalFinding(id, 'entitlement', `the rules of ${quoted(signerName)} are its owner's`)
  for (const rule of signer.rules) {
    const fault = rule.fault({ request, usages })
    if (fault !== undefined)
      return approvalFinding(id, 'entitlement', `the signer wants ${rule.wants}, but ${fault}`, rule.next)
  }
  return approvalFinding(id, 'entitlement', `no rule of ${signerName} is broken`)
}

/** Returns what came of the rules for every kubelet's request: a subject that is one existing kind of node, and nothing else. */
export function nodeSubjectFindings({ request: { subject } }: Candidate): Finding[] {
  return [nodeName(subject.commonName), plainSubject(subject.rdns.flat().map(({ type }) => type))]
}

// Upstream compares the prefix alone, and so signs for the node with the empty name.
function nodeName(commonName: string | undefined): Finding {
  const id = 'node-name'
  const node = nodeNameOf(commonName)
  if (node !== undefined && isSubdomain(node)) return approvalFinding(id, 'identity', quoted(node))
  const detail =
    node === ''
      ? `the common name ${quoted(commonName!)} names no node`
      : `the common name ${quoted(commonName ?? '')} is not system:node: and the name of a Node`
  return approvalFinding(
    id,
    'identity',
    detail,
    'make the request anew: kcert csr create --kubelet-client NODE',
  )
}

function plainSubject(types: readonly string[]): Finding {
  const more = types.filter((type) => type !== 'CN' && type !== 'O')
  return more.length === 0
    ? approvalFinding('plain-subject', 'identity', `CN and O=${nodesGroup} alone`)
    : approvalFinding(
        'plain-subject',
        'identity',
        `the subject has ${listed(more)} besides CN and O`,
        'make the request anew with CN and O alone, as kubelets do',
      )
}
