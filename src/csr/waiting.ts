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
  /** The UID of the submitted object: another object with the same name belongs to another requester. */
  readonly uid?: string
  /** Aborts at the timeout. */
  readonly signal: AbortSignal
  /** Called with each state of the object, including the first. */
  readonly onChange?: (object: SigningRequest) => void
}

/**
 * Returns the object once it is issued, denied or failed, or its last state when the signal aborts; undefined if it did not exist
 * until then. Throws KCERT_API_NOT_FOUND when it is deleted, and KCERT_API_CONFLICT when another object takes its name.
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
