import { commandLine } from '../errors/command-line.ts'
import { unseenForms } from '../inspection/checks/plain-pem.ts'
import type { UnseenForm } from '../inspection/entries.ts'
import { timeText } from '../inspection/spans.ts'
import type { Certificate } from '../x509/certificate.ts'
import { CertificatePool } from '../x509/certificate-pool.ts'
import { type ChainQuestion, type ChainVerdict, type Purpose, verifyChain } from '../x509/chain.ts'
import { isTooLongForTls, isUsedByGo } from '../x509/go-keys.ts'
import { goError } from '../x509/go-words.ts'
import { nameFields, userUidFault } from '../x509/name.ts'
import { askOtherVerifiers, type OtherVerdict } from '../x509/other-verifiers.ts'
import type { Chain, Refusal } from '../x509/refusal.ts'
import type { CertificateInput, LocatedCertificate } from './input.ts'
import { refusalWords } from './refusal-words.ts'
import type { VerificationReport, VerificationWarning, VerifiedCertificate } from './report.ts'

export interface VerificationInputs {
  /** The first certificate is the leaf; the others are intermediates, as a server sends them. */
  readonly leaf: CertificateInput
  readonly roots: readonly CertificateInput[]
  readonly intermediates: readonly CertificateInput[]
}

export interface VerificationOptions {
  readonly now: Date
  readonly at: Date
  readonly purpose: Purpose
  readonly name?: string | undefined
  /** Returns the command that verifies the same inputs for another purpose. */
  readonly withPurpose?: ((purpose: Purpose) => string) | undefined
}

/**
 * Returns the report on a chain, verified as Kubernetes components do: the result, the reason, and which other verifiers differ.
 */
export function verify(inputs: VerificationInputs, options: VerificationOptions): VerificationReport {
  const { now, at, purpose, name: host } = options
  const places = new Places(inputs)
  const [first] = inputs.leaf.certificates
  if (first === undefined) throw new TypeError('an input of a leaf has a certificate')
  const asked = { leaf: first.certificate, at, purpose, name: host }
  const question: ChainQuestion = { ...asked, ...poolsOf(inputs, isSeenByGo) }
  const verdict = withUser(
    withTlsKeys(verifyChain(question), question, sentAlong(inputs.leaf, isSeenByGo)),
    question,
  )
  const hidden = verdict.trusted ? undefined : hiddenIn(inputs, asked)
  const others = othersOn({ ...asked, ...poolsOf(inputs, isSeenByOpenssl) }, verdict, hidden)
  const chains = verdict.trusted ? verdict.chains : []
  const until = verdict.trusted ? endOf(chains) : undefined
  const user = verdict.trusted && purpose === 'client' ? userOf(question.leaf) : undefined
  return {
    apiVersion: 'kcert/v1',
    kind: 'VerificationReport',
    generatedAt: timeText(now),
    at: timeText(at),
    purpose,
    ...(host !== undefined && { name: host }),
    trusted: verdict.trusted,
    leaf: places.report(question.leaf),
    chains: chains.map((chain) => places.reportChain(chain)),
    ...(until && { trustedUntil: timeText(until) }),
    ...(user && { user }),
    ...(verdict.trusted ? {} : refusalReport(verdict, question, places, hidden, options.withPurpose)),
    alsoRefusedBy: others.filter(({ accepts }) => !accepts).map(({ verifier }) => verifier),
    acceptedBy: others.filter(({ accepts }) => accepts).map(({ verifier }) => verifier),
    differences: others.flatMap(({ verifier, accepts, difference, error }) =>
      difference === undefined
        ? []
        : // Node goes on after an error and tells the last one, which is another; the others stop at the first.
          [
            {
              verifier,
              accepts,
              reason: difference,
              ...(verifier !== 'node' && error && { error: error.text }),
            },
          ],
    ),
    warnings: [
      ...unseenWarnings(inputs),
      ...unreadableWarnings(inputs, purpose),
      ...(user ? userWarnings(question.leaf, places) : []),
    ],
  }
}

