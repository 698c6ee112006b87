import { requestNameOf } from '../../csr/request-name.ts'
import { KcertError } from '../../errors/kcert-error.ts'

/** Returns the object names in the operands, each once. Throws KCERT_USAGE for an empty name. */
export function namesAmong(operands: readonly string[]): string[] {
  const names = [...new Set(operands.map(requestNameOf))]
  if (names.includes('')) throw nothingNamed()
  return names
}

/** Returns the same; throws KCERT_USAGE if there are no names. */
export function namesOf(operands: readonly string[]): string[] {
  const names = namesAmong(operands)
  if (names.length === 0) throw nothingNamed()
  return names
}

function nothingNamed(): KcertError {
  return new KcertError('KCERT_USAGE', 'no request given', { next: 'kcert csr list' })
}

/** Returns the error for a name that no object has. */
export function noSuchRequest(name: string): KcertError {
  const what = `CertificateSigningRequest ${JSON.stringify(name)} not found`
  return new KcertError('KCERT_API_NOT_FOUND', what, {
    why: 'kube-controller-manager deletes requests an hour after they are issued, denied or failed, a day after their creation if they are pending, and since Kubernetes 1.35 a day after their approval if they are unsigned',
    next: 'kcert csr list',
  })
}

export function noSuchPodRequest(name: string): KcertError {
  const what = `PodCertificateRequest ${JSON.stringify(name)} not found in this namespace`
  return new KcertError('KCERT_API_NOT_FOUND', what, {
    why: 'kube-controller-manager deletes each one 15 minutes after its creation',
    next: 'kcert csr list --pods',
  })
}
