import { isNodeIdentity, kubeletRotationWindow } from '../pki/kubelet.ts'
import type { GeneralSubtrees, SubjectAltNames } from '../x509/general-names.ts'
import type { Name } from '../x509/name.ts'
import { nameOfOid } from '../x509/oids.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import { keyIdOf } from '../x509/service-account-token.ts'
import type { Snapshot } from './checks/check.ts'
import type {
  CertificateEntry,
  KeyEntry,
  KubeconfigEntry,
  RequestEntry,
  Role,
  TokenEntry,
} from './entries.ts'
import type { Links } from './links.ts'
import type { Place } from './problems.ts'
import type {
  CertificateReport,
  InspectionReport,
  KeyReport,
  KubeconfigReport,
  NameReport,
  RequestReport,
  TokenReport,
} from './report.ts'
import { renewalName, roleOfKey } from './roles.ts'
import { timeText } from './spans.ts'

/** Values that the reports of an inspection share. */
export type ReportContext = Pick<Snapshot, 'now' | 'links' | 'roleOf' | 'statusOf'>

type Fields = {
  readonly [Name in keyof CertificateReport]-?: (
    of: CertificateEntry,
    context: ReportContext,
  ) => CertificateReport[Name]
}

/** The fields of a certificate's report, in the order of the JSON. */
const fields: Fields = {
  source: ({ source }) => source,
  entry: ({ entry }) => entry,
  role: (of, { roleOf }) => roleOf(of).name,
  subject: ({ certificate }) => nameReport(certificate.subject),
  issuer: ({ certificate }) => nameReport(certificate.issuer),
  serialNumber: ({ certificate }) => certificate.serialNumber,
  notBefore: ({ certificate }) => timeText(certificate.notBeforeMs),
  notAfter: ({ certificate }) => timeText(certificate.notAfterMs),
  secondsLeft: ({ certificate }, { now }) => Math.floor((certificate.notAfterMs - now.getTime()) / 1000),
  percentLeft,
  isCa: ({ certificate }) => certificate.isCa,
  pathLength: ({ certificate }) => certificate.basicConstraints?.pathLength,
  publicKey: ({ certificate }) => publicKeyReport(certificate.publicKey),
  signatureAlgorithm: ({ certificate }) => certificate.signatureAlgorithm,
  subjectAltNames: ({ certificate }) => altNamesReport(certificate.subjectAltNames),
  keyUsage: ({ certificate }) => shared(certificate.keyUsage),
  extendedKeyUsage: ({ certificate }) => shared(certificate.extendedKeyUsage),
  subjectKeyId: ({ certificate }) => certificate.subjectKeyId,
  authorityKeyId: ({ certificate }) => certificate.authorityKeyId,
  nameConstraints: ({ certificate: { nameConstraints: found } }) =>
    found && { permitted: subtreesReport(found.permitted), excluded: subtreesReport(found.excluded) },
  crlDistributionPoints: ({ certificate }) => unlessEmpty(certificate.crlDistributionPoints),
  authorityInfoAccess: ({
    certificate: {
      authorityInfoAccess: { ocsp, caIssuers },
    },
  }) =>
    ocsp.length + caIssuers.length === 0 ? undefined : { ocsp: shared(ocsp), caIssuers: shared(caIssuers) },
  certificatePolicies: ({ certificate }) => unlessEmpty(certificate.policies),
  unknownCriticalExtensions: ({ certificate }) => unlessEmpty(certificate.unhandledCriticalExtensions),
  fingerprintSha256: ({ certificate }) => certificate.fingerprintSha256,
  caPin: ({ certificate: { isCa, publicKey } }) => (isCa ? `sha256:${publicKey.sha256}` : undefined),
  issuerFound(of, { links }) {
    const found = links.issuerPlace(of)
    return found && { ...sourceAndEntry(found), fingerprintSha256: found.certificate.fingerprintSha256 }
  },
  issuerNotSearched: ({ certificate }, { links }) => links.isIssuerUnsought(certificate) || undefined,
  issuerUnchecked: ({ certificate }, { links }) => links.isIssuerUnchecked(certificate) || undefined,
  key(of, { links }) {
    const found = links.keyOf(of)
    return found && { ...sourceAndEntry(found.key), matches: found.matches }
  },
  kubeletRotation: (of, { roleOf }) => kubeletRotation(of, roleOf(of)),
  renewalName: (of, { roleOf }) => renewalName(of, roleOf(of)),
  isReplaced: (of, { roleOf }) => roleOf(of).isReplaced,
  status: (of, { statusOf }) => statusOf(of),
}
const rows = Object.entries(fields)

