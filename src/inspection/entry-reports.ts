import { isNodeIdentity, kubeletRotationWindow } from '../pki/kubelet.ts'
import type { GeneralSubtrees, SubjectAltNames } from '../x509/general-names.ts'
import type { Name } from '../x509/name.ts'
import { nameOfOid } from '../x509/oids.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { CertificateEntry, KeyEntry, KubeconfigEntry, RequestEntry, Role } from './entries.ts'
import type { Links } from './links.ts'
import type { Place } from './problems.ts'
import type {
  CertificateReport,
  CertificateStatus,
  KeyReport,
  KubeconfigReport,
  NameReport,
  RequestReport,
} from './report.ts'
import { roleOfKey } from './roles.ts'
import { timeText } from './spans.ts'

/** What the reports of an inspection share. */
export interface ReportContext {
  readonly now: Date
  readonly links: Links
  readonly roleOf: (entry: CertificateEntry) => Role
  readonly statusOf: (entry: CertificateEntry) => CertificateStatus
}

/**
 * The report of one certificate. Its fields are read when an output asks for them: a table of 10,000 rows asks for six of
 * twenty-four, and neither for digests nor for links, which take the longest. `toJSON` returns all as plain data.
 */
export class ReportOfCertificate implements CertificateReport {
  readonly source: string
  readonly entry: string
  readonly secondsLeft: number
  /** What it was made of, for outputs that need the certificate itself. */
  readonly of: CertificateEntry
  private readonly context: ReportContext

  constructor(of: CertificateEntry, context: ReportContext) {
    this.source = of.source
    this.entry = of.entry
    this.secondsLeft = Math.floor((of.certificate.notAfterMs - context.now.getTime()) / 1000)
    this.of = of
    this.context = context
  }

  get role(): string | undefined {
    return this.knownRole.name
  }

  get subject(): NameReport {
    return named(this.of.certificate.subject)
  }

  get issuer(): NameReport {
    return named(this.of.certificate.issuer)
  }

  get serialNumber(): string {
    return this.of.certificate.serialNumber
  }

  get notBefore(): string {
    return timeText(this.of.certificate.notBeforeMs)
  }

  get notAfter(): string {
    return timeText(this.of.certificate.notAfterMs)
  }

  /** With one decimal: more says nothing. */
  get percentLeft(): number {
    const { notBeforeMs, notAfterMs } = this.of.certificate
    const lifetimeMs = notAfterMs - notBeforeMs
    const leftMs = notAfterMs - this.context.now.getTime()
    if (leftMs <= 0 || lifetimeMs <= 0) return 0
    return Math.min(Math.round((1000 * leftMs) / lifetimeMs) / 10, 100)
  }

  get isCa(): boolean {
    return this.of.certificate.isCa
  }

  get pathLength(): number | undefined {
    return this.of.certificate.basicConstraints?.pathLength
  }

  get publicKey(): CertificateReport['publicKey'] {
    return publicKeyReport(this.of.certificate.publicKey)
  }

  get signatureAlgorithm(): string {
    return this.of.certificate.signatureAlgorithm
  }

  get subjectAltNames(): CertificateReport['subjectAltNames'] {
    return altNamesReport(this.of.certificate.subjectAltNames)
  }

  get keyUsage(): string[] {
    return shared(this.of.certificate.keyUsage)
  }

  get extendedKeyUsage(): string[] {
    return shared(this.of.certificate.extendedKeyUsage)
  }

  get subjectKeyId(): string | undefined {
    return this.of.certificate.subjectKeyId
  }

  get authorityKeyId(): string | undefined {
    return this.of.certificate.authorityKeyId
  }

  get nameConstraints(): CertificateReport['nameConstraints'] {
    const found = this.of.certificate.nameConstraints
    return found && { permitted: subtreesReport(found.permitted), excluded: subtreesReport(found.excluded) }
  }

  get crlDistributionPoints(): string[] | undefined {
    return unlessEmpty(this.of.certificate.crlDistributionPoints)
  }

  get authorityInfoAccess(): CertificateReport['authorityInfoAccess'] {
    const { ocsp, caIssuers } = this.of.certificate.authorityInfoAccess
    if (ocsp.length + caIssuers.length === 0) return undefined
    return { ocsp: shared(ocsp), caIssuers: shared(caIssuers) }
  }

  get certificatePolicies(): string[] | undefined {
    return unlessEmpty(this.of.certificate.policies)
  }

  get unknownCriticalExtensions(): string[] | undefined {
    return unlessEmpty(this.of.certificate.unhandledCriticalExtensions)
  }

  get fingerprintSha256(): string {
    return this.of.certificate.fingerprintSha256
  }

