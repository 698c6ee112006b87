import { adviceFields } from '../errors/kcert-error.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { signatureFault } from '../x509/signature-fault.ts'
import { quoted } from './quoting.ts'
import type { Finding } from './rule.ts'
import { isKubernetesDomain, signerNameDefect } from './signer-name.ts'
import { adviceOf, findSigner, signers } from './signers.ts'
import type { SigningRequest } from './signing-request.ts'

/** Returns one finding per rule of the requested signer, in the order in which the signer checks. */
export function signingFindings(
  { signerName, usages }: Pick<SigningRequest, 'signerName' | 'usages'>,
  request: CertificateRequest,
): Finding[] {
  const signer = findSigner(signerName)
  if (signer === undefined) return [signerFinding(signerName)]
  return [
    met('signer', `kube-controller-manager signs for ${signerName}`),
    ...signer.rules.map((rule): Finding => {
      const { id, wants } = rule
      const found = rule.fault({ request, usages })
      if (found === undefined) return met(id, wants)
      const detail = `it requires ${wants}, but ${found}`
      return { id, question: 'signing', outcome: 'unmet', detail, ...adviceFields(adviceOf(rule, request)) }
    }),
  ]
}

function met(id: string, detail: string): Finding {
  return { id, question: 'signing', outcome: 'met', detail }
}

/**
 * Returns the objection of kube-controller-manager up to 1.37 to the signature of a request that breaks no rule of its signer
 * (pkg/controller/certificates/authority). It then sets no condition and keeps retrying.
 */
export function signatureFinding(signerName: string, request: CertificateRequest): Finding | undefined {
  const verdict = request.verifySignature()
  if (verdict.ok || findSigner(signerName) === undefined) return undefined
  return {
    id: 'signer-signature',
    question: 'signing',
    outcome: 'unmet',
    detail: `it requires a signature that it can verify, but ${signatureFault(request, verdict.reason)}`,
    fix: 'create a new request with an ECDSA P-256 key',
  }
}

function signerFinding(signerName: string): Finding {
  const found = { id: 'signer', question: 'signing' } as const
  if (isKubernetesDomain(signerName)) {
    const names = signers.filter(({ purpose }) => purpose !== undefined).map(({ name }) => name)
    const detail = `${quoted(signerName)} is not a signer of Kubernetes, and its domain is reserved for Kubernetes`
    const fix = `use one of ${names.join(', ')}, or a signer of your own domain`
    return { ...found, outcome: 'unmet', detail, fix }
  }
  if (signerNameDefect(signerName) === undefined)
    return met('signer', `kcert does not know the rules of ${signerName}`)
  const detail = 'no signer has such a name: it is a domain, "/" and a path, such as example.com/serving'
  return { ...found, outcome: 'unmet', detail }
}