/**
 * The report of one certificate. Its fields are computed when an output reads them. A table of 10,000 rows reads six of
 * twenty-four, without the slowest ones, digests and links. `toJSON` returns all as plain data.
 */
class LazyReport {
  readonly source: string
  readonly entry: string
  readonly secondsLeft: number
  /** The entry of this report, for outputs that need the certificate itself. */
  readonly of: CertificateEntry
  readonly context: ReportContext

  constructor(of: CertificateEntry, context: ReportContext) {
    this.source = of.source
    this.entry = of.entry
    this.secondsLeft = fields.secondsLeft(of, context)
    this.of = of
    this.context = context
  }

  /** The Name itself, which has all fields of its report: a table reads one field of 10,000 of them. */
  get subject(): Name {
    return this.of.certificate.subject
  }

  get issuer(): Name {
    return this.of.certificate.issuer
  }

  toJSON(): object {
    const report: Record<string, unknown> = {}
    for (const [name, read] of rows) report[name] = read(this.of, this.context)
    return report
  }
}

for (const [name, read] of rows) {
  if (['source', 'entry', 'secondsLeft', 'subject', 'issuer'].includes(name)) continue
  Object.defineProperty(LazyReport.prototype, name, {
    get(this: LazyReport) {
      return read(this.of, this.context)
    },
  })
}

/** The constructor of reports whose fields are computed on first use. */
export const ReportOfCertificate = LazyReport as unknown as new (
  of: CertificateEntry,
  context: ReportContext,
) => CertificateReport & Pick<LazyReport, 'of'>

/** A report whose certificates are `ReportOfCertificate`. */
export type InspectedReport = Omit<InspectionReport, 'certificates'> & {
  readonly certificates: InstanceType<typeof ReportOfCertificate>[]
}

/** With one decimal, which is precise enough. */
function percentLeft(
  { certificate: { notBeforeMs, notAfterMs } }: CertificateEntry,
  { now }: ReportContext,
): number {
  const lifetimeMs = notAfterMs - notBeforeMs
  const leftMs = notAfterMs - now.getTime()
  if (leftMs <= 0 || lifetimeMs <= 0) return 0
  return Math.min(Math.round((1000 * leftMs) / lifetimeMs) / 10, 100)
}

const none: string[] = []

/** Returns the list itself. Reports are never changed, and 10,000 copies cost a hundredth of a second. */
function shared(list: readonly string[] | undefined): string[] {
  return list === undefined || list.length === 0 ? none : (list as string[])
}

function unlessEmpty(list: readonly string[]): string[] | undefined {
  return list.length === 0 ? undefined : (list as string[])
}

function subtreesReport({ dns, ip, email, uri }: GeneralSubtrees): CertificateReport['subjectAltNames'] {
  return { dns, ip: ip.map(({ text }) => text), email, uri }
}

function sourceAndEntry({ source, entry }: Place): Place {
  return { source, entry }
}

function kubeletRotation(
  { certificate }: CertificateEntry,
  role: Role,
): CertificateReport['kubeletRotation'] {
  if (role.kubelet === undefined || role.isRecord) return undefined
  const { commonName, organization } = certificate.subject
  if (!isNodeIdentity(commonName, organization)) return undefined
  const { earliest, latest } = kubeletRotationWindow(certificate.notBefore, certificate.notAfter)
  return { earliest: timeText(earliest), latest: timeText(latest) }
}

function nameReport(name: Name): NameReport {
  const { text, commonName, organization, userUids } = name
  return {
    text,
    commonName,
    organization: shared(organization),
    ...(userUids && { userUids: [...userUids] }),
  }
}

function publicKeyReport(key: PublicKeyInfo): CertificateReport['publicKey'] {
  const { bits, curve } = key
  return {
    algorithm: algorithmText(key.algorithm),
    bits,
    curve,
    get sha256() {
      return key.sha256
    },
  }
}

