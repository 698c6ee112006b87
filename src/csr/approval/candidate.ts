import type { CertificateRequest } from '../../x509/request.ts'
import type { SigningRequest } from '../signing-request.ts'

/** An object and its parsed request. */
export interface Candidate {
  readonly object: SigningRequest
  readonly request: CertificateRequest
}
