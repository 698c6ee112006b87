import { type KubeadmKubeconfig, type KubeadmLeaf, systemMasters } from '../../pki/kubeadm.ts'
import { nodeGroup, nodeUserPrefix } from '../../pki/kubelet.ts'
import type { Certificate } from '../../x509/certificate.ts'
import { isTooLongForTls, minorsOfKey, unknownBefore138 } from '../../x509/go-keys.ts'
import { isMlDsa } from '../../x509/ml-dsa.ts'
import { userUidFault } from '../../x509/name.ts'
import { nameOfOid } from '../../x509/oids.ts'
import type { PublicKeyInfo } from '../../x509/public-key.ts'
import { kubeadmKubeconfigOf, reissueAdvice, renewalAdvice } from '../advice.ts'
import type { CertificateEntry, Role } from '../entries.ts'
import { algorithmText } from '../entry-reports.ts'
import { type ProblemCode, problemAt } from '../problems.ts'
import type { Problem } from '../report.ts'
import type { CertificateCheck } from './check.ts'

/** Finds keys that are too small, or that Kubernetes does not support. */
const checkKeyStrength: CertificateCheck = (entry, role, { links }) => {
  const { certificate, group } = entry
  const { publicKey } = certificate
  // A root is trusted and not sent: Go uses it with any key length.
  const isSent = (): boolean =>
    !(certificate.isCa && links.isSelfSigned(certificate)) || group.owner.kind === 'served'
  const weakness = isTooLongForTls(publicKey) && !isSent() ? undefined : keyWeakness(publicKey)
  if (weakness === undefined) return undefined
  return problemAt(entry, 'KEY_WEAK', {
    message: weakness,
    ...reissueAdvice('reissue it with an RSA key of 2048 to 8192 bits, or ECDSA P-256', entry, role, 'wrong'),
  })
}

function keyWeakness(key: PublicKeyInfo): string | undefined {
  const { algorithm, bits, curve } = key
  const minors = minorsOfKey(key)
  if (algorithm === 'RSA' && bits !== undefined && bits < 2048) {
    return `RSA key of ${bits} bits${minors === undefined ? '' : `, ${minors}`}; the minimum is 2048`
  }
  if (isTooLongForTls(key)) return `RSA key of ${bits} bits, ${minors}`
  if (algorithm === 'ECDSA' && curve === 'P-224') return 'ECDSA key on curve P-224; the minimum is P-256'
  if (goodAlgorithms.has(algorithm)) return undefined
  return `${algorithmText(algorithm)} key, ${minors ?? 'which Go, and so Kubernetes, does not support'}`
}

const goodAlgorithms: ReadonlySet<string> = new Set(['RSA', 'ECDSA', 'Ed25519'])

/** Finds critical extensions that Go does not handle. Go rejects each chain with such an extension. */
const checkCriticalExtensions: CertificateCheck = (entry, role) => {
  const { unhandledCriticalExtensions: unknown, isCa } = entry.certificate
  if (unknown.length === 0) return undefined
  const names = unknown.map((oid) => nameOfOid(oid) ?? oid).join(', ')
  const what = `${unknown.length === 1 ? 'a critical extension' : 'critical extensions'} that Go does not support`
  return problemAt(entry, 'CRITICAL_EXTENSION_UNKNOWN', {
    message: `${what}, ${names}: Kubernetes rejects ${isCa ? 'each chain with this CA' : 'the certificate'}`,
    ...(isCa
      ? { fix: 'replace the CA with one without the extension, or with the extension not critical' }
      : reissueAdvice(
          'reissue it without the extension, or with the extension not critical',
          entry,
          role,
          'misissued',
        )),
    ...(role.isRecord && { severity: 'info' }),
  })
}

/** Finds signatures with SHA-1 or MD5, except that of a root, which is not verified. */
const checkSignatureStrength: CertificateCheck = (entry, role, { links }) => {
  const { certificate } = entry
  if (!isWeakSignature(certificate.signatureAlgorithm) || links.isSelfSigned(certificate)) return undefined
  return problemAt(entry, 'SIGNATURE_WEAK', {
    message: `signed with ${certificate.signatureAlgorithm}, which Kubernetes rejects`,
    ...reissueAdvice('reissue it with SHA-256', entry, role, 'wrong'),
  })
}

