import { admissionFindings } from './admission.ts'
import { type Advice, adviceOn } from './advice.ts'
import { refuseHopeless, withoutUsages } from './manifest.ts'
import { objectNameOf } from './request-spec.ts'
import { type Finding, isUnmet } from './rule.ts'
import { usagesForSigner } from './signers.ts'
import { signingFindings } from './signing.ts'
import { readRequestContent, type SigningRequest } from './signing-request.ts'

/**
 * Returns a bare request completed for submission: with a name from its subject or SANs, and the usages of its signer when none
 * are given. Throws KCERT_USAGE when they are unknown.
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

/** The findings on a request before its submission. */
export interface Preflight {
  /** Broken rules of the API server, which would reject the object, and of the signer, which would fail it permanently. */
  readonly broken: readonly Finding[]
  readonly advice: readonly Advice[]
}

/** Returns the objections of `kcert csr check` to a request. */
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