/** Returns the name of a key's algorithm, even if Kubernetes does not support it; the OID if it has no name. */
export function algorithmText(algorithm: string): string {
  // The usual names have no dot, so 10,000 of them need no lookup.
  if (!algorithm.includes('.')) return algorithm
  const name = nameOfOid(algorithm)
  return name === 'id-RSASSA-PSS' ? 'RSA-PSS' : (name ?? algorithm)
}

function altNamesReport({ dns, ip, email, uri }: SubjectAltNames): CertificateReport['subjectAltNames'] {
  return { dns, ip, email, uri }
}

/** Returns the report of a request. */
export function requestReport({ request, source, entry, ...object }: RequestEntry): RequestReport {
  const verdict = request.verifySignature('possession')
  return {
    source,
    entry,
    subject: nameReport(request.subject),
    publicKey: publicKeyReport(request.publicKey),
    signatureAlgorithm: request.signatureAlgorithm,
    signatureValid: verdict.ok,
    ...(!verdict.ok && verdict.reason === 'cannot-be-checked' && { signatureUnchecked: true }),
    subjectAltNames: altNamesReport(request.subjectAltNames),
    keyUsage: shared(request.keyUsage),
    extendedKeyUsage: shared(request.extendedKeyUsage),
    signerName: object.signerName,
    usages: object.usages && [...object.usages],
    username: object.username,
    condition: object.condition,
  }
}

/** Returns the report of a key: its type and the entries that match it. It contains nothing of a private key itself. */
export function keyReport(key: KeyEntry, links: Links): KeyReport {
  const { source, entry, kind, format, encrypted, publicKey } = key
  return {
    ...{ source, entry, role: roleOfKey(key), kind, format },
    publicKey: publicKey && publicKeyReport(publicKey),
    ...(publicKey && signsTokens(publicKey) && { keyId: keyIdOf(publicKey) }),
    encrypted,
    matches: links.matchesOf(key).map(sourceAndEntry),
  }
}

/** kube-apiserver reads no other keys in --service-account-key-file (client-go util/keyutil/key.go, ParsePublicKeysPEM). */
function signsTokens({ algorithm }: PublicKeyInfo): boolean {
  return algorithm === 'RSA' || algorithm === 'ECDSA'
}

/** Returns the report of a service account token. */
export function tokenReport({ source, entry, claims }: TokenEntry, now: Date): TokenReport {
  const { keyId, issuer, namespace, serviceAccount, audiences, id, boundTo, expiresAtMs } = claims
  return {
    ...{ source, entry, keyId, issuer },
    subject: `system:serviceaccount:${namespace}:${serviceAccount}`,
    audiences: [...audiences],
    credentialId: id && `JTI=${id}`,
    boundTo,
    expirationTimestamp: expiresAtMs === undefined ? undefined : timeText(expiresAtMs),
    isExpired: expiresAtMs !== undefined && expiresAtMs <= now.getTime(),
  }
}

/** Returns the report of a kubeconfig: its content and relations, without secrets. */
export function kubeconfigReport(
  kubeconfig: KubeconfigEntry,
  isCurrent: (kubeconfig: KubeconfigEntry, context: string) => boolean,
): KubeconfigReport {
  const { source, entry, currentContext, clusters, users, contexts } = kubeconfig
  return {
    source,
    entry,
    currentContext,
    clusters: clusters.map(({ name, server, tlsServerName, skipsTlsVerify }) => ({
      name,
      server: server && withoutUser(server),
      tlsServerName,
      insecureSkipTlsVerify: skipsTlsVerify,
    })),
    users: users.map(({ name, credentials }) => ({ name, credentials: [...credentials] })),
    contexts: contexts.map(({ name, cluster, user, namespace }) => ({
      ...{ name, cluster, user, namespace },
      isCurrent: isCurrent(kubeconfig, name),
    })),
  }
}

/** Returns a URL without its user name and password: https://me:secret@host. */
export function withoutUser(server: string): string {
  return server.replace(/^([a-z]+:\/\/)?[^/?#]*@/i, '$1')
}
