import { isVisible } from '../../errors/hidden-text.ts'
import { type AdviceOrCommand, adviceFields } from '../../errors/kcert-error.ts'
import { isTooLongForTls, minorsOfKey } from '../../x509/go-keys.ts'
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
import { adviceOf, findSigner, mastersGroup, nodeNameOf } from '../signers.ts'
import type { SigningRequest } from '../signing-request.ts'
import type { Candidate } from './candidate.ts'
import { hiddenRequest } from './plain-request.ts'

// Rules that no approver may skip, whatever its policy says: each prevents an approved request from becoming more than it shows.
// All of them read only the object.

/** Returns functions that create the findings of one approval rule. */
export function approvalRule(id: string, duty: Duty) {
  const rule = { id, question: 'approval', duty } as const
  return {
    met: (detail: string): Finding => ({ ...rule, outcome: 'met', detail }),
    unmet: (detail: string, advice?: AdviceOrCommand): Finding => ({
      ...rule,
      outcome: 'unmet',
      detail,
      ...adviceFields(advice),
    }),
    unknown: (detail: string, advice: AdviceOrCommand): Finding => ({
      ...rule,
      outcome: 'unknown',
      detail,
      ...adviceFields(advice),
    }),
  }
}

/** Returns the findings of the rules common to all approvals. */
export function requestFindings(candidate: Candidate): Finding[] {
  const { object, request } = candidate
  return [
    possession(request),
    keyStrength(request),
    oneSubject(request),
    plainSubject(request),
    plainRequest(candidate),
    noMasters(request),
    noCa(object, request),
    plainNames(request),
    signable(object, request),
  ]
}

// The signature proves that the requester holds the key. The API server checks it when the object is created; kcert checks it
// again, because it approves the bytes.
function possession(request: CertificateRequest): Finding {
  const { met, unmet, unknown } = approvalRule('key-possession', 'identity')
  const verdict = request.verifySignature('possession')
  if (verdict.ok) return met('the request is signed with its own key')
  const fault = signatureFault(request, verdict.reason)
  return verdict.reason === 'cannot-be-checked'
    ? unknown(fault, { fix: 'check the signature with OpenSSL 3.5 (openssl req -verify -noout -in FILE)' })
    : unmet(fault, { fix: 'deny it: the requester may not hold the private key' })
}

const strongCurves: ReadonlySet<string> = new Set(['P-256', 'P-384', 'P-521'])

function keyStrength({ publicKey }: CertificateRequest): Finding {
  const { met, unmet } = approvalRule('key-strength', 'identity')
  const { algorithm, bits, curve } = publicKey
  const text = [nameOfOid(algorithm) ?? algorithm, curve ?? bits]
    .filter((part) => part !== undefined)
    .join(' ')
  const isStrong =
    algorithm === 'Ed25519' ||
    (algorithm === 'RSA' && (bits ?? 0) >= shortestRsaBits && !isTooLongForTls(publicKey)) ||
    strongCurves.has(curve ?? '')
  if (isStrong) return met(text)
  const minors = minorsOfKey(publicKey)
  const fault = ['RSA', 'ECDSA'].includes(algorithm)
    ? `${text} is too weak`
    : `Kubernetes does not support ${text} keys`
  return unmet(minors === undefined ? fault : `${text}, ${minors}`, {
    fix: 'create a new key: ECDSA P-256, or RSA with 2048 bits',
  })
}

// With two common names, Go takes the last one as the user, and other programs take the first.
function oneSubject({ subject, malformedExtensions }: CertificateRequest): Finding {
  const { met, unmet } = approvalRule('one-subject', 'identity')
  const names = subject.rdns.flat().filter(({ type }) => type === 'CN')
  if (names.length > 1) {
    const values = listed(names.map(({ value }) => value))
    return unmet(`common names ${values}`, { fix: 'create a new request with one common name' })
  }
  if (malformedExtensions.length > 0) {
    const detail = `extension ${malformedExtensions.join(', ')} cannot be read`
    return unmet(detail, { fix: 'create a new request without it' })
  }
  return met(quoted(subject.text))
}

// No rule or policy grants an OU or a user ID: a verifier that reads them would accept any value that a requester chooses.
function plainSubject({ subject }: CertificateRequest): Finding {
  const { met, unmet } = approvalRule('plain-subject', 'entitlement')
  const more = moreThanUserAndGroups(subject)
  return more.length === 0
    ? met('only CN and O')
    : unmet(`the subject has ${listed(more)}, which is not a string value of CN or O`, {
        fix: 'create a new request with only CN and O',
      })
}

function plainRequest(candidate: Candidate): Finding {
  const { met, unmet } = approvalRule('plain-request', 'entitlement')
  const fault = hiddenRequest(candidate)
  return fault === undefined
    ? met('one PEM block, without ignored parts')
    : unmet(fault, { fix: 'create a new request with only names and usages' })
}

