import type { CertificateRequest } from '../../x509/request.ts'
import type { SigningRequest } from '../signing-request.ts'

/** An object together with the request in it. */
export interface Candidate {
  readonly object: SigningRequest
  readonly request: CertificateRequest
}
