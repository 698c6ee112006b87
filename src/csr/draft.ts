import { admissionFindings } from './admission.ts'
import { type Advice, adviceOn } from './advice.ts'
import { refuseHopeless, withoutUsages } from './manifest.ts'
import { objectNameOf } from './request-spec.ts'
import { type Finding, isUnmet } from './rule.ts'
import { usagesForSigner } from './signers.ts'
import { signingFindings } from './signing.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

/**
 * Returns a request that came without its object as one that can be sent: a name from what it asks for, and the usages that its
 * signer wants, where nobody has said them. Throws KCERT_USAGE where they cannot be known.
 */
export function completedDraft(draft: SigningRequest): SigningRequest {
  const { request } = readRequestContent(draft.request)
  const { subject, subjectAltNames } = request ?? {}
  const names = [subject?.commonName, ...(subjectAltNames?.dns ?? []), ...(subjectAltNames?.ip ?? [])]
  const name = draft.name ?? (draft.generateName ? undefined : objectNameOf(names.find(Boolean) ?? ''))
  const usages =
    draft.usages.length > 0 || request === undefined
      ? draft.usages
      : usagesForSigner(draft.signerName, request.publicKey.algorithm)
  if (usages === undefined) throw withoutUsages(draft.signerName)
  return { apiVersion: 'certificates.k8s.io/v1', ...draft, ...(name === undefined ? {} : { name }), usages }
}

/** What is found in a request before it is sent. */
export interface Preflight {
  /** Rules of the API server and of the signer that it breaks: the one refuses the object, the other lets it fail for good. */
  readonly broken: readonly Finding[]
  readonly advice: readonly Advice[]
}

/** Returns what `kcert csr check` would find against sending a request. */
export function preflight(object: SigningRequest): Preflight {
  const { request } = readRequestContent(object.request)
  const findings = [
    ...admissionFindings(object),
    ...(request === undefined ? [] : signingFindings(object, request)),
  ]
  return {
    broken: findings.filter(isUnmet),
    advice: request === undefined ? [] : adviceOn(object, request),
  }
}

/** Throws KCERT_CSR_SIGNER_REFUSED for a request that would be refused or fail. */
export function refuseBroken(object: SigningRequest, { broken }: Preflight): void {
  refuseHopeless(object.name ?? object.generateName ?? '', object.signerName, broken)
}
