import { isKubernetesDomain } from '../../src/csr/signer-name.ts'
import { findSigner, type SignerInput } from '../../src/csr/signers.ts'

// What kube-controller-manager answers by the rules of src/csr/signers.ts. test/truth/csr-signers.test.ts holds it to Kubernetes' own.

export type SignerAnswer =
  /** kube-controller-manager issues a certificate. */
  | 'signs'
  /** It puts the condition Failed on the object. */
  | 'fails'
  /** The object is not approved, or has failed already. */
  | 'waits'
  /** A name below kubernetes.io that no signer of Kubernetes has: nobody ever signs it. */
  | 'nobody'
  /** A signer of somebody else, whose rules kcert does not know. */
  | 'another'

export interface ConditionsOfSigning {
  readonly approved: boolean
  readonly failed: boolean
}

/** Returns what kube-controller-manager does with an object as it is now. */
export function signerAnswer(
  signerName: string,
  input: SignerInput,
  { approved, failed }: ConditionsOfSigning,
): SignerAnswer {
  const signer = findSigner(signerName)
  if (signer === undefined) return isKubernetesDomain(signerName) ? 'nobody' : 'another'
  if (!approved || failed) return 'waits'
  return signer.rules.every((rule) => rule.fault(input) === undefined) ? 'signs' : 'fails'
}

/** kube-controller-manager never issues for less: twice the five minutes by which it sets notBefore back. */
const shortestSeconds = 600

/**
 * Returns for how long kube-controller-manager issues, in seconds: what is asked, at least ten minutes, at most its
 * --cluster-signing-duration, which also stands when nothing is asked. The CA's own end comes on top of this.
 */
export function grantedSeconds(requested: number | undefined, signingDuration: number): number {
  if (requested === undefined || requested > signingDuration) return signingDuration
  return Math.max(requested, shortestSeconds)
}
