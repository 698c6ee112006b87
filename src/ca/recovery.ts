import type { Certificate } from '../x509/certificate.ts'
import { verifySignature } from '../x509/signature.ts'
import type { SigningPair } from './certificate-authority.ts'
import { type ClusterFile, casAmong, type OpenedFile, openFile } from './cluster-files.ts'
import { renewRoot } from './root.ts'
import { reissueLeaf } from './successor.ts'

// Recovers a cluster with an expired CA from its files alone. The CA keeps its name and key and gets a new expiry, so that public
// key pins stay the same and no second CA is needed. Every expired leaf is signed again for the same names and key.

/** An expired CA, and its replacement. */
export interface RenewedCa {
  readonly old: Certificate
  readonly renewed: Certificate
}

export interface RecoveredFile {
  readonly node: string
  readonly path: string
  readonly text: string
  /** The changes, as fragments: "CN=kubernetes until 2036-11-18". */
  readonly what: readonly string[]
}

export interface Recovery {
  readonly renewed: readonly RenewedCa[]
  readonly files: readonly RecoveredFile[]
  /** Expired CAs of kubeconfigs whose key is in none of the files. */
  readonly keyless: readonly Certificate[]
  /** Expired leaves whose CA key is in none of the files: they belong to another CA. */
  readonly foreign: readonly { readonly node: string; readonly path: string; readonly subject: string }[]
}

interface Issuer {
  readonly now: Date
  readonly serialNumber: () => string
}

/** Returns the recovered files of a cluster. Valid certificates stay unchanged, so a second run changes nothing. */
export async function recoverFiles(files: readonly ClusterFile[], issuer: Issuer): Promise<Recovery> {
  const read = await Promise.all(files.map(openFile))
  const { renewed, pairs, keyless: withoutKey } = casOf(read, issuer)
  // The self-signed CA of a kubelet expires too, which does no harm: the cluster's CA is the one in kubeconfigs.
  const inKubeconfigs = new Set(read.flatMap((file) => file.cas.map((one) => one.publicKey.sha256)))
  const keyless = withoutKey.filter((one) => inKubeconfigs.has(one.publicKey.sha256))
  const replacementOf = replacements(renewed, pairs, issuer)
  // Files with the renewed CAs come first, so that the next run finds them after an interruption.
  const [first, later]: [RecoveredFile[], RecoveredFile[]] = [[], []]
  const foreign: { node: string; path: string; subject: string }[] = []
  for (const file of read) {
    const { node, path } = file.file
    const what: string[] = []
    const replaced = (certificate: Certificate): Certificate => {
      const now = replacementOf(certificate)
      if (now === undefined) foreign.push({ node, path, subject: certificate.subject.text })
      else if (now !== certificate) {
        what.push(`${now.subject.text} until ${now.notAfter.toISOString().slice(0, 10)}`)
      }
      return now ?? certificate
    }
    const text = await file.rewrite({ certificate: replaced })
    if (what.length === 0) continue
    const list = file.certificates.every((one) => one.isCa) ? first : later
    list.push({ node, path, text, what: [...new Set(what)] })
  }
  return { renewed, files: [...first, ...later], keyless, foreign }
}

/** Returns CAs by their keys: the valid one, or a renewed one. */
function casOf(files: readonly OpenedFile[], { now, serialNumber }: Issuer) {
  const renewed: RenewedCa[] = []
  const pairs: SigningPair[] = []
  const keyless: Certificate[] = []
  for (const { all, latest, key } of casAmong(files, ({ isSelfIssued }) => isSelfIssued)) {
    const expired = all.filter((one) => one.notAfterMs <= now.getTime())
    const distinct = [...new Map(expired.map((one) => [one.fingerprintSha256, one])).values()]
    const isValid = latest.notAfterMs > now.getTime()
    if (key === undefined) {
      if (!isValid) keyless.push(latest)
      continue
    }
    const successor = isValid ? latest : renewRoot({ certificate: latest, key }, now, serialNumber())
    pairs.push({ certificate: successor, key })
    for (const old of distinct) renewed.push({ old, renewed: successor })
  }
  return { renewed, pairs, keyless }
}

/**
 * Returns the replacement of each certificate, the same in every file: the certificate itself while it is valid, undefined for an
 * expired one that no CA in the files can sign.
 */
function replacements(
  renewed: readonly RenewedCa[],
  pairs: readonly SigningPair[],
  { now, serialNumber }: Issuer,
): (certificate: Certificate) => Certificate | undefined {
  const made = new Map(
    renewed.map((one): [string, Certificate | undefined] => [one.old.fingerprintSha256, one.renewed]),
  )
  return (certificate) => {
    const id = certificate.fingerprintSha256
    if (!made.has(id)) {
      if (certificate.isCa || certificate.notAfterMs > now.getTime()) return certificate
      const signer = pairs.find((pair) => verifySignature(certificate, pair.certificate.publicKey).ok)
      made.set(id, signer && reissueLeaf(certificate, signer, { now, serialNumber: serialNumber() }))
    }
    return made.get(id)
  }
}
