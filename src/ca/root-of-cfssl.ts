import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { sourceName } from '../errors/source-name.ts'
import type { CfsslRequest } from '../pki/cfssl-request.ts'
import { cfsslCaTtlMs, type RootDescription } from './root.ts'

/**
 * Returns the CA that `cfssl gencert -initca` would create from a request, with notices on what cfssl omits. Throws
 * KCERT_CFSSL_INVALID for a request without a name.
 */
export function rootOfCfssl(
  { subject, altNames, ca = {}, leftOut }: CfsslRequest,
  file: string,
): { root: RootDescription; notices: string[] } {
  if (subject.length === 0)
    throw new KcertError('KCERT_CFSSL_INVALID', `${sourceName(file)} has neither CN nor names`, {
      why: 'the issuer of every certificate that the CA signs is this name; add "CN" to the JSON',
    })
  const { expiryMs = cfsslCaTtlMs, backdateMs, pathLength } = ca
  // cfssl omits its "hosts" from a CA certificate, except for IP addresses, by an oversight.
  const hosts = Object.values(altNames).flat()
  return {
    root: { subject, ttlMs: expiryMs, ...given({ backdateMs, pathLength }) },
    notices: [
      ...(hosts.length === 0
        ? []
        : [`hosts left out, because a CA certificate has no SANs: ${hosts.join(', ')}`]),
      ...leftOut.map((member) => `"${member}" of ${sourceName(file)} is ignored`),
    ],
  }
}
