import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { stateOf } from './life.ts'
import { quoted } from './quoting.ts'
import { requestWord } from './request-name.ts'
import { signingRequestOfObject } from './request-object.ts'
import type { RequestsApi } from './requests-api.ts'
import type { SigningRequest } from './signing-request.ts'

export interface Wait {
  readonly name: string
  /** Of the object that was submitted: another of the same name is somebody else's. */
  readonly uid?: string
  /** Given when there is no more time. */
  readonly signal: AbortSignal
  /** Is called with each state of the object, also the first. */
  readonly onChange?: (object: SigningRequest) => void
}

/**
 * Returns the object once it is issued, denied or failed, or as it was last when the signal was given; undefined when there was
 * none until then. Throws KCERT_API_NOT_FOUND when it is removed meanwhile, KCERT_API_CONFLICT when another takes its place.
 */
export async function waitForCertificate(
  api: RequestsApi,
  { name, uid, signal, onChange }: Wait,
): Promise<SigningRequest | undefined> {
  const what = `the CertificateSigningRequest ${quoted(name)}`
  let owner = uid
  let last: SigningRequest | undefined
  try {
    for await (const { type, object } of api.watch(name, signal)) {
      if (type === 'DELETED')
        throw new KcertError('KCERT_API_NOT_FOUND', `${what} was deleted during the wait`, {
          why: 'a user deleted it, or kube-controller-manager did, because it was too old; submit it again with the same files',
        })
      last = signingRequestOfObject(object)
      owner ??= last.uid
      if (last.uid !== owner)
        throw new KcertError('KCERT_API_CONFLICT', `${what} is not the one that you submitted`, {
          why: 'it was deleted and created again, maybe for another key',
          next: commandLine`kcert csr describe ${requestWord(name)}`,
        })
      onChange?.(last)
      const state = stateOf(last)
      if (state !== 'pending' && state !== 'approved') return last
    }
  } catch (error) {
    if (!signal.aborted || error instanceof KcertError) throw error
  }
  return last
}
