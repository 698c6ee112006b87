import { KcertError } from '../errors/kcert-error.ts'
import { writePem } from '../x509/pem.ts'
import type { CertificateRequest } from '../x509/request.ts'
import {
  type CertificateAuthority,
  type Issued,
  newRequestAdvice,
  readRequest,
  signRequest,
} from './certificate-authority.ts'
import { certificateFacts } from './facts.ts'
import type { IssuanceLog } from './issuance-log.ts'
import { noticesOfIssued } from './notices.ts'
import type { SigningProfile } from './profile.ts'
import type { SignedCertificate } from './report.ts'
import type { RequestEntry } from './request-file.ts'
import type { RandomBytes } from './serial.ts'

export interface CheckedRequest extends RequestEntry {
  readonly request: CertificateRequest
}

export interface Signed extends Issued {
  readonly asked: CheckedRequest
}

/** Returns the requests, parsed and checked, also by `check`. Throws KCERT_REQUEST_REFUSED for all that cannot be signed. */
export function checkRequests(
  entries: readonly RequestEntry[],
  { subjectAttributes }: Pick<SigningProfile, 'subjectAttributes'>,
  check: (entry: RequestEntry, request: CertificateRequest) => void = () => {},
): CheckedRequest[] {
  const checked: CheckedRequest[] = []
  const refusals: KcertError[] = []
  for (const entry of entries) {
    try {
      const request = readRequest(entry.der, locationOf(entry), subjectAttributes)
      check(entry, request)
      checked.push({ ...entry, request })
    } catch (error) {
      if (!(error instanceof KcertError)) throw error
      refusals.push(error)
    }
  }
  const [first] = refusals
  if (first === undefined) return checked
  if (entries.length === 1) throw first
  const what = `${refusals.length} of ${entries.length} requests were refused, and none was signed`
  throw new KcertError('KCERT_REQUEST_REFUSED', what, {
    why: refusals
      .slice(0, 5)
      .map((refusal) => `${refusal.message} (${refusal.why})`)
      .join('; '),
    ...(first.fix !== undefined && refusals.every(({ fix }) => fix === first.fix)
      ? { fix: first.fix }
      : { next: newRequestAdvice }),
    cause: first,
  })
}

/**
 * Returns the signed certificates after recording all of them in the issuance log, all or none. Only returned certificates may be
 * written. The caller holds the lock of the log.
 */
export function signAll(
  requests: readonly CheckedRequest[],
  signingCa: CertificateAuthority,
  profile: SigningProfile,
  issuanceLog: IssuanceLog,
  now: Date,
  random: RandomBytes,
): Signed[] {
  const signed = requests.map((asked): Signed => {
    const serialNumber = issuanceLog.draw(random, signingCa.certificate)
    return { asked, ...signRequest(signingCa, asked.request, profile, now, serialNumber) }
  })
  issuanceLog.record(
    signed.map(({ certificate }) => certificate),
    now,
  )
  return signed
}

/** Returns a signed certificate as the report shows it. */
export function signedCertificate(signed: Signed): SignedCertificate {
  const { asked, certificate, droppedExtensions, droppedAttributes } = signed
  return {
    source: asked.source,
    entry: asked.entry,
    ...certificateFacts(certificate),
    pem: writePem('CERTIFICATE', certificate.der),
    droppedExtensions: [...droppedExtensions],
    droppedAttributes: [...droppedAttributes],
    notices: noticesOfIssued(signed),
  }
}

/** Returns "server.csr", or "all.pem: request 2" where the file has several. */
export function locationOf({ source, entry }: Pick<RequestEntry, 'source' | 'entry'>): string {
  return entry === '' ? source : `${source}: ${entry}`
}