type IsSeen = (one: LocatedCertificate) => boolean

/** Go adds none of the certificates of a roots file that it cannot read to its pool, whatever other programs find in it. */
const isSeenByGo: IsSeen = ({ form }) => form === undefined
/** OpenSSL, and therefore Node and Python, ignores a byte order mark and also accepts its older PEM labels. */
const isSeenByOpenssl: IsSeen = ({ form }) =>
  form === undefined || form === 'label' || form === 'byte order mark'

/**
 * Returns the pools that a verifier finds. The leaf itself counts in any form; the other certificates of its file are sent with
 * it.
 */
function poolsOf(
  { leaf, roots, intermediates }: VerificationInputs,
  isSeen: IsSeen,
): Pick<ChainQuestion, 'roots' | 'intermediates'> {
  const pool = (located: readonly LocatedCertificate[]) =>
    new CertificatePool(located.map(({ certificate }) => certificate))
  const given = intermediates.flatMap(({ certificates }) => certificates).filter(isSeen)
  return {
    roots: pool(roots.flatMap(({ certificates }) => certificates).filter(isSeen)),
    intermediates: pool([...sentAlong(leaf, isSeen), ...given]),
  }
}

/** The certificates after the leaf in its file. */
function sentAlong(
  { certificates: [first, ...others] }: CertificateInput,
  isSeen: IsSeen,
): LocatedCertificate[] {
  return first?.form === undefined ? others.filter(isSeen) : others
}

/** Returns a certificate that Go does not find, when the chain would be valid with it. */
function hiddenIn(
  inputs: VerificationInputs,
  asked: Omit<ChainQuestion, 'roots' | 'intermediates'>,
): LocatedCertificate | undefined {
  const hidden = [...inputs.roots, inputs.leaf, ...inputs.intermediates]
    .flatMap(({ certificates }) => certificates)
    .filter((one) => !isSeenByGo(one) && one.certificate !== asked.leaf)
  if (hidden.length === 0) return undefined
  const whole = verifyChain({ ...asked, ...poolsOf(inputs, () => true) })
  if (!whole.trusted) return undefined
  return hidden.find(({ certificate }) => whole.chains.some((chain) => chain.includes(certificate)))
}

function othersOn(
  question: ChainQuestion,
  verdict: ChainVerdict,
  hidden: LocatedCertificate | undefined,
): OtherVerdict[] {
  const others = askOtherVerifiers(question, verdict)
  if (hidden === undefined) return others
  return others.map((one) => (one.accepts ? { ...one, difference: 'it reads this form of PEM, too' } : one))
}

function refusalReport(
  { refusal }: Extract<ChainVerdict, { trusted: false }>,
  question: ChainQuestion,
  places: Places,
  hidden: LocatedCertificate | undefined,
  withPurpose: VerificationOptions['withPurpose'],
): Pick<
  VerificationReport,
  'code' | 'reason' | 'advice' | 'certificate' | 'issuer' | 'path' | 'fix' | 'next' | 'goError'
> {
  const { code, certificate, other, chain } = refusal
  const { reason, advice, next } = refusalWords(refusal, {
    question,
    locationOf: (one) => places.text(one),
    sourceOf: (one) => places.of(one).source,
    fileOf: (one) => places.fileOf(one),
    withPurpose,
  })
  // When the issuer is at fault, the other certificate is the one below it, which the path already shows.
  const isIssuer = other !== undefined && !chain.includes(other)
  return {
    code,
    reason,
    certificate: places.report(certificate),
    ...(isIssuer && { issuer: places.report(other) }),
    path: places.reportChain(chain),
    ...(hidden?.form === undefined ? { advice, next } : wordsOfHidden(reason, hidden.source, hidden.form)),
    goError: goError(refusal, question),
  }
}

