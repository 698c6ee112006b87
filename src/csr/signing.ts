import type { CertificateRequest } from '../x509/request.ts'
import { quoted } from './quoting.ts'
import type { Finding } from './rule.ts'
import { isKubernetesDomain, signerNameDefect } from './signer-name.ts'
import { findSigner, signers } from './signers.ts'
import type { SigningRequest } from './signing-request.ts'

/** Returns what comes of each rule of the signer that a request is for, in the order in which the signer checks. */
export function signingFindings(
  { signerName, usages }: Pick<SigningRequest, 'signerName' | 'usages'>,
  request: CertificateRequest,
): Finding[] {
  const signer = findSigner(signerName)
  if (signer === undefined) return [signerFinding(signerName)]
  return [
    {
      id: 'signer',
      question: 'signing',
      outcome: 'met',
      detail: `kube-controller-manager signs for ${signerName}`,
    },
    ...signer.rules.map(({ id, wants, fault, next }): Finding => {
      const found = fault({ request, usages })
      return found === undefined
        ? { id, question: 'signing', outcome: 'met', detail: wants }
        : { id, question: 'signing', outcome: 'unmet', detail: `it wants ${wants}, but ${found}`, next }
    }),
  ]
}

function signerFinding(signerName: string): Finding {
  const found = { id: 'signer', question: 'signing' } as const
  if (isKubernetesDomain(signerName)) {
    const names = signers.filter(({ purpose }) => purpose !== undefined).map(({ name }) => name)
    return {
      ...found,
      outcome: 'unmet',
      detail: `${quoted(signerName)} is no signer of Kubernetes, and its domain is kept for those`,
      next: ['ask one of', names.join(', '), 'or a signer of your own domain'].join(' '),
    }
  }
  if (signerNameDefect(signerName) !== undefined)
    return { ...found, outcome: 'unmet', detail: 'nobody signs for such a name', next: 'write DOMAIN/NAME' }
  return {
    ...found,
    outcome: 'met',
    detail: `whoever runs ${signerName} decides; kcert does not know its rules`,
  }
}
