import { commandLine } from '../errors/command-line.ts'
import { KcertError, messageOf } from '../errors/kcert-error.ts'
import { type Certificate, certificateBlocks, certificateOfBlock } from '../x509/certificate.ts'
import { isPrivateKeyLabel, type PrivateKeyInfo, readPrivateKey } from '../x509/keys.ts'
import { type PemBlock, readPem, writePem } from '../x509/pem.ts'
import type { HeldCertificate } from './template.ts'

/** A certificate chain, leaf first, and its private key. */
export interface Pair {
  readonly chain: readonly [Certificate, ...Certificate[]]
  readonly key: PrivateKeyInfo
}

/**
 * Returns the pair in the PEM text of one file, or of two concatenated files: the certificates, and the first private key, as
 * Go's tls.X509KeyPair reads them. Throws KCERT_PAIR_UNFIT when one is missing, damaged, or does not match the other.
 */
export function readPair(pem: Uint8Array | string, place: string): Pair {
  const [leaf, ...issuers] = readChain(pem, place)
  if (leaf === undefined) throw unfit(place, 'it contains no certificate')
  const keyBlock = readPem(pem).blocks.find(({ label }) => isPrivateKeyLabel(label))
  if (keyBlock === undefined) throw unfit(place, 'it contains no private key')
  const key = readKey(keyBlock, place)
  if (key.publicKey?.sha256 !== leaf.publicKey.sha256)
    throw unfit(place, 'its private key is not the one of its certificate')
  return { chain: [leaf, ...issuers], key }
}

/** Returns the pair as the kubelet writes it into one file: certificates, leaf first, then the unchanged key. */
export function pairText({ chain }: Pair, keyPem: string): string {
  return `${chain.map(({ der }) => writePem('CERTIFICATE', der)).join('')}${keyPem.trimEnd()}\n`
}

/** Returns the facts of a pair that determine its renewal. */
export function heldCertificateOf({ chain: [leaf] }: Pair): HeldCertificate {
  const { dns, ip } = leaf.subjectAltNames
  return {
    notBeforeMs: leaf.notBeforeMs,
    notAfterMs: leaf.notAfterMs,
    commonName: leaf.subject.commonName ?? '',
    organization: leaf.subject.organization,
    dns,
    ip,
  }
}

function readChain(pem: Uint8Array | string, place: string): Certificate[] {
  try {
    return certificateBlocks(pem).map(certificateOfBlock)
  } catch (error) {
    throw unfit(place, `a certificate in it cannot be read: ${messageOf(error)}`, error)
  }
}

function readKey(block: PemBlock, place: string): PrivateKeyInfo {
  try {
    return readPrivateKey(block)
  } catch (error) {
    throw unfit(place, `its private key cannot be read: ${messageOf(error)}`, error)
  }
}

function unfit(place: string, why: string, cause?: unknown): KcertError {
  return new KcertError('KCERT_PAIR_UNFIT', `${place} does not contain a matching certificate and key`, {
    why,
    next: commandLine`kcert inspect ${place}`,
    ...(cause === undefined ? {} : { cause }),
  })
}