function wordsOfHidden(
  reason: string,
  source: string,
  form: UnseenForm,
): { reason: string; fix: string; next: string } {
  const { what, fix, next } = unseenForms[form]
  return {
    reason: `${reason}: ${source} ${what}, so Go finds no certificate there`,
    fix,
    next: next?.(source, false) ?? fix,
  }
}

/** Returns when trust ends: a chain expires with the first of its certificates, and trust ends with the last chain. */
function endOf(chains: readonly Chain[]): Date {
  const ends = chains.map((chain) => Math.min(...chain.map(({ notAfter }) => notAfter.getTime())))
  return new Date(Math.max(...ends))
}

/**
 * Returns the verdict of TLS on the keys in a valid chain; crypto/x509 does not check whether TLS can use them. crypto/tls
 * refuses a long RSA key in any sent certificate, even one that no chain needs (verifyServerCertificate, processCertsFromClient).
 */
function withTlsKeys(
  verdict: ChainVerdict,
  { leaf, purpose }: ChainQuestion,
  beside: readonly LocatedCertificate[],
): ChainVerdict {
  if (!verdict.trusted || purpose === 'any') return verdict
  const [chain = []] = verdict.chains
  const ofLeaf = { code: 'LEAF_KEY_UNSUPPORTED', certificate: leaf, chain } as const
  if (!isUsedByGo(leaf.publicKey))
    return { trusted: false, refusal: { ...ofLeaf, go: { kind: 'leaf-key', certificate: leaf } } }
  const isTooLong = ({ publicKey }: Certificate): boolean => isTooLongForTls(publicKey)
  const sent = [leaf, ...beside.map(({ certificate }) => certificate)].find(isTooLong)
  // Every certificate of a chain except the root is also sent.
  const inChains = verdict.chains.map((one) => one.slice(0, -1).find(isTooLong))
  const certificate = sent ?? (inChains.includes(undefined) ? undefined : inChains[0])
  if (certificate === undefined) return verdict
  const go = { kind: 'rsa-too-long', purpose } as const
  const refusal: Refusal =
    certificate === leaf ? { ...ofLeaf, go } : { code: 'ISSUER_KEY_UNSUPPORTED', certificate, chain, go }
  return { trusted: false, refusal }
}

/** Returns the verdict of an API server on a client whose chain is valid: it refuses two user UIDs, and an empty one. */
function withUser(verdict: ChainVerdict, { leaf, purpose }: ChainQuestion): ChainVerdict {
  const { commonName, userUids: uids = [] } = leaf.subject
  // Without a common name there is no user, with or without a UID.
  if (!verdict.trusted || purpose !== 'client' || !commonName) return verdict
  if (userUidFault(leaf.subject) === undefined) return verdict
  const [chain = []] = verdict.chains
  const go = { kind: 'user', uids } as const
  return { trusted: false, refusal: { code: 'USER_UID_INVALID', certificate: leaf, chain, go } }
}

/**
 * Returns the user as the API server's x509 authenticator reads it: the last common name, all organizations, and the UID since
 * 1.33.
 */
function userOf({ subject }: Certificate): { name: string; groups: string[]; uid?: string } {
  const [uid] = subject.userUids ?? []
  return { name: subject.commonName ?? '', groups: [...subject.organization], ...(uid && { uid }) }
}

function userWarnings(leaf: Certificate, places: Places): VerificationWarning[] {
  if (leaf.subject.commonName) return []
  return [
    {
      ...places.of(leaf),
      code: 'USER_NAME_MISSING',
      message:
        'the chain is valid, but the leaf has no common name, so API servers treat its client as system:anonymous or respond with 401; reissue it with the user as common name and the groups as organizations',
      next: commandLine`kcert inspect ${places.of(leaf).source}`,
    },
  ]
}

/**
 * Returns warnings for certificates that this verdict needs and that Go, which finds certificates with pem.Decode, does not find.
 */
