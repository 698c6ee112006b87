import { given } from '../errors/given.ts'
import { adviceFields, KcertError } from '../errors/kcert-error.ts'
import { usagesFor } from '../pki/usages.ts'
import { writePem } from '../x509/pem.ts'
import { CertificateRequest } from '../x509/request.ts'
import { admissionFindings } from './admission.ts'
import type { Manifest } from './create-report.ts'
import { quoted } from './quoting.ts'
import type { RequestSpec } from './request-spec.ts'
import { type Finding, isUnmet } from './rule.ts'
import { findSigner, usagesForSigner } from './signers.ts'
import { signingFindings } from './signing.ts'

/**
 * Returns the object of a request. Throws KCERT_USAGE when the signer or the usages are unknown, and
 * KCERT_CSR_SIGNER_REFUSED when the API server would reject the object or its signer would fail it.
 */
export function manifestOf(spec: RequestSpec, der: Uint8Array): Manifest {
  const request = CertificateRequest.parse(der)
  const pem = Buffer.from(writePem('CERTIFICATE REQUEST', der))
  const { signerName, objectName: name, expirationSeconds } = spec
  if (signerName === undefined)
    throw new KcertError('KCERT_USAGE', `no signer for the object ${quoted(name)}`, {
      why: 'Kubernetes has signers for users and kubelets only; servers in the cluster need your own signer',
      next:
        spec.usages === undefined && spec.purpose === undefined
          ? '--signer example.com/serving --usage "digital signature" --usage "server auth"'
          : '--signer example.com/serving',
    })
  const usages = usagesOf(spec, signerName, request)
  refuseHopeless(name, signerName, [
    ...admissionFindings({
      ...{ apiVersion: 'certificates.k8s.io/v1', name, request: pem, signerName, usages },
      ...given({ expirationSeconds }),
      ...{ labels: {}, groups: [], extra: {}, conditions: [] },
    }),
    ...signingFindings({ signerName, usages }, request),
  ])
  return {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: pem.toString('base64'),
      signerName,
      ...given({ expirationSeconds }),
      usages: [...usages],
    },
  }
}

function usagesOf(
  { usages, purpose }: RequestSpec,
  signerName: string,
  request: CertificateRequest,
): readonly string[] {
  if (usages !== undefined) return usages
  const { algorithm } = request.publicKey
  const known = usagesForSigner(signerName, algorithm) ?? (purpose && usagesFor(purpose, algorithm))
  if (known !== undefined) return known
  throw withoutUsages(signerName)
}

/** The error when no usages are given, and neither signer nor preset implies them. */
export function withoutUsages(signerName: string): KcertError {
  return new KcertError('KCERT_USAGE', `no usages given for signer ${quoted(signerName)}`, {
    why: 'the signer issues the certificate for the usages in spec.usages; a client needs "client auth" instead of "server auth"',
    next: '--usage "digital signature" --usage "server auth"',
  })
}

/** Throws KCERT_CSR_SIGNER_REFUSED for the first broken rule of the API server or the signer, with the fix. */
export function refuseHopeless(name: string, signerName: string, findings: readonly Finding[]): void {
  const fault = findings.find(isUnmet)
  if (fault === undefined) return
  const isSigner = fault.question === 'signing' && findSigner(signerName) !== undefined
  const what = `request ${quoted(name)} for signer ${signerName} would ${fault.question === 'signing' && !isSigner ? 'wait forever' : 'be refused'}: ${fault.detail}`
  throw new KcertError('KCERT_CSR_SIGNER_REFUSED', what, {
    why: isSigner
      ? 'after the approval, the signer would set the condition Failed, which is permanent'
      : fault.question === 'signing'
        ? 'the API server accepts the object, but no signer signs it'
        : 'the API server checks this when the object is created',
    ...adviceFields(fault),
  })
}
