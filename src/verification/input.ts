import type { ErrorCode } from '../errors/codes.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { Group, UnseenForm } from '../inspection/entries.ts'
import type { Place } from '../inspection/problems.ts'
import {
  certificatesOfDer,
  isOfCertificate,
  labeller,
  type MaterialPart,
  partsOfPem,
  partsOfPkcs7,
} from '../inspection/read-material.ts'
import { mapReference } from '../inspection/references.ts'
import type { Problem } from '../inspection/report.ts'
import { shapeOf } from '../inspection/sniff.ts'
import type { ReadReferencedFile, Source } from '../inspection/source.ts'
import type { Kubeconfig, Material } from '../kubeconfig/kubeconfig.ts'
import { openKubeconfig, unusableKubeconfig } from '../kubeconfig/open.ts'
import type { Certificate } from '../x509/certificate.ts'
import { readPrivateKeyFile } from '../x509/keys.ts'
import { looksLikePkcs7 } from '../x509/pkcs7.ts'

/** The role of the certificates: it selects which of those in a kubeconfig or a Secret to read. */
export type InputRole = 'leaf' | 'roots' | 'intermediates'

export interface InputOptions {
  readonly readReferencedFile: ReadReferencedFile
  /** The context of a kubeconfig; default: its current-context. */
  readonly context?: string | undefined
  /** The flag that selects a context. */
  readonly contextFlag?: string
}

export interface LocatedCertificate extends Place {
  readonly certificate: Certificate
  /** The form that keeps Go from reading it as PEM. */
  readonly form?: UnseenForm | undefined
}

/** An unreadable certificate in a bundle. */
interface UnreadableCertificate extends Place {
  readonly reason: string
  /** True when the PEM around it is damaged: Go then skips the block without an error. */
  readonly isUnseen: boolean
  /** How to fix it, where the parser can tell. */
  readonly next?: string | undefined
}

export interface CertificateInput {
  /** In the order of the source; at least one, except of intermediates. */
  readonly certificates: readonly LocatedCertificate[]
  readonly unreadable: readonly UnreadableCertificate[]
  /** True when the source is a kubeconfig, from which both a client certificate and a CA can be taken. */
  readonly isKubeconfig: boolean
  /** True when the source has no path: standard input, or the certificates that a server presented. */
  readonly isNoFile?: true
}

/**
 * Returns the certificates of a source for one role: PEM, DER, PKCS#7, a Secret or other manifest, or a kubeconfig. In a
 * kubeconfig, the context's client certificate is the leaf, and its cluster's CA is the root. Throws KCERT_USAGE when there is
 * none, KCERT_X509_MALFORMED when the leaf, or everything, is damaged, and KCERT_PAIR_UNFIT when the key of the kubeconfig does
 * not match.
 */
export async function readCertificateInput(
  source: Source,
  role: InputRole,
  options: InputOptions,
): Promise<CertificateInput> {
  const input = await readByShape(source, role, options)
  return source.file === undefined ? { ...input, isNoFile: true } : input
}

async function readByShape(
  source: Source,
  role: InputRole,
  options: InputOptions,
): Promise<CertificateInput> {
  const { name, bytes } = source
  switch (shapeOf(bytes)) {
    case 'pem':
      return located(name, '', partsOfPem(bytes), role)
    case 'der':
      return located(name, '', await thingsOfDer(name, bytes), role)
    case 'base64': {
      const input = await readByShape({ ...source, bytes: fromBase64(bytes) }, role, options)
      return { ...input, certificates: input.certificates.map((one) => ({ ...one, form: 'base64' })) }
    }
    case 'document':
      return readDocument(source, role, options)
    default:
      throw noCertificate(name, bytes.length === 0 ? 'it is empty' : 'it is neither PEM, DER nor YAML')
  }
}

function fromBase64(bytes: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(bytes).toString('latin1'), 'base64')
}

async function thingsOfDer(source: string, bytes: Uint8Array): Promise<MaterialPart[]> {
  if (looksLikePkcs7(bytes)) return partsOfPkcs7(bytes, '')
  const { looksLikePkcs12 } = await import('../x509/pkcs12.ts')
  if (looksLikePkcs12(bytes))
    throw new KcertError('KCERT_USAGE', `${source} is a PKCS#12 keystore`, {
      why: 'Kubernetes components do not read keystores; extract the certificates as PEM, and verify these',
      next: commandLine`openssl pkcs12 -nokeys -in ${source} -out ${`${source}.pem`}`,
    })
  return certificatesOfDer(bytes)
}