/** Finds ML-DSA signatures below a CA. For a certificate with an ML-DSA key, KEY_WEAK already reports it. */
const checkSignatureSupport: CertificateCheck = (entry, role, { links }) => {
  const { certificate } = entry
  const { signatureAlgorithm: algorithm, publicKey } = certificate
  if (!isMlDsa(algorithm) || isMlDsa(publicKey.algorithm) || links.isSelfSigned(certificate)) return undefined
  return problemAt(entry, 'SIGNATURE_UNSUPPORTED', {
    message: `signed with ${algorithm}, which ${unknownBefore138}`,
    ...reissueAdvice('reissue it from a CA with a key of ECDSA P-256 or RSA', entry, role, 'wrong'),
  })
}

const signingUsages: ReadonlySet<string> = new Set([
  'digitalSignature',
  'nonRepudiation',
  'keyCertSign',
  'cRLSign',
])

/** Finds key usages that an ML-DSA key must not have (RFC 9881 section 5). */
const checkKeyUsage: CertificateCheck = (entry) => {
  const { publicKey, keyUsage = [] } = entry.certificate
  if (!isMlDsa(publicKey.algorithm)) return undefined
  const unfit = keyUsage.filter((usage) => !signingUsages.has(usage))
  if (unfit.length === 0) return undefined
  return problemAt(entry, 'KEY_USAGE_UNFIT', {
    message: `its key usage has ${unfit.join(' and ')}, which RFC 9881 forbids for an ML-DSA key; kubeadm up to 1.37 sets keyEncipherment in every certificate`,
    fix: 'omit these usages when you reissue it',
  })
}

const weakSignatures = new Map<string, boolean>()

/** By the name of the algorithm, or its OID if it has no name. There are few algorithms, and 10,000 certificates use the same. */
function isWeakSignature(algorithm: string): boolean {
  const known = weakSignatures.get(algorithm)
  if (known !== undefined) return known
  const isWeak = /md[245]|sha-?1(?!\d)/i.test(algorithm)
  if (weakSignatures.size < 100) weakSignatures.set(algorithm, isWeak)
  return isWeak
}

/** A serving certificate needs SANs. */
const checkAltNames: CertificateCheck = (entry, role) => {
  const { certificate } = entry
  const serves = role.usages.includes('serverAuth')
  if (certificate.isCa || (!serves && !certificate.extendedKeyUsage.includes('serverAuth'))) return undefined
  if (certificate.hasHostNames) return undefined
  const { uri, email, other } = certificate.subjectAltNames
  const others = uri.length + email.length + other.length > 0
  return problemAt(entry, 'SAN_MISSING', {
    message: `no ${others ? 'DNS name or IP address in its SANs' : 'SANs (subject alternative names)'}; clients ignore the common name`,
    ...reissueAdvice(
      'reissue it with the DNS names and IP addresses that clients use',
      entry,
      role,
      'misissued',
    ),
    severity: serves ? 'critical' : undefined,
  })
}

/** Compares with the role's requirements: the usages of a leaf, the extensions of a CA. */
const checkUsages: CertificateCheck = (entry, role) => {
  const { certificate } = entry
  const fault = role.row?.kind === 'ca' ? caFault(certificate) : leafFault(certificate, role)
  return misissued(entry, role, 'ROLE_USAGE_WRONG', fault)
}

function misissued(
  entry: CertificateEntry,
  role: Role,
  code: ProblemCode,
  message: string | undefined,
): Problem | undefined {
  if (message === undefined) return undefined
  return problemAt(entry, code, { message, ...renewalAdvice(entry, role, 'misissued') })
}

function caFault({ isCa, keyUsage }: Certificate): string | undefined {
  if (!isCa) return 'not a CA: its basic constraints lack CA:TRUE, so no certificate that it signs is valid'
  return keyUsage === undefined || keyUsage.includes('keyCertSign')
    ? undefined
    : 'its key usage lacks keyCertSign, so no certificate that it signs is valid'
}

function leafFault({ extendedKeyUsage }: Certificate, { usages, name }: Role): string | undefined {
  // An absent extension allows every use.
  if (extendedKeyUsage.length === 0 || extendedKeyUsage.includes('anyExtendedKeyUsage')) return undefined
  const missing = usages.filter((usage) => !extendedKeyUsage.includes(usage))
  if (missing.length === 0) return undefined
  return `${name ?? 'this file'} needs the extended key usage ${missing.join(' and ')}; the certificate has only ${extendedKeyUsage.join(', ')}`
}

/** Common name and groups, which the API server and RBAC use. Clients identify servers by their SANs. */
const checkSubject: CertificateCheck = (entry, role) => {
  return misissued(entry, role, 'ROLE_SUBJECT_WRONG', nodeFault(entry, role) ?? rowFault(entry, role))
}