function noMasters({ subject }: CertificateRequest): Finding {
  const { met, unmet } = approvalRule('no-system-masters', 'entitlement')
  if (!subject.organization.includes(mastersGroup)) return met(`it does not request ${mastersGroup}`)
  const fix = `deny it: ${mastersGroup} bypasses RBAC, and the certificate cannot be revoked`
  return unmet(`it requests O=${mastersGroup}`, { fix })
}

function noCa({ usages }: SigningRequest, { basicConstraints, keyUsage }: CertificateRequest): Finding {
  const { met, unmet } = approvalRule('no-ca', 'entitlement')
  const asked = [
    ...(basicConstraints?.ca === true ? ['CA:TRUE'] : []),
    ...(['keyCertSign', 'cRLSign'] as const).filter((usage) => keyUsage?.includes(usage)),
    ...usages.filter((usage) => usage === 'cert sign' || usage === 'crl sign'),
  ]
  return asked.length === 0
    ? met('it does not request a CA certificate')
    : unmet(`it requests ${listed(asked)}, which only a CA may have`, {
        fix: 'create a new request for a leaf certificate',
      })
}

// Names that programs read differently: for some, a NUL ends a name; for others, two mailboxes with a comma between them are one;
// and some resolve ".." in a URI.
function plainNames({ subject, subjectAltNames: { dns, email, uri, other } }: CertificateRequest): Finding {
  const { met, unmet } = approvalRule('plain-names', 'entitlement')
  const faults: readonly (readonly [odd: readonly string[], what: string])[] = [
    [other, 'of a type that Kubernetes does not support'],
    [
      [...hiddenSubjectValues(subject), ...[...dns, ...email, ...uri].filter((name) => !isVisible(name))],
      hidden,
    ],
    [dns.filter((name) => !isPlainDnsName(name)), 'not a DNS name'],
    [email.filter((name) => !isPlainMailbox(name)), 'not exactly one email address'],
    [uri.filter((name) => !isNormalUri(name)), 'not a normalized URI'],
  ]
  const [odd, what] = faults.find(([values]) => values.length > 0) ?? []
  return odd === undefined
    ? met('all names are well formed')
    : unmet(`${listed(odd)} is ${what}`, {
        fix: 'create a new request with names that every program reads the same way',
      })
}

const hidden = 'a name with a control or invisible character'

// A request that is approved and breaks a rule of the signer ends as Approved, Failed, and the requester must start again.
function signable({ signerName, usages }: SigningRequest, request: CertificateRequest): Finding {
  const { met, unmet } = approvalRule('signer-takes-it', 'entitlement')
  const signer = findSigner(signerName)
  if (signer === undefined) return met(`kcert does not know the rules of ${quoted(signerName)}`)
  for (const rule of signer.rules) {
    const fault = rule.fault({ request, usages })
    if (fault !== undefined)
      return unmet(`the signer requires ${rule.wants}, but ${fault}`, adviceOf(rule, request))
  }
  return met(`no rule of ${signerName} is broken`)
}

/** Returns the findings of a policy's limit on the number of SANs; none without a limit. */
export function nameCountFindings(
  { subjectAltNames: { dns, ip, email, uri } }: CertificateRequest,
  maxNames: number | undefined,
): Finding[] {
  if (maxNames === undefined) return []
  const { met, unmet } = approvalRule('name-count', 'entitlement')
  const count = dns.length + ip.length + email.length + uri.length
  const names = `${count} ${count === 1 ? 'name' : 'names'}`
  return [
    count <= maxNames
      ? met(names)
      : unmet(`${names}, and the policy allows ${maxNames}`, {
          fix: 'create a new request with fewer names, or raise maxNames in the policy',
        }),
  ]
}

/** Returns the finding for the rule that a node requests only its own identity; `fix` is for another one. */
export function ownIdentityFinding({ object: { username }, request }: Candidate, fix: string): Finding {
  const { met, unmet, unknown } = approvalRule('requester', 'identity')
  const { commonName = '' } = request.subject
  if (username === undefined)
    return unknown('the requester is unknown', { fix: 'check spec.username of the object' })
  return username === commonName
    ? met(`${quoted(username)} requests its own identity`)
    : unmet(`${quoted(username)} requests the identity of ${quoted(commonName)}`, { fix })
}

/** Returns the finding for the rule of every kubelet request: its common name is that of a node. */
export function nodeNameFinding({ request: { subject } }: Candidate): Finding {
  // Upstream compares only the prefix, and so signs for a node with an empty name.
  const { met, unmet } = approvalRule('node-name', 'identity')
  const { commonName = '' } = subject
  const node = nodeNameOf(commonName)
  if (node !== undefined && isSubdomain(node)) return met(quoted(node))
  const what = node === '' ? 'names no node' : 'is not system:node: and the name of a Node'
  const fix = 'create a new request whose common name is system:node: and the name of the Node'
  return unmet(`the common name ${quoted(commonName)} ${what}`, { fix })
}
