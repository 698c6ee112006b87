import { type KeyUsage, keyUsages } from '../x509/extensions.ts'

// The usages of the certificates API (spec.usages; k8s.io/api certificates/v1) and what kube-controller-manager makes of
// them in a certificate. One table: requests, signers, policies and the local CA all read it.

interface UsageMeaning {
  readonly keyUsage?: KeyUsage
  readonly extendedKeyUsage?: string
}

const meanings = {
  signing: { keyUsage: 'digitalSignature' },
  'digital signature': { keyUsage: 'digitalSignature' },
  // RFC 5280 renamed this bit to contentCommitment; its name in the certificate's ASN.1 stayed.
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

/** A usage as spec.usages spells it. */
export type Usage = keyof typeof meanings

/** All usages that the API server takes, the extended ones in the order in which a certificate lists them. */
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
 * Returns what a certificate for these usages says; doubles count once. Undefined when one of them is unknown:
 * kube-controller-manager signs nothing then.
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
 * Returns the usages that client-go asks for, in the order of the documentation. Key encipherment is for RSA keys alone: the
 * others cannot encrypt.
 */
export function usagesFor(purpose: 'client auth' | 'server auth', keyAlgorithm: string): readonly Usage[] {
  return keyAlgorithm === 'RSA'
    ? ['digital signature', 'key encipherment', purpose]
    : ['digital signature', purpose]
}