  get caPin(): string | undefined {
    const { isCa, publicKey } = this.of.certificate
    return isCa ? `sha256:${publicKey.sha256}` : undefined
  }

  get issuerFound(): CertificateReport['issuerFound'] {
    const found = this.context.links.issuerPlace(this.of)
    return found && { ...placeOf(found), fingerprintSha256: found.certificate.fingerprintSha256 }
  }

  get issuerUnsought(): true | undefined {
    return this.context.links.isIssuerUnsought(this.of.certificate) ? true : undefined
  }

  get issuerUnchecked(): true | undefined {
    return this.context.links.isIssuerUnchecked(this.of.certificate) ? true : undefined
  }

  get key(): CertificateReport['key'] {
    const found = this.context.links.keyOf(this.of)
    return found && { ...placeOf(found.key), matches: found.matches }
  }

  get kubeletRotation(): CertificateReport['kubeletRotation'] {
    return kubeletRotation(this.of, this.knownRole)
  }

  get isReplaced(): boolean | undefined {
    return this.knownRole.isReplaced
  }

  get status(): CertificateStatus {
    return this.context.statusOf(this.of)
  }

  toJSON(): CertificateReport {
    const { source, entry, role, serialNumber, notBefore, notAfter, secondsLeft } = this
    const { percentLeft, isCa, pathLength, publicKey, signatureAlgorithm, subjectAltNames, keyUsage } = this
    const { extendedKeyUsage, subjectKeyId, authorityKeyId, fingerprintSha256, caPin, issuerFound } = this
    const { nameConstraints, crlDistributionPoints, authorityInfoAccess, certificatePolicies } = this
    const { unknownCriticalExtensions, issuerUnsought, issuerUnchecked, key, kubeletRotation } = this
    const { isReplaced, status } = this
    return {
      source,
      entry,
      role,
      subject: nameReport(this.of.certificate.subject),
      issuer: nameReport(this.of.certificate.issuer),
      serialNumber,
      notBefore,
      notAfter,
      secondsLeft,
      percentLeft,
      isCa,
      pathLength,
      publicKey,
      signatureAlgorithm,
      subjectAltNames,
      keyUsage,
      extendedKeyUsage,
      subjectKeyId,
      authorityKeyId,
      nameConstraints,
      crlDistributionPoints,
      authorityInfoAccess,
      certificatePolicies,
      unknownCriticalExtensions,
      fingerprintSha256,
      caPin,
      issuerFound,
      issuerUnsought,
      issuerUnchecked,
      key,
      kubeletRotation,
      isReplaced,
      status,
    }
  }

  private get knownRole(): Role {
    return this.context.roleOf(this.of)
  }
}

const none: string[] = []

/** The list itself: nobody changes a report, and 10,000 copies cost a hundredth of a second. */
function shared(list: readonly string[] | undefined): string[] {
  return list === undefined || list.length === 0 ? none : (list as string[])
}

function unlessEmpty(list: readonly string[]): string[] | undefined {
  return list.length === 0 ? undefined : (list as string[])
}

function subtreesReport({ dns, ip, email, uri }: GeneralSubtrees): CertificateReport['subjectAltNames'] {
  return { dns, ip: ip.map(({ text }) => text), email, uri }
}

function placeOf({ source, entry }: Place): Place {
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

/** The name itself, which says all that its report does: a table reads one field of 10,000 of them. */
function named(name: Name): NameReport {
  return name as Pick<Name, 'text' | 'commonName' | 'organization' | 'userUids'> as NameReport
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

/** The name of a key's algorithm, also of those that Kubernetes does not take; the OID where it has none. */
export function algorithmText(algorithm: string): string {
  // The usual ones have no dot, and 10,000 of them are not looked up.
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

/** Returns the report of a key: what it is and what belongs to it, and nothing of a private key itself. */
export function keyReport(entry: KeyEntry, links: Links): KeyReport {
  const { kind, format, encrypted, publicKey } = entry
  return {
    source: entry.source,
    entry: entry.entry,
    role: roleOfKey(entry),
    kind,
    format,
    publicKey: publicKey && publicKeyReport(publicKey),
    encrypted,
    matches: links.matchesOf(entry).map(placeOf),
  }
}

/** Returns the report of a kubeconfig: what is in it and how it hangs together, and nothing that is secret. */
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
      name,
      cluster,
      user,
      namespace,
      isCurrent: isCurrent(kubeconfig, name),
    })),
  }
}

/** A URL may carry a password: https://me:secret@host. */
function withoutUser(server: string): string {
  return server.replace(/^([a-z]+:\/\/)?[^/?#]*@/i, '$1')
}
