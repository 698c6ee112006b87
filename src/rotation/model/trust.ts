import type { CertificateRecord, CertificateTable, Digest } from '../certificate-record.ts'

// Whether a verifier with this trust accepts this chain. Only records are used, because most leaf certificates of a plan do not
// exist yet. Names, key identifiers, keys and times decide in a rotation. trust.test.ts compares the results with src/x509, which
// is tested with Go and OpenSSL.

export type Verifier = 'go' | 'openssl'

export interface TrustQuestion {
  /** The presented chain, leaf certificate first. */
  readonly chain: readonly Digest[]
  /** The trusted CAs, in the order of the file. */
  readonly trust: readonly Digest[]
  readonly certificates: Pick<CertificateTable, 'get'>
  readonly atMs: number
}

/** Returns the verifiers that reject the chain. */
export function refusingVerifiers(question: TrustQuestion): readonly Verifier[] {
  const [leaf, ...intermediates] = recordsOf(question, question.chain)
  const roots = recordsOf(question, question.trust)
  if (leaf === undefined) return ['go', 'openssl']
  const refusing: Verifier[] = []
  if (!acceptsAsGo(leaf, intermediates, roots, question.atMs)) refusing.push('go')
  if (!acceptsAsOpenssl(leaf, intermediates, roots, question.atMs)) refusing.push('openssl')
  return refusing
}

function recordsOf({ certificates }: TrustQuestion, digests: readonly Digest[]): CertificateRecord[] {
  return digests.flatMap((digest) => certificates.get(digest) ?? [])
}

type Records = readonly CertificateRecord[]

/** Go tries every candidate with the issuer's name, regardless of its key identifier, until one path is valid. */
function acceptsAsGo(leaf: CertificateRecord, intermediates: Records, roots: Records, atMs: number): boolean {
  if (!isValid(leaf, atMs)) return false
  const reaches = (below: Records): boolean => {
    const issued = below.at(-1) ?? leaf
    const mayFollow = (one: CertificateRecord): boolean =>
      one.subject === issued.issuer &&
      one.isCa &&
      one.spki === issued.signedBy &&
      isValid(one, atMs) &&
      !below.some((other) => other.subject === one.subject && other.spki === one.spki)
    return roots.some(mayFollow) || intermediates.filter(mayFollow).some((one) => reaches([...below, one]))
  }
  return roots.some(({ digest }) => digest === leaf.digest) || reaches([leaf])
}

/** OpenSSL takes the first trusted certificate that matches the issuer, and only then verifies the signature. */
function acceptsAsOpenssl(
  leaf: CertificateRecord,
  intermediates: Records,
  roots: Records,
  atMs: number,
): boolean {
  const untrusted = [...intermediates]
  const chain = [leaf]
  let maySearchUntrusted = true
  for (;;) {
    const last = chain.at(-1) ?? leaf
    const issuer = likelyIssuer(roots, last, atMs)
    if (issuer !== undefined) {
      const isMimic = looksSelfSigned(last) && last.digest !== issuer.digest
      if (!looksSelfSigned(last)) chain.push(issuer)
      if (!isMimic) {
        maySearchUntrusted = false
        if (looksSelfSigned(issuer)) return isValidChain(chain, atMs)
        continue
      }
    }
    if (!maySearchUntrusted || looksSelfSigned(last)) return false
    const next = likelyIssuer(
      untrusted.filter(({ digest }) => !chain.some((one) => one.digest === digest)),
      last,
      atMs,
    )
    if (next === undefined) return false
    untrusted.splice(untrusted.indexOf(next), 1)
    chain.push(next)
  }
}

function likelyIssuer(
  candidates: Records,
  issued: CertificateRecord,
  atMs: number,
): CertificateRecord | undefined {
  const likely = candidates.filter((one) => one.subject === issued.issuer && fitsIdentifier(one, issued))
  return (
    likely.find((one) => isValid(one, atMs)) ??
    likely.reduce<CertificateRecord | undefined>(
      (best, one) => (best === undefined || one.notAfterMs > best.notAfterMs ? one : best),
      undefined,
    )
  )
}

/** An issuer is skipped only if both identifiers exist and differ. */
function fitsIdentifier(issuer: CertificateRecord, { authorityKeyId }: CertificateRecord): boolean {
  return (
    authorityKeyId === undefined ||
    issuer.subjectKeyId === undefined ||
    authorityKeyId === issuer.subjectKeyId
  )
}

function looksSelfSigned(one: CertificateRecord): boolean {
  return one.subject === one.issuer && fitsIdentifier(one, one)
}

/** Returns true when each certificate is valid and signed by the next one. The signature of the last one is not checked. */
function isValidChain(chain: Records, atMs: number): boolean {
  return chain.every((one, i) => {
    const issuer = chain[i + 1]
    return isValid(one, atMs) && (issuer === undefined || (issuer.isCa && one.signedBy === issuer.spki))
  })
}

function isValid({ notBeforeMs, notAfterMs }: CertificateRecord, atMs: number): boolean {
  return notBeforeMs <= atMs && atMs < notAfterMs
}
