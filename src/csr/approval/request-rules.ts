import { isVisible } from '../../errors/hidden-text.ts'
import { minorsOfKey } from '../../x509/go-keys.ts'
import { nameOfOid } from '../../x509/oids.ts'
import {
  hiddenSubjectValues,
  isNormalUri,
  isPlainDnsName,
  isPlainMailbox,
  isSubdomain,
  moreThanUserAndGroups,
} from '../../x509/plain-names.ts'
import type { CertificateRequest } from '../../x509/request.ts'
import { signatureFault } from '../../x509/signature-fault.ts'
import { shortestRsaBits } from '../key-strength.ts'
import { listed, quoted } from '../quoting.ts'
import type { Duty, Finding } from '../rule.ts'
import { findSigner, mastersGroup, nodeNameOf } from '../signers.ts'
import type { SigningRequest } from '../signing-request.ts'
import { hiddenRequest } from './plain-request.ts'

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
export function requestFindings(candidate: Candidate): Finding[] {
  const { object, request } = candidate
  return [
    possession(request),
    keyStrength(request),
    oneSubject(request),
    plainSubject(request),
    plainRequest(candidate),
    noMasters(request),
    noAuthority(object, request),
    plainNames(request),
    signable(object, request),
  ]
}

// The signature is the proof that whoever made the request holds the key. The API server checks it when the object is made;
// it is checked again because the bytes are what is approved.
function possession(request: CertificateRequest): Finding {
  const id = 'key-possession'
  const verdict = request.verifySignature('possession')
  if (verdict.ok) return approvalFinding(id, 'identity', 'the request is signed with its own key')
  const fault = signatureFault(request, verdict.reason)
  return verdict.reason === 'cannot-be-checked'
    ? unknownFinding(id, 'identity', fault, 'check it with OpenSSL 3.5: openssl req -verify -noout -in FILE')
    : approvalFinding(id, 'identity', fault, 'deny it: whoever sent it may not hold the key')
}

const strongCurves: ReadonlySet<string> = new Set(['P-256', 'P-384', 'P-521'])

function keyStrength({ publicKey }: CertificateRequest): Finding {
  const { algorithm, bits, curve } = publicKey
  const text = [nameOfOid(algorithm) ?? algorithm, curve ?? bits]
    .filter((part) => part !== undefined)
    .join(' ')
  const isStrong =
    algorithm === 'Ed25519' || (algorithm === 'RSA' && bits! >= shortestRsaBits) || strongCurves.has(curve!)
  if (isStrong) return approvalFinding('key-strength', 'identity', text)
  const minors = minorsOfKey(publicKey)
  const fault = ['RSA', 'ECDSA'].includes(algorithm)
    ? `${text} is too weak`
    : `${text} keys are none that Kubernetes reads`
  return approvalFinding(
    'key-strength',
    'identity',
    minors === undefined ? fault : `${text}, ${minors}`,
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
      'create a new request with one common name',
    )
  }
  if (malformedExtensions.length > 0) {
    const detail = `extension ${malformedExtensions.join(', ')} cannot be read`
    return approvalFinding(id, 'identity', detail, 'create a new request without it')
  }
  return approvalFinding(id, 'identity', quoted(subject.text))
}

// No rule and no policy says who may have an OU or a user ID: a verifier that reads them takes them from whoever asks.
function plainSubject({ subject }: CertificateRequest): Finding {
  const id = 'plain-subject'
  const more = moreThanUserAndGroups(subject)
  return more.length === 0
    ? approvalFinding(id, 'entitlement', 'CN and O alone')
    : approvalFinding(
        id,
        'entitlement',
        `the subject has ${listed(more)} besides CN and O in text`,
        'create a new request with CN and O alone',
      )
}

function plainRequest(candidate: Candidate): Finding {
  const id = 'plain-request'
  const fault = hiddenRequest(candidate)
  return fault === undefined
    ? approvalFinding(id, 'entitlement', 'one PEM block, and everything in it is read')
    : approvalFinding(
        id,
        'entitlement',
        fault,
        'create a new request with the names and usages alone: kcert csr create',
      )
}

function noMasters({ subject }: CertificateRequest): Finding {
  const id = 'no-system-masters'
  if (!subject.organization.includes(mastersGroup))
    return approvalFinding(id, 'entitlement', `it does not ask for ${mastersGroup}`)
  const next = `never approve it: ${mastersGroup} is above RBAC, and the certificate cannot be revoked`
  return approvalFinding(id, 'entitlement', `it asks for O=${mastersGroup}`, next)
}

function noAuthority(
  { usages }: SigningRequest,
  { basicConstraints, keyUsage }: CertificateRequest,
): Finding {
  const id = 'no-authority'
  const asked = [
    ...(basicConstraints?.ca === true ? ['CA:TRUE'] : []),
    ...(['keyCertSign', 'cRLSign'] as const).filter((usage) => keyUsage?.includes(usage)),
    ...usages.filter((usage) => usage === 'cert sign' || usage === 'crl sign'),
  ]
  return asked.length === 0
    ? approvalFinding(id, 'entitlement', 'it does not ask to be a CA')
    : approvalFinding(
        id,
        'entitlement',
        `it asks for ${listed(asked)}, which only a CA has`,
        'create a new request for a leaf certificate',
      )
}

// Names that programs read differently: a NUL ends a name for some, two mailboxes with a comma between them are one for others, and
// ".." in a URI is followed by some.
function plainNames({ subject, subjectAltNames: { dns, email, uri, other } }: CertificateRequest): Finding {
  const id = 'plain-names'
  const faults: readonly (readonly [odd: readonly string[], what: string])[] = [
    [other, 'of a kind that Kubernetes does not know'],
    [
      [...hiddenSubjectValues(subject), ...[...dns, ...email, ...uri].filter((name) => !isVisible(name))],
      hidden,
    ],
    [dns.filter((name) => !isPlainDnsName(name)), 'no DNS name'],
    [email.filter((name) => !isPlainMailbox(name)), 'not exactly one email address'],
    [uri.filter((name) => !isNormalUri(name)), 'not a normalized URI'],
  ]
  const [odd, what] = faults.find(([values]) => values.length > 0) ?? []
  return odd === undefined
    ? approvalFinding(id, 'entitlement', 'all names are well formed')
    : approvalFinding(
        id,
        'entitlement',
        `${listed(odd)} is ${what}`,
        'create a new request with names that every program reads the same way',
      )
}

const hidden = 'a name with a control or invisible character'

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

/** Returns what came of a policy's limit to the number of alternative names; nothing where it has none. */
export function nameCountFindings(
  { subjectAltNames: { dns, ip, email, uri } }: CertificateRequest,
  maxNames: number | undefined,
): Finding[] {
  if (maxNames === undefined) return []
  const count = dns.length + ip.length + email.length + uri.length
  const names = `${count} ${count === 1 ? 'name' : 'names'}`
  return [
    count <= maxNames
      ? approvalFinding('name-count', 'entitlement', names)
      : approvalFinding(
          'name-count',
          'entitlement',
          `${names}, and the policy allows ${maxNames}`,
          'create a new request with fewer names, or raise maxNames of the policy',
        ),
  ]
}

/** Returns what came of the rule for every kubelet's request: its common name is that of a node. */
export function nodeNameFinding({ request: { subject } }: Candidate): Finding {
  // Upstream compares the prefix alone, and so signs for the node with the empty name.
  const id = 'node-name'
  const { commonName } = subject
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
    'create a new request: kcert csr create --kubelet-client NODE',
  )
}
