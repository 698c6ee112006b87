import { keyIdOf } from '../../x509/service-account-token.ts'
import type { Digest } from '../certificate-record.ts'
import { isPlanned } from '../target.ts'

/** Returns the key ID (`kid`) of a key that exists, and the placeholder of one that phase 1 creates. */
export function keyIdFor(digest: Digest): string {
  return isPlanned({ digest }) ? digest : keyIdOf({ sha256: digest })
}