function located(
  source: string,
  prefix: string,
  things: readonly MaterialPart[],
  role: InputRole,
): CertificateInput {
  const members = things.filter(isOfCertificate)
  const [first] = members
  if (first === undefined) throw noCertificate(source, 'it has no CERTIFICATE block')
  const certificates: LocatedCertificate[] = []
  const unreadable: UnreadableCertificate[] = []
  const entryOf = labeller(prefix, members)
  for (const member of members) {
    const place = { source, entry: entryOf(member) }
    const { kind, form } = member
    if (kind === 'certificate') certificates.push({ ...place, certificate: member.certificate, form })
    else if (kind === 'bad-block')
      unreadable.push({ ...place, reason: `${member.where}: ${member.reason}`, isUnseen: true })
    else {
      const { error, where } = member
      if (!(error instanceof KcertError)) throw error
      // Errors in DER and PKCS#7 already contain the offset.
      const at = form === 'DER' || form === 'PKCS#7' ? '' : `${where}: `
      unreadable.push({
        ...place,
        reason: at + error.message,
        isUnseen: false,
        next: error.next ?? error.fix,
      })
    }
  }
  // The leaf is the first certificate of its file; in a bundle, other members may be usable. Go skips intermediates that it
  // cannot parse, and the leaf may chain directly to a root. Without any readable root, nothing is trusted.
  const isUseless =
    role === 'leaf' ? first.kind !== 'certificate' : role === 'roots' && certificates.length === 0
  const [damaged] = unreadable
  if (isUseless && damaged !== undefined) throw malformed(damaged)
  return { certificates, unreadable, isKubeconfig: false }
}

function malformed({ source, entry, reason, next }: UnreadableCertificate): KcertError {
  const why = `every Kubernetes component rejects such a certificate: ${next ?? 'get the file again from its issuer'}`
  return refusal(source, [source, entry, reason].filter(Boolean).join(': '), why, 'KCERT_X509_MALFORMED')
}

function noCertificate(source: string, why: string): KcertError {
  return refusal(source, `${source} contains no certificate`, why)
}

function refusal(source: string, what: string, why: string, code: ErrorCode = 'KCERT_USAGE'): KcertError {
  return new KcertError(code, what, { why, next: commandLine`kcert inspect ${source}` })
}

async function readDocument(
  source: Source,
  role: InputRole,
  options: InputOptions,
): Promise<CertificateInput> {
  const { readReferencedFile } = options
  const opened = await openKubeconfig(source.bytes)
  if (opened === undefined) return readManifest(source, role, readReferencedFile)
  if (opened.refusal !== undefined) throw unusableKubeconfig(source.name, opened.refusal)
  const { entry, material, key } = materialOf(opened.kubeconfig, source.name, role, options)
  const pem = bytesOf(material, source, readReferencedFile)
  const input = located(source.name, `${entry}: ${material.field}`, partsOfPem(pem), role)
  const [leaf] = input.certificates
  if (key !== undefined && leaf !== undefined)
    checkKey(key, leaf, () => bytesOf(key, source, readReferencedFile))
  return { ...input, isKubeconfig: true }
}

/** Returns the certificate of a kubeconfig that a client with this file would use, and its private key. */
function materialOf(
  kubeconfig: Kubeconfig,
  source: string,
  role: InputRole,
  { context: wanted, contextFlag }: InputOptions,
): { readonly entry: string; readonly material: Material; readonly key?: Material | undefined } {
  const { contexts, clusters, users } = kubeconfig
  const refuse = (what: string, why: string): never => {
    throw refusal(source, `${source}: ${what}`, why)
  }
  const names = contexts.map(({ name }) => JSON.stringify(name)).join(', ')
  const named = contexts.find(({ name }) => name === (wanted ?? kubeconfig.currentContext))
  const context = named ?? (wanted === undefined && contexts.length === 1 ? contexts[0] : undefined)
  if (context === undefined && wanted !== undefined) {
    const why = names === '' ? 'it has no contexts' : `its contexts: ${names}`
    return refuse(`no context ${JSON.stringify(wanted)}`, why)
  }
  const meant = <Entry extends { readonly name: string }>(
    kind: 'user' | 'cluster',
    all: readonly Entry[],
  ): Entry =>
    all.find(({ name }) => name === context?.[kind]) ??
    (all.length === 1 ? all[0] : undefined) ??
    refuse(
      `it has several ${kind}s, and no current context selects one`,
      contexts.length === 0
        ? 'it has no contexts'
        : contextFlag === undefined
          ? `its contexts: ${names}`
          : `select a context with ${contextFlag}: ${names}`,
    )
  if (role !== 'leaf') {
    const { name, certificateAuthority } = meant('cluster', clusters)
    const material =
      certificateAuthority ??
      refuse(
        `cluster ${name} has no certificate-authority`,
        'clients that use it trust only the system roots',
      )
    return { entry: `cluster ${name}`, material }
  }
  const { name, clientCertificate, clientKey, credentials } = meant('user', users)
  const kinds = credentials.map(({ kind }) => kind).join(', ')
  const why = kinds === '' ? 'it has no credentials' : `it has: ${kinds}`
  const material = clientCertificate ?? refuse(`user ${name} has no client certificate`, why)
  return { entry: `user ${name}`, material, key: clientKey }
}