function unseenWarnings({ roots, intermediates, leaf }: VerificationInputs): VerificationWarning[] {
  return [...roots, leaf, ...intermediates].flatMap(({ certificates }, index) => {
    const first = certificates.find(({ form }) => form !== undefined)
    if (first?.form === undefined) return []
    const { source, entry, form } = first
    const { what, fix, next } = unseenForms[form]
    const areAll = certificates.every((one) => one.form !== undefined)
    const isRoots = index < roots.length
    const consequence = areAll
      ? `Go finds no certificate in this${isRoots ? ', so clients with these roots trust no server' : ''}`
      : 'Go ignores this certificate'
    const message = `${what}: ${consequence}`
    return [
      {
        source,
        entry: areAll ? '' : entry,
        code: 'NOT_PLAIN_PEM',
        message,
        fix,
        next: next?.(source, false) ?? fix,
      },
    ]
  })
}

function unreadableWarnings(
  { roots, intermediates, leaf }: VerificationInputs,
  purpose: Purpose,
): VerificationWarning[] {
  return [...roots, leaf, ...intermediates].flatMap(({ unreadable }, index) =>
    unreadable.map(({ source, entry, reason, isUnseen }) => {
      // client-go's ParseCertsPEM, with which servers read their client CAs, fails at the first certificate that it cannot parse.
      // A CertPool, with which clients read their roots, skips it.
      const consequence =
        purpose === 'client' && !isUnseen
          ? ', and API servers reject the whole file because of it'
          : ', and Go ignores it without an error'
      return {
        source,
        entry,
        code: 'CERT_UNREADABLE',
        message: `${reason}; it was left out, so remove the block or fetch the certificate again${index < roots.length ? consequence : ''}`,
        next: commandLine`kcert inspect ${source}`,
      }
    }),
  )
}

/**
 * The location of each certificate. One may have several: for a root, the one among the roots is first; for others, where it was
 * sent.
 */
class Places {
  private readonly byFingerprint: ReadonlyMap<string, LocatedCertificate>
  private readonly roots: ReadonlyMap<string, LocatedCertificate>
  private readonly notFiles: ReadonlySet<string>

  constructor({ leaf, roots, intermediates }: VerificationInputs) {
    const all = [leaf, ...intermediates, ...roots]
    this.byFingerprint = firstByFingerprint(all)
    this.roots = firstByFingerprint(roots)
    const notFiles = all.filter(({ isNoFile }) => isNoFile).flatMap(({ certificates }) => certificates)
    this.notFiles = new Set(notFiles.map(({ source }) => source))
  }

  of({ fingerprintSha256 }: Certificate, isRoot?: boolean): { source: string; entry: string } {
    const found = isRoot ? this.roots.get(fingerprintSha256) : undefined
    const { source = '', entry = '' } = found ?? this.byFingerprint.get(fingerprintSha256) ?? {}
    return { source, entry }
  }

  fileOf(certificate: Certificate): string | undefined {
    const { source } = this.of(certificate)
    return this.notFiles.has(source) ? undefined : source
  }

  text(certificate: Certificate): string {
    const { source, entry } = this.of(certificate)
    return entry === '' ? source : `${source}: ${entry}`
  }

  report(certificate: Certificate, isRoot?: boolean): VerifiedCertificate {
    return {
      ...this.of(certificate, isRoot),
      subject: nameFields(certificate.subject),
      issuer: nameFields(certificate.issuer),
      serialNumber: certificate.serialNumber,
      notBefore: timeText(certificate.notBefore),
      notAfter: timeText(certificate.notAfter),
      isCa: certificate.isCa,
      fingerprintSha256: certificate.fingerprintSha256,
    }
  }

  reportChain(chain: Chain): VerifiedCertificate[] {
    return chain.map((certificate, i) => this.report(certificate, i === chain.length - 1))
  }
}

function firstByFingerprint(inputs: readonly CertificateInput[]): ReadonlyMap<string, LocatedCertificate> {
  const located = inputs.flatMap(({ certificates }) => certificates).toReversed()
  return new Map(located.map((one) => [one.certificate.fingerprintSha256, one]))
}
