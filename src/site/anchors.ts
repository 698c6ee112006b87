import { onKcertError } from '../errors/caught.ts'
import type { Anchor, GivenCertificate } from '../probe/target.ts'
import { readCertificateInput } from '../verification/input.ts'
import { readCertificates } from '../x509/certificate.ts'

/** Returns the CAs of a file or object that verify servers, or why it cannot be read. */
export async function anchorOf(by: string, source: string, bytes: Uint8Array): Promise<Anchor> {
  try {
    const readReferencedFile = (name: string) => ({
      name,
      reason: 'io' as const,
      detail: 'kcert does not read files that a file of another machine refers to',
    })
    const roots = await readCertificateInput({ name: source, bytes }, 'roots', { readReferencedFile })
    return { by, source, roots }
  } catch (error) {
    return onKcertError(({ why, message }) => ({ by, source, fault: why ?? message }))(error)
  }
}

/** Returns the first certificate of a file, which a server presents as its own. */
export function givenIn(source: string, bytes: Uint8Array): GivenCertificate {
  try {
    const [certificate] = readCertificates(bytes)
    return certificate === undefined
      ? { source, fault: 'it contains no certificate' }
      : { source, certificate }
  } catch (error) {
    return onKcertError(({ message }) => ({ source, fault: message }))(error)
  }
}
