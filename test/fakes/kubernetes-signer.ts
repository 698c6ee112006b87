import { isKubernetesDomain } from '../../src/csr/signer-name.ts'
import { findSigner, type SignerInput } from '../../src/csr/signers.ts'

// kube-controller-manager's decisions by the rules of src/csr/signers.ts. test/truth/csr-signers.test.ts compares them with
// Kubernetes' own.

export type SignerAnswer =
  /** kube-controller-manager issues a certificate. */
  | 'signed'
  /** It puts the condition Failed on the object. */
  | 'failed'
  /** The object is not approved, or has already failed. */
  | 'waits'
  /** A name under kubernetes.io that no signer of Kubernetes has, so no signer handles it. */
  | 'no-signer'
  /** A third-party signer, whose rules kcert does not know. */
  | 'other-signer'

export interface ConditionsOfSigning {
  readonly approved: boolean
  readonly failed: boolean
}

/** Returns the action of kube-controller-manager for the current object. */
export function signerAnswer(
  signerName: string,
  input: SignerInput,
  { approved, failed }: ConditionsOfSigning,
): SignerAnswer {
  const signer = findSigner(signerName)
  if (signer === undefined) return isKubernetesDomain(signerName) ? 'no-signer' : 'other-signer'
  if (!approved || failed) return 'waits'
  return signer.rules.every((rule) => rule.fault(input) === undefined) ? 'signed' : 'failed'
}

/** The minimum of kube-controller-manager: twice the five minutes by which it backdates notBefore. */
const shortestSeconds = 600

/**
 * Returns the lifetime that kube-controller-manager grants, in seconds: the requested one, at least ten minutes, at most its
 * --cluster-signing-duration, which is also the default. The CA's notAfter is a further limit.
 */
export function grantedSeconds(requested: number | undefined, signingDuration: number): number {
  if (requested === undefined || requested > signingDuration) return signingDuration
  return Math.max(requested, shortestSeconds)
}
