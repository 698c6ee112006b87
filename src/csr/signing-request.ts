import { messageOf } from '../errors/kcert-error.ts'
import { isCertificateLabel, readPem, type UnseenText, unseenByGo } from '../x509/pem.ts'
import { CertificateRequest } from '../x509/request.ts'
import type { ObjectCondition, RequestObject } from './requests-api.ts'

/** A condition of a CertificateSigningRequest: "Approved", "Denied", "Failed", or anything else. Times are RFC 3339. */
export type RequestCondition = Omit<ObjectCondition, 'lastTransitionTime'>

/** A CertificateSigningRequest of certificates.k8s.io, or the draft of one. */
export interface SigningRequest
  extends Omit<RequestObject['metadata'], 'labels'>,
    Pick<RequestObject['spec'], 'signerName' | 'expirationSeconds' | 'username'> {
  readonly apiVersion?: string
  readonly labels: Readonly<Record<string, string>>
  /** spec.request, decoded: PEM text. Undefined when it is not valid base64. */
  readonly request: Uint8Array | undefined
  readonly usages: readonly string[]
  readonly userUid?: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
  readonly conditions: readonly RequestCondition[]
  /** status.certificate, decoded. */
  readonly certificate?: Uint8Array
  /** Errors in a manifest for which the API server rejects it: fields of another type, invalid labels. */
  readonly faults?: readonly string[]
  /** Unknown fields of a manifest ("spec.expirationSecond"), which the API server drops. */
  readonly unknownFields?: readonly string[]
}

/** True when the object has this condition with the status True (pkg/controller/certificates). */
export function hasCondition(
  { conditions }: SigningRequest,
  type: 'Approved' | 'Denied' | 'Failed',
): boolean {
  return conditions.some((condition) => condition.type === type && condition.status === 'True')
}

/** True when the object is approved or denied; Kubernetes ignores the status of these conditions. */
export function isDecided({ conditions }: SigningRequest): boolean {
  return conditions.some(({ type }) => type === 'Approved' || type === 'Denied')
}

/** The content of spec.request, or the rule of the API server that it breaks. */
export type RequestContent =
  | { readonly request: CertificateRequest; readonly fault?: undefined }
  | { readonly request?: undefined; readonly fault: RequestFault }

export interface RequestFault {
  readonly id: 'request-pem' | 'request-form'
  readonly detail: string
  /** How to fix it. */
  readonly fix: string
}

const remake = 'create a new request (kcert csr create)'

/**
 * Returns the request in spec.request as Kubernetes reads it: the first PEM block counts and must be a CERTIFICATE REQUEST.
 * Never throws.
 */
export function readRequestContent(bytes: Uint8Array | undefined): RequestContent {
  if (bytes === undefined)
    return { fault: { id: 'request-pem', detail: 'spec.request is not base64', fix: encode } }
  const { blocks, defects } = readPem(bytes)
  const [block] = blocks
  if (block === undefined) {
    const [defect] = defects
    const detail = defect ? `damaged PEM block at line ${defect.line}: ${defect.reason}` : 'no PEM block'
    return { fault: { id: 'request-pem', detail, fix: encode } }
  }
  const form = unseenByGo(bytes, block)
  if (form !== undefined && block.label === 'CERTIFICATE REQUEST') {
    const detail = `the API server cannot find the PEM block in a text with ${unseenText[form]}`
    return { fault: { id: 'request-pem', detail, fix: rewrite[form] ?? remake } }
  }
  if (block.label !== 'CERTIFICATE REQUEST') return { fault: foreignBlock(block.label) }
  try {
    return { request: CertificateRequest.parse(block.der) }
  } catch (error) {
    return { fault: { id: 'request-form', detail: messageOf(error), fix: remake } }
  }
}

const unseenText: Readonly<Record<UnseenText, string>> = {
  'byte order mark': 'a byte order mark',
  'UTF-16': 'UTF-16 characters',
  'CR line ends': 'CR line ends',
  label: 'another label',
  headers: 'headers',
}

/** How to rewrite the text so that the API server finds the PEM block. */
const rewrite: Partial<Record<UnseenText, string>> = {
  'byte order mark': 'remove its first three bytes: tail -c +4 FILE.csr > NEW.csr',
  'UTF-16': 'write it in ASCII: iconv -f UTF-16 -t ASCII FILE.csr > NEW.csr',
  'CR line ends': "end its lines in LF: tr '\\r' '\\n' < FILE.csr > NEW.csr",
}

const encode = 'put in the PEM text of the request in base64 on one line: base64 -w0 FILE.csr'

function foreignBlock(label: string): RequestFault {
  const detail = `the first PEM block is ${label}, not CERTIFICATE REQUEST`
  const fix =
    label === 'NEW CERTIFICATE REQUEST'
      ? 'remove "NEW ", which old OpenSSL versions wrote, from its first and last line'
      : isCertificateLabel(label)
        ? 'send the CSR, not a certificate'
        : label.endsWith('PRIVATE KEY')
          ? 'send only the CSR; a private key must not leave its machine'
          : remake
  return { id: 'request-pem', detail, fix }
}
