import { KcertError } from '../errors/kcert-error.ts'
import type { Usage } from '../pki/usages.ts'
import { kubernetesBackdateMs, kubernetesTtlMs } from './validity.ts'

/** What the signer decides about a certificate. */
export interface SigningProfile {
  readonly usages: readonly Usage[]
  readonly ttlMs: number
  readonly backdateMs: number
  /** Attributes of the subject that are signed besides CN and O: "OU". */
  readonly subjectAttributes: readonly string[]
  readonly ocspUrls: readonly string[]
  readonly issuerUrls: readonly string[]
  readonly crlUrls: readonly string[]
}

/** Returns the profile of kube-controller-manager's defaults for these usages. */
export function kubernetesProfile(usages: readonly Usage[], ttlMs = kubernetesTtlMs): SigningProfile {
  return {
    usages,
    ttlMs,
    backdateMs: kubernetesBackdateMs,
    subjectAttributes: [],
    ocspUrls: [],
    issuerUrls: [],
    crlUrls: [],
  }
}

// The usages of kubeadm's certificates (pkiutil, NewSignedCert): key encipherment for every type of key.
const builtIn: Readonly<Record<string, readonly Usage[]>> = {
  server: ['digital signature', 'key encipherment', 'server auth'],
  client: ['digital signature', 'key encipherment', 'client auth'],
  peer: ['digital signature', 'key encipherment', 'server auth', 'client auth'],
}

export const builtInProfileNames = Object.keys(builtIn)

/** Returns a profile that needs no file. Throws KCERT_PROFILE_INVALID for any other name. */
export function builtInProfile(name: string): SigningProfile {
  const usages = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined
  if (usages !== undefined) return kubernetesProfile(usages)
  throw new KcertError('KCERT_PROFILE_INVALID', `unknown profile "${name}"`, {
    why: `the built-in profiles are ${builtInProfileNames.join(', ')}; others need --config`,
    next: '--profile server',
  })
}
