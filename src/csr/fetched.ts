import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type Certificate, readCertificates } from '../x509/certificate.ts'
import { goName } from '../x509/go-name.ts'
import type { Name } from '../x509/name.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { CertificateRequest } from '../x509/request.ts'
import type { FetchReport } from './fetch-report.ts'
import { stateOf } from './life.ts'
import { listed, quoted } from './quoting.ts'
import { requestWord } from './request-name.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

/** What an issued certificate is compared with before its use. */
export interface Expectation {
  /** The private key of the certificate. */
  readonly key?: { readonly publicKey: PublicKeyInfo; readonly place: string }
  /** The CA that should have signed it. */
  readonly ca?: { readonly certificates: readonly Certificate[]; readonly place: string }
  readonly now: Date
}

export type CertificateCheck = FetchReport['checks'][number]

/** Returns the issued certificate and its chain. Throws KCERT_CSR_NOT_ISSUED, and KCERT_X509_MALFORMED for an unreadable one. */
export function issuedChain(object: SigningRequest): [Certificate, ...Certificate[]] {
  if (object.certificate === undefined) throw notIssued(object)
  const [leaf, ...cas] = readCertificates(object.certificate)
  if (leaf !== undefined) return [leaf, ...cas]
  const what = `status.certificate of ${quoted(object.name ?? '')} contains no certificate`
  throw new KcertError('KCERT_X509_MALFORMED', what, { next: explainCommand(object) })
}

/** Returns the result of each comparison of a certificate with its request, key and CA. */
export function checkCertificate(
  certificate: Certificate,
  object: SigningRequest,
  { key, ca, now }: Expectation,
): CertificateCheck[] {
  const { request } = readRequestContent(object.request)
  const isSigned = ca?.certificates.some((one) => certificate.isSignedBy(one)) === true
  const signed = isSigned ? 'is signed' : 'is not signed'
  return [
    ...(key ? [keyCheck('key', certificate, key.publicKey, `the key ${key.place}`)] : []),
    ...(request ? requestChecks(certificate, request) : []),
    validityCheck(certificate, now),
    ...(ca ? [{ id: 'ca' as const, ok: isSigned, detail: `it ${signed} by the CA of ${ca.place}` }] : []),
  ]
}

/** The differences that a user may accept: a third-party signer may change the names. */
const acceptable: ReadonlySet<CertificateCheck['id']> = new Set(['subject', 'names'])

/** Throws KCERT_CERTIFICATE_UNFIT with all failed checks. `acceptsNames`: another subject and other names are accepted. */
export function refuseUnfit(
  checks: readonly CertificateCheck[],
  object: SigningRequest,
  { acceptsNames }: { readonly acceptsNames: boolean },
): void {
  const broken = checks.filter(({ id, ok }) => !ok && !(acceptsNames && acceptable.has(id)))
  if (broken.length === 0) return
  const isKey = broken.some(({ id }) => id === 'key')
  const canAccept = broken.every(({ id }) => acceptable.has(id))
  const what = `the certificate of ${quoted(object.name ?? '')} does not match: ${broken.map(({ detail }) => detail).join('; ')}`
  throw new KcertError('KCERT_CERTIFICATE_UNFIT', what, {
    why: isKey
      ? 'a server or client with this pair would not start; use the key that the request was created with'
      : `a signer may change the subject and SANs${canAccept ? '; --accept-names accepts them' : ''}`,
    next: commandLine`kcert csr describe ${requestWord(object.name ?? '')}`,
  })
}

/** Returns why an object has no certificate to fetch. */
export function notIssued(object: SigningRequest): KcertError {
  const state = stateOf(object)
  const { reason = '', message = '' } =
    object.conditions.find(
      ({ type }) => type === { denied: 'Denied', failed: 'Failed' }[state as 'denied'],
    ) ?? {}
  const why = [reason, message].filter(Boolean).join(': ')
  const text = {
    pending: 'is pending: it waits for approval',
    approved: 'is approved and waits for its signer',
    denied: 'is denied',
    failed: 'failed: its signer refused it',
    issued: 'is issued',
  }[state]
  const what = `the CertificateSigningRequest ${quoted(object.name ?? '')} ${text}`
  return new KcertError('KCERT_CSR_NOT_ISSUED', what, { ...(why && { why }), next: explainCommand(object) })
}

function explainCommand({ name = '' }: SigningRequest): string {
  return commandLine`kcert csr explain ${requestWord(name)}`
}

function keyCheck(
  id: 'key' | 'request-key',
  { publicKey }: Certificate,
  { sha256 }: PublicKeyInfo,
  what: string,
): CertificateCheck {
  const ok = publicKey.sha256 === sha256
  return { id, ok, detail: `it ${ok ? 'matches' : 'does not match'} ${what}` }
}

function requestChecks(certificate: Certificate, request: CertificateRequest): CertificateCheck[] {
  const asked = namesOf(request)
  const given = namesOf(certificate)
  const missing = [...asked].filter((name) => !given.has(name))
  const added = [...given].filter((name) => !asked.has(name))
  const [subject, wanted] = [certificate.subject, request.subject]
  const isSubject = attributesOf(subject) === attributesOf(wanted)
  const outcome = isSubject ? 'as requested' : `but the request has ${quoted(wanted.text)}`
  return [
    keyCheck('request-key', certificate, request.publicKey, 'the key of the request'),
    { id: 'subject', ok: isSubject, detail: `its subject is ${quoted(subject.text)}, ${outcome}` },
    { id: 'names', ok: missing.length + added.length === 0, detail: namesText([...asked], missing, added) },
  ]
}

// Kubernetes and cfssl encode the subject again, in the order of Go, and omit attributes that Go does not support.
function attributesOf({ rdns }: Name): string {
  return JSON.stringify(
    goName(rdns.flat())
      .rdns.flat()
      .map(({ type, value }) => `${type}=${value}`)
      .sort(),
  )
}

function namesText(asked: readonly string[], missing: readonly string[], added: readonly string[]): string {
  if (missing.length + added.length === 0)
    return asked.length === 0 ? 'it has no SANs, as requested' : `it has the requested SANs, ${listed(asked)}`
  return [
    ...(missing.length > 0 ? [`it lacks ${listed(missing)}`] : []),
    ...(added.length > 0 ? [`it has ${listed(added)}, which the request does not have`] : []),
  ].join(', and ')
}

// Other types of names are not compared: no Kubernetes signer copies them.
function namesOf({
  subjectAltNames: { dns, ip, email, uri },
}: Certificate | CertificateRequest): Set<string> {
  return new Set([...dns.map((name) => name.toLowerCase()), ...ip, ...email, ...uri])
}

function validityCheck({ notBefore, notAfter }: Certificate, now: Date): CertificateCheck {
  const text = `from ${notBefore.toISOString().slice(0, 19)}Z to ${notAfter.toISOString().slice(0, 19)}Z`
  const fault =
    notAfter <= now ? 'it has expired: valid ' : notBefore > now ? 'it is not valid yet: ' : undefined
  return { id: 'validity', ok: fault === undefined, detail: (fault ?? 'valid ') + text }
}
