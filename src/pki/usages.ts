import { type KeyUsage, keyUsages } from '../x509/extensions.ts'

// The usages of the certificates API (spec.usages; k8s.io/api certificates/v1) and their encoding by kube-controller-manager.
// Requests, signers, policies and the local CA all use this table.

interface UsageMeaning {
  readonly keyUsage?: KeyUsage
  readonly extendedKeyUsage?: string
}

const meanings = {
  signing: { keyUsage: 'digitalSignature' },
  'digital signature': { keyUsage: 'digitalSignature' },
  // RFC 5280 renamed this bit to contentCommitment. Its name in the certificate's ASN.1 is unchanged.
  'content commitment': { keyUsage: 'nonRepudiation' },
  'key encipherment': { keyUsage: 'keyEncipherment' },
  'key agreement': { keyUsage: 'keyAgreement' },
  'data encipherment': { keyUsage: 'dataEncipherment' },
  'cert sign': { keyUsage: 'keyCertSign' },
  'crl sign': { keyUsage: 'cRLSign' },
  'encipher only': { keyUsage: 'encipherOnly' },
  'decipher only': { keyUsage: 'decipherOnly' },
  any: { extendedKeyUsage: 'anyExtendedKeyUsage' },
  'server auth': { extendedKeyUsage: 'serverAuth' },
  'client auth': { extendedKeyUsage: 'clientAuth' },
  'code signing': { extendedKeyUsage: 'codeSigning' },
  'email protection': { extendedKeyUsage: 'emailProtection' },
  's/mime': { extendedKeyUsage: 'emailProtection' },
  'ipsec end system': { extendedKeyUsage: 'ipsecEndSystem' },
  'ipsec tunnel': { extendedKeyUsage: 'ipsecTunnel' },
  'ipsec user': { extendedKeyUsage: 'ipsecUser' },
  timestamping: { extendedKeyUsage: 'timeStamping' },
  'ocsp signing': { extendedKeyUsage: 'OCSPSigning' },
  'microsoft sgc': { extendedKeyUsage: 'msSGC' },
  'netscape sgc': { extendedKeyUsage: 'nsSGC' },
} as const satisfies Record<string, UsageMeaning>

/** A usage in the spelling of spec.usages. */
export type Usage = keyof typeof meanings

/** All usages that the API server accepts. The extended ones are in the order in which a certificate lists them. */
export const usages = Object.keys(meanings) as readonly Usage[]

export function isUsage(text: string): text is Usage {
  return Object.hasOwn(meanings, text)
}

export interface CertificateUsages {
  /** In the order of the bits of the extension. */
  readonly keyUsage: readonly KeyUsage[]
  /** In the order in which kube-controller-manager writes them. */
  readonly extendedKeyUsage: readonly string[]
}

/**
 * Returns the certificate fields for these usages; duplicates count once. Returns undefined when one of them is unknown, because
 * kube-controller-manager then signs nothing.
 */
export function certificateUsages(asked: readonly string[]): CertificateUsages | undefined {
  if (!asked.every(isUsage)) return undefined
  const bits = new Set<string>()
  const purposes = new Set<string>()
  for (const usage of asked) {
    const { keyUsage, extendedKeyUsage }: UsageMeaning = meanings[usage]
    if (keyUsage !== undefined) bits.add(keyUsage)
    if (extendedKeyUsage !== undefined) purposes.add(extendedKeyUsage)
  }
  return {
    keyUsage: keyUsages.filter((bit) => bits.has(bit)),
    extendedKeyUsage: extendedOrder.filter((purpose) => purposes.has(purpose)),
  }
}

const extendedOrder = [
  ...new Set(Object.values<UsageMeaning>(meanings).flatMap(({ extendedKeyUsage }) => extendedKeyUsage ?? [])),
]

/**
 * Returns the usages that client-go requests, in the order of the documentation. Key encipherment is for RSA keys only: other
 * keys cannot encrypt.
 */
export function usagesFor(purpose: 'client auth' | 'server auth', keyAlgorithm: string): readonly Usage[] {
  return keyAlgorithm === 'RSA'
    ? ['digital signature', 'key encipherment', purpose]
    : ['digital signature', purpose]
}
