import { requestNameOf } from '../../csr/request-name.ts'
import { KcertError } from '../../errors/kcert-error.ts'

/** Returns the names of objects that operands give, each once. Throws KCERT_USAGE for one that is empty. */
export function namesAmong(operands: readonly string[], command: string): string[] {
  const names = [...new Set(operands.map(requestNameOf))]
  if (names.includes('')) throw nothingNamed(command)
  return names
}

/** The same; throws KCERT_USAGE where there is none. */
export function namesOf(operands: readonly string[], command: string): string[] {
  const names = namesAmong(operands, command)
  if (names.length === 0) throw nothingNamed(command)
  return names
}

function nothingNamed(command: string): KcertError {
  return new KcertError('KCERT_USAGE', 'no request is named', {
    next: ['kcert csr list; kcert', command].join(' '),
  })
}

/** Returns the error for a name that no object has. */
export function noSuchRequest(name: string): KcertError {
  return new KcertError(
    'KCERT_API_NOT_FOUND',
    `there is no CertificateSigningRequest ${JSON.stringify(name)}`,
    {
      why: 'kube-controller-manager removes them an hour after they are issued, denied or failed, and a day after they were created; since Kubernetes 1.35 also a day after an approval, when nobody signs',
      next: 'if it was removed, submit the request again; otherwise: kcert csr list',
    },
  )
}

export function noSuchPodRequest(name: string): KcertError {
  return new KcertError(
    'KCERT_API_NOT_FOUND',
    `there is no PodCertificateRequest ${JSON.stringify(name)} in this namespace`,
    {
      why: 'kube-controller-manager removes each 15 minutes after it was created',
      next: 'kcert csr list --pods',
    },
  )
}