function nodeFault(
  { certificate, group }: CertificateEntry,
  { kubelet, row, name }: Role,
): string | undefined {
  if (kubelet === undefined && row?.name !== 'kubelet.conf') return undefined
  const { commonName, organization, text } = certificate.subject
  if (!commonName?.startsWith(nodeUserPrefix))
    return `subject ${text}: ${name} needs CN=${nodeUserPrefix}NAME`
  if (!organization.includes(nodeGroup)) return `subject ${text}: ${name} needs O=${nodeGroup}`
  // kube-controller-manager does not sign such certificates, so it was created by hand.
  if (organization.length > 1 && group.owner.kind !== 'issued')
    return `subject ${text}: ${name} needs O=${nodeGroup} and no other`
  return undefined
}

function rowFault({ certificate }: CertificateEntry, { row }: Role): string | undefined {
  if (row === undefined || row.kind === 'ca' || row.commonName === undefined) return undefined
  if (!row.usages.includes('clientAuth')) return undefined
  const { commonName, organization, text } = certificate.subject
  if (commonName !== row.commonName) return `subject ${text}: ${row.name} needs CN=${row.commonName}`
  const allowed = [row.organization, ...olderOf(row).map((older) => [older])]
  if (allowed.some((groups) => sameSet(groups, organization))) return undefined
  const wanted = allowed.map((groups) => groups.map((group) => `O=${group}`).join(', ') || 'no O')
  return `subject ${text}: ${row.name} needs ${wanted.join(', or from an older kubeadm ')}`
}

function olderOf({ olderOrganizations = [] }: KubeadmLeaf | KubeadmKubeconfig): string[] {
  return olderOrganizations.map(({ organization }) => organization)
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((value) => b.includes(value))
}

/** A user of the API server has at most one UID. etcd and the front proxy, with their own CAs, ignore UIDs. */
const checkUserUid: CertificateCheck = (entry, role) => {
  const { certificate } = entry
  const { commonName } = certificate.subject
  const fault = userUidFault(certificate.subject)
  const isElsewhere = role.row !== undefined && role.row.kind !== 'ca' && role.row.signer !== 'ca'
  if (fault === undefined || !commonName || isElsewhere || !mayBeClient(certificate)) return undefined
  return problemAt(entry, 'USER_UID_INVALID', {
    message: `its subject has ${fault} (OID 1.3.6.1.4.1.57683.2), and API servers since Kubernetes 1.33 answer 401`,
    ...reissueAdvice('reissue it with one user UID, or with none', entry, role, 'misissued'),
    ...(role.isRecord && { severity: 'info' }),
  })
}

/** An absent extension allows every use. */
function mayBeClient({ isCa, extendedKeyUsage: usages }: Certificate): boolean {
  const isAllowed = usages.includes('clientAuth') || usages.includes('anyExtendedKeyUsage')
  return !isCa && (usages.length === 0 || isAllowed)
}

/** Members of system:masters: only a new CA revokes their permissions. */
const checkMasters: CertificateCheck = (entry, role): Problem | undefined => {
  const { certificate } = entry
  if (!certificate.subject.organization.includes(systemMasters) || !mayBeClient(certificate)) return undefined
  const { row } = role
  const isInTable =
    row !== undefined && row.kind !== 'ca' && [...row.organization, ...olderOf(row)].includes(systemMasters)
  // A copy of the admin.conf that kubeadm created before 1.29. super-admin.conf should not be copied anywhere.
  const isOldAdmin = kubeadmKubeconfigOf(entry) === 'admin.conf'
  return problemAt(entry, 'SYSTEM_MASTERS', {
    message: `member of ${systemMasters}: all permissions, which RBAC cannot revoke, until it expires`,
    fix:
      row?.name === 'super-admin.conf'
        ? 'keep it for emergencies, and use admin.conf for everything else'
        : 'use a certificate whose groups get their permissions from RBAC, which you can revoke',
    severity: isInTable || isOldAdmin ? 'info' : 'warning',
  })
}

/** The content of each certificate. */
export const contentChecks: readonly CertificateCheck[] = [
  checkKeyStrength,
  checkSignatureStrength,
  checkSignatureSupport,
  checkKeyUsage,
  checkCriticalExtensions,
  checkAltNames,
  checkUsages,
  checkSubject,
  checkUserUid,
  checkMasters,
]