/** Throws when the key belongs to another certificate, because every handshake would fail. An unreadable key proves nothing. */
function checkKey(
  { field }: Material,
  { source, entry, certificate }: LocatedCertificate,
  read: () => Uint8Array,
): void {
  try {
    const key = readPrivateKeyFile(read()).publicKey
    if (key === undefined || key.sha256 === certificate.publicKey.sha256) return
  } catch (error) {
    if (error instanceof KcertError) return
    throw error
  }
  const what = `${source}: ${field} does not match the certificate of ${entry}`
  throw refusal(source, what, 'clients with this file cannot establish a TLS connection', 'KCERT_PAIR_UNFIT')
}

function bytesOf(
  { data, file = '' }: Material,
  source: Source,
  readReferencedFile: ReadReferencedFile,
): Uint8Array {
  if (data !== undefined) return data
  const path = mapReference(file, { source: source.name, ...(source.file && { file: source.file }) })
  const read = path === undefined ? undefined : readReferencedFile(path)
  if (read !== undefined && 'bytes' in read) return read.bytes
  throw new KcertError('KCERT_FILE_UNREADABLE', `${source.name} refers to ${file}, which cannot be read`, {
    why:
      read?.detail ?? 'the path is relative, and the kubeconfig is not a file: pass the kubeconfig as a file',
    ...(path !== undefined && { next: commandLine`ls -l ${path}` }),
  })
}

function unreadableIn({ name }: Source, { entry, message, code, fix, next }: Problem): UnreadableCertificate {
  const isUnseen = code === 'PEM_BLOCK_BAD'
  return { source: name, entry, reason: message, isUnseen, ...(!isUnseen && { next: next || fix }) }
}

/** Returns the certificates in Secrets, ConfigMaps and CSRs, as an inspection finds them. */
async function readManifest(
  source: Source,
  role: InputRole,
  readReferencedFile: ReadReferencedFile,
): Promise<CertificateInput> {
  const [{ Inspection }, { tlsType }, { defaultThresholds }] = await Promise.all([
    import('../inspection/inspection.ts'),
    import('../inspection/read-manifest.ts'),
    import('../inspection/thresholds.ts'),
  ])
  const inspection = new Inspection({ now: new Date(0), thresholds: defaultThresholds, readReferencedFile })
  await inspection.add(source)
  const { report } = inspection.finish()
  const unreadable = report.problems
    .filter(({ code }) => code === 'CERT_UNREADABLE' || code === 'PEM_BLOCK_BAD')
    .map((problem) => unreadableIn(source, problem))
  // A TLS Secret has the chain in tls.crt and, where cert-manager wrote it, the CA in ca.crt.
  const isCa = ({ owner }: Group): boolean => owner.kind === 'value' && /\bca\.crt\b/.test(owner.key)
  const mayBeLeaf = (group: Group): boolean => {
    const { owner } = group
    const isBeside = owner.kind === 'value' && owner.object.type === tlsType && owner.key !== 'tls.crt'
    return !isBeside && !isCa(group)
  }
  const all = inspection.groups.filter((one) => one.certificates.length > 0 || one.leafFault !== undefined)
  const areCas = all.filter(isCa)
  const meant = role === 'leaf' ? all.filter(mayBeLeaf) : areCas.length > 0 ? areCas : all
  const fault = role === 'leaf' ? meant[0]?.leafFault : undefined
  if (fault !== undefined) throw malformed(unreadableIn(source, fault))
  const certificates = meant
    .flatMap((group) => group.certificates)
    .map(({ entry, certificate }) => ({ source: source.name, entry, certificate }))
  if (certificates.length > 0 || (role === 'intermediates' && unreadable.length > 0))
    return { certificates, unreadable, isKubeconfig: false }
  if (unreadable[0] !== undefined) throw malformed(unreadable[0])
  const why = 'it is not a kubeconfig, or a Secret, ConfigMap or request that contains a certificate'
  throw noCertificate(source.name, why)
}
