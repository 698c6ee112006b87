import { commandLine } from '../errors/command-line.ts'
import { type Advice, KcertError } from '../errors/kcert-error.ts'
import { Certificate, certificateOfBlock } from '../x509/certificate.ts'
import { contentAt } from '../x509/der.ts'
import {
  isPrivateKeyLabel,
  isPublicKeyLabel,
  type PrivateKeyInfo,
  readPrivateKey,
  readPublicKey,
} from '../x509/keys.ts'
import type { RunKdfBudget } from '../x509/pbe.ts'
import {
  contentOfPlainCertificate,
  isCertificateLabel,
  type PemBlock,
  type PemDefect,
  readPem,
  unseenByGo,
} from '../x509/pem.ts'
import { looksLikePkcs7, readPkcs7 } from '../x509/pkcs7.ts'
import { CertificateRequest } from '../x509/request.ts'
import type { Collection, Location } from './collection.ts'
import type { Group, KeyEntry, UnseenForm } from './entries.ts'
import type { ProblemCode } from './problems.ts'

// Certificates, requests and keys in PEM, DER, PKCS#7 and PKCS#12.

// More would not be read, and an error with its stack takes as long as reading a certificate.
const mostFaults = 1000

/** The content of a PEM block, or of a part of DER, or why it cannot be read. */
export type MaterialPart = {
  /** Why Kubernetes does not read it. */
  readonly form?: UnseenForm | undefined
} & (
  | { readonly kind: 'certificate'; readonly certificate: Certificate }
  | { readonly kind: 'request'; readonly request: CertificateRequest }
  | {
      readonly kind: 'key'
      readonly key: Pick<KeyEntry, 'kind' | 'format' | 'encrypted' | 'publicKey'>
      /** True if the given password does not open it. */
      readonly isLocked?: true
    }
  | {
      readonly kind: 'failed'
      readonly of: 'certificate' | 'request' | 'key'
      readonly error: unknown
      readonly where: string
    }
  | {
      readonly kind: 'bad-block'
      readonly of: 'certificate' | 'request' | 'key' | 'block'
      readonly label?: string
      readonly reason: string
      readonly where: string
      readonly isLayout?: boolean
    }
  | { readonly kind: 'locked'; readonly error: KcertError }
)

/** The caller's options for the material. */
export interface MaterialOptions {
  readonly password?: string | undefined
  /** The remaining key derivation budget of this run. */
  readonly kdf?: RunKdfBudget | undefined
  /** True if the bytes may be something else: then unreadable content is ignored. */
  readonly isGuess?: boolean
  /** Path of the file that contains only this, for advice. */
  readonly file?: string | undefined
  /** Set when only one of the two is used: client-go takes no key from a certificate's field, nor a certificate from a key's. */
  readonly wanted?: 'certificate' | 'key'
  /** The encoding around the bytes that Kubernetes does not decode. */
  readonly form?: UnseenForm
  /** Receives requests: a request in a CSR object has more fields than its bytes. */
  readonly onRequest?: (request: CertificateRequest, entry: string) => void
}

/** Reads a PEM text. Returns the group of its entries, or undefined if there is nothing that kcert reads. */
export function readPemMaterial(
  collection: Collection,
  location: Location,
  bytes: Uint8Array,
  options: MaterialOptions,
): Group | undefined {
  const isPlain = options.wanted !== 'key' && options.form === undefined
  const certificate = isPlain ? plainCertificate(bytes) : undefined
  if (certificate === undefined)
    return addThings(collection, location, partsOfPem(bytes, options, mostFaults), options)
  const group = collection.group(location)
  collection.addCertificate(group, location.entry, certificate)
  return group
}

/** The fast path for a text that is one valid certificate; returns undefined for any other. */
function plainCertificate(bytes: Uint8Array): Certificate | undefined {
  try {
    const der = contentOfPlainCertificate(bytes)
    return der && Certificate.parse(der)
  } catch {
    // The full parser finds the same fault, and reports its position.
    return undefined
  }
}

/**
 * Returns the parts of a PEM text in order, including damaged blocks. Reading stops, with a note, at the `most`th damaged one.
 */
export function partsOfPem(
  bytes: Uint8Array,
  options: Unlocking & Pick<MaterialOptions, 'form'> = {},
  most = Number.POSITIVE_INFINITY,
): MaterialPart[] {
  const { blocks, defects } = readPem(bytes)
  const things: MaterialPart[] = []
  let faults = 0
  const parts = defects.length === 0 ? blocks : [...blocks, ...defects].sort((a, b) => a.index - b.index)
  for (const part of parts) {
    if ('reason' in part) things.push(thingOfDefect(part))
    else {
      const unseen = unseenByGo(bytes, part)
      for (const thing of thingsOfBlock(part, options)) {
        const form = options.form ?? thing.form ?? unseen
        things.push(form === undefined ? thing : { ...thing, form })
      }
    }
    const last = things.at(-1)
    if (last === undefined || isReadable(last) || ++faults < most) continue
    const reason = `${most} damaged blocks up to here; what follows is not read`
    things.push({ kind: 'bad-block', of: 'block', reason, where: `line ${part.line}` })
    break
  }
  return things
}

/** Reads DER: one or several certificates, a request, a key, PKCS#7 or PKCS#12. */
export async function readDerMaterial(
  collection: Collection,
  location: Location,
  bytes: Uint8Array,
  options: MaterialOptions,
): Promise<Group | undefined> {
  const things = (await thingsOfDer(bytes, options)).map((thing) => ({
    ...thing,
    form: options.form ?? thing.form ?? 'DER',
  }))
  return addThings(collection, location, things, options)
}

function thingOfDefect({ label, line, reason, isLayout }: PemDefect): MaterialPart {
  return { kind: 'bad-block', of: kindOfLabel(label), label, reason, where: `line ${line}`, isLayout }
}

function kindOfLabel(label: string): ThingKind {
  if (isCertificateLabel(label)) return 'certificate'
  if (isPrivateKeyLabel(label) || isPublicKeyLabel(label)) return 'key'
  return isRequestLabel(label) ? 'request' : 'block'
}

function isRequestLabel(label: string): boolean {
  return label === 'CERTIFICATE REQUEST' || label === 'NEW CERTIFICATE REQUEST'
}

function thingsOfBlock(block: PemBlock, unlocking: Unlocking): MaterialPart[] {
  const { label, line } = block
  const where = `line ${line}`
  if (isCertificateLabel(label)) {
    const thing = certificateThing(where, () => certificateOfBlock(block))
    const reason = passedOverReason(block)
    return reason === undefined ? [thing] : [thing, { kind: 'bad-block', of: 'block', reason, where }]
  }
  if (isPrivateKeyLabel(label)) return [attempt('key', where, () => privateKey(block, unlocking))]
  if (isPublicKeyLabel(label)) return [attempt('key', where, () => publicKey(block))]
  if (isRequestLabel(label)) return [attempt('request', where, () => signingRequest(block.der))]
  return label === 'PKCS7' || label === 'CMS' ? partsOfPkcs7(block.der, where) : []
}

function signingRequest(der: Uint8Array): MaterialPart {
  return { kind: 'request', request: CertificateRequest.parse(der) }
}

/** Returns why client-go's ParseCertsPEM ignores a certificate that other readers accept. */
function passedOverReason({ label, headers }: PemBlock): string | undefined {
  if (label !== 'CERTIFICATE') return `Kubernetes skips blocks of label ${label}: it must be CERTIFICATE`
  if (headers.size > 0) return 'Kubernetes skips certificates with PEM headers'
  return undefined
}

function certificateThing(where: string, read: () => Certificate): MaterialPart {
  return attempt('certificate', where, () => ({ kind: 'certificate', certificate: read() }))
}

function attempt(
  of: 'certificate' | 'request' | 'key',
  where: string,
  read: () => MaterialPart,
): MaterialPart {
  try {
    return read()
  } catch (error) {
    return { kind: 'failed', of, error, where }
  }
}

type Unlocking = Pick<MaterialOptions, 'password' | 'kdf' | 'file'>

function privateKey(input: PemBlock | Uint8Array, { password, kdf, file }: Unlocking): MaterialPart {
  try {
    return privateKeyThing(readPrivateKey(input, password, kdf, file))
  } catch (error) {
    if (!(error instanceof KcertError) || error.code !== 'KCERT_PASSWORD_WRONG') throw error
    // A password for another key must not prevent the report of this key's type.
    return { ...privateKeyThing({ ...readPrivateKey(input), publicKey: undefined }), isLocked: true }
  }
}

function privateKeyThing({
  format,
  encrypted,
  publicKey,
}: Omit<PrivateKeyInfo, 'publicKey'> & Partial<Pick<KeyEntry, 'publicKey'>>): Extract<
  MaterialPart,
  { kind: 'key' }
> {
  return { kind: 'key', key: { kind: 'private', format, encrypted, publicKey } }
}

function publicKey(input: PemBlock | Uint8Array): MaterialPart {
  const format =
    input instanceof Uint8Array || input.label === 'PUBLIC KEY' ? 'SubjectPublicKeyInfo' : 'PKCS#1'
  return { kind: 'key', key: { kind: 'public', format, encrypted: false, publicKey: readPublicKey(input) } }
}

/** Returns the certificates of a PKCS#7 bundle, or its defect. */
export function partsOfPkcs7(bytes: Uint8Array, where: string): MaterialPart[] {
  const form = 'PKCS#7'
  try {
    return readPkcs7(bytes).map((der) => ({ ...certificateThing(where, () => Certificate.parse(der)), form }))
  } catch (error) {
    return [{ kind: 'failed', of: 'certificate', error, where, form }]
  }
}

const [tagInteger, tagBitString, tagOid, tagSequence] = [0x02, 0x03, 0x06, 0x30]

/** The first two tags in the outer SEQUENCE determine the type. */
async function thingsOfDer(bytes: Uint8Array, unlocking: Unlocking): Promise<MaterialPart[]> {
  const where = 'offset 0'
  const inner = contentAt(bytes, 0)
  if (bytes[inner] === tagInteger) {
    const { looksLikePkcs12 } = await import('../x509/pkcs12.ts')
    if (looksLikePkcs12(bytes)) return thingsOfPkcs12(bytes, unlocking)
    return [attempt('key', where, () => privateKey(bytes, unlocking))]
  }
  if (bytes[inner] === tagOid || looksLikePkcs7(bytes)) return partsOfPkcs7(bytes, where)
  const first = contentAt(bytes, inner)
  if (bytes[first] === tagOid) {
    const isPublic = bytes[endOffset(bytes, inner)] === tagBitString
    const read = () => (isPublic ? publicKey(bytes) : privateKey(bytes, unlocking))
    return [attempt('key', where, read)]
  }
  if (isRequest(bytes, first)) return [attempt('request', where, () => signingRequest(bytes))]
  return certificatesOfDer(bytes)
}

/**
 * Version 0 followed by a Name. In a certificate, the serial number is followed by an AlgorithmIdentifier, which begins with an
 * OID.
 */
function isRequest(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== tagInteger || bytes[at + 1] !== 1 || bytes[at + 2] !== 0) return false
  return bytes[at + 3] === tagSequence && bytes[contentAt(bytes, at + 3)] !== tagOid
}

/** Returns the consecutive certificates of a DER text. The last one may be damaged. */
export function certificatesOfDer(bytes: Uint8Array): MaterialPart[] {
  const things: MaterialPart[] = []
  for (let at = 0; at < bytes.length; ) {
    try {
      const { certificate, size } = Certificate.parseFirst(at === 0 ? bytes : bytes.subarray(at))
      things.push({ kind: 'certificate', certificate, form: 'DER' })
      at += size
    } catch (error) {
      // Offsets in the error are relative to the start of this certificate.
      things.push({ kind: 'failed', of: 'certificate', error, where: `offset ${at}`, form: 'DER' })
      break
    }
  }
  return things
}

async function thingsOfPkcs12(bytes: Uint8Array, { password, kdf }: Unlocking): Promise<MaterialPart[]> {
  const { readPkcs12 } = await import('../x509/pkcs12.ts')
  const [where, form] = ['keystore', 'PKCS#12'] as const
  try {
    const { certificates, keys } = await readPkcs12(bytes, password, kdf)
    return [
      ...certificates.map(({ der }) => certificateThing(where, () => Certificate.parse(der))),
      // The keystore is open, so its password is no longer needed.
      ...keys.map(({ der, encrypted }) =>
        attempt('key', where, () => privateKeyThing({ ...readPrivateKey(der), encrypted })),
      ),
    ].map((thing) => ({ ...thing, form }))
  } catch (error) {
    const isLocked =
      error instanceof KcertError &&
      (error.code === 'KCERT_KEY_ENCRYPTED' || error.code === 'KCERT_PASSWORD_WRONG')
    return [
      isLocked ? { kind: 'locked', error, form } : { kind: 'failed', of: 'certificate', error, where, form },
    ]
  }
}

/** Returns the offset of the element after the one at `at`. */
function endOffset(bytes: Uint8Array, at: number): number {
  const start = contentAt(bytes, at)
  let length = bytes[at + 1] ?? 0
  if (length > 0x80) {
    length = 0
    for (let index = at + 2; index < start; index++) length = length * 256 + (bytes[index] ?? 0)
  }
  return start + length
}

const failureCodes: Readonly<Record<'certificate' | 'request' | 'key', ProblemCode>> = {
  certificate: 'CERT_UNREADABLE',
  request: 'REQUEST_UNREADABLE',
  key: 'KEY_UNREADABLE',
}

function addThings(
  collection: Collection,
  location: Location,
  all: readonly MaterialPart[],
  options: MaterialOptions,
): Group | undefined {
  const unwanted = options.wanted && (options.wanted === 'key' ? 'certificate' : 'key')
  const things = all.filter((thing) => kindOf(thing) !== unwanted)
  if (things.length === 0) return undefined
  if (options.isGuess && !things.some((thing) => isReadable(thing) || thing.kind === 'locked'))
    return undefined
  const group = collection.group(location)
  const label = labeller(location.entry, things)
  for (const thing of things) {
    const entry = label(thing)
    const place = { source: group.source, entry }
    switch (thing.kind) {
      case 'certificate': {
        const added = collection.addCertificate(group, entry, thing.certificate)
        if (thing.form !== undefined) collection.unseen.set(added, thing.form)
        break
      }
      case 'key': {
        const added = collection.addKey(group, entry, thing.key)
        if (thing.isLocked)
          collection.addProblem(place, 'KEY_LOCKED', {
            message: 'the password in --password-file does not decrypt the private key',
            fix: ownPassword,
          })
        const form = thing.form ?? (thing.key.encrypted ? 'encrypted' : undefined)
        if (form !== undefined) collection.unseen.set(added, form)
        break
      }
      case 'request':
        if (options.onRequest) options.onRequest(thing.request, entry)
        else collection.requests.push({ ...place, request: thing.request })
        break
      case 'locked': {
        const { message, next, fix = next ?? ownPassword } = thing.error
        // In a Secret the password is stored next to it, for the program that uses it.
        const severity = location.owner.kind === 'value' ? 'info' : undefined
        collection.addProblem(place, 'KEYSTORE_LOCKED', { message, fix, severity })
        break
      }
      case 'bad-block':
        collection.addProblem(place, 'PEM_BLOCK_BAD', {
          message: `${thing.where}: ${thing.label ? `${thing.label}: ` : ''}${thing.reason}`,
          ...adviceForBadBlock(location.owner.kind === 'file' ? group.source : undefined, thing.isLayout),
        })
        break
      default: {
        const hasOthers = things.length > 1
        const fix = fixForBroken[hasOthers ? 'among' : 'alone'][thing.of]
        collection.addFailure(place, thing.error, failureCodes[thing.of], fix, hasOthers ? thing.where : '')
      }
    }
    if (thing.kind !== 'certificate' && isOfCertificate(thing) && group.certificates.length === 0)
      group.leafFault ??= collection.problems.at(-1)
  }
  return group
}

// Typical damage by editors, shells and JSON: joined or indented blocks, a block on one line, "\n" as text.
const unglue = (file: string): string =>
  commandLine`sed -E 's/^ +//; s/\\\\n/\\n/g; s/-----(BEGIN|END) [A-Z0-9 ]+-----/\\n&\\n/g' ${file} | grep . > ${`${file}.new`}`

function adviceForBadBlock(file: string | undefined, isLayout = false): Advice {
  return isLayout
    ? {
        fix: 'put BEGIN and END on their own lines: Kubernetes silently ignores such a block',
        next: file && unglue(file),
      }
    : { fix: 'correct or remove the block: Kubernetes silently ignores it' }
}

const ownPassword = 'give the file with its password with --password-file'

const fixForBroken = {
  alone: {
    certificate: 'get the file again from its issuer',
    request: 'create a new request',
    key: 'get the file again from its issuer',
  },
  among: {
    // client-go rejects a text at the first certificate that it cannot parse, including all others.
    certificate: 'remove this block: Kubernetes components reject the whole file because of it',
    request: 'create a new request',
    key: 'remove this block',
  },
} as const

function isReadable({ kind }: MaterialPart): boolean {
  return kind === 'certificate' || kind === 'request' || kind === 'key'
}

/** True for a certificate, and for an unreadable block in place of one. */
export function isOfCertificate(
  thing: MaterialPart,
): thing is Exclude<MaterialPart, { readonly kind: 'request' | 'key' | 'locked' }> {
  return kindOf(thing) === 'certificate'
}

type ThingKind = 'certificate' | 'request' | 'key' | 'block'

function kindOf(thing: MaterialPart): ThingKind {
  if (thing.kind === 'failed' || thing.kind === 'bad-block') return thing.of
  return thing.kind === 'locked' ? 'block' : thing.kind
}

/**
 * Returns location texts: "certificate 2" in a file, "data[tls.crt] #2" inside an object. With only one entry, no number is
 * added.
 */
export function labeller(prefix: string, things: readonly MaterialPart[]): (thing: MaterialPart) => string {
  if (things.length === 1) return () => prefix
  const seen: Record<ThingKind, number> = { certificate: 0, request: 0, key: 0, block: 0 }
  const totals = { ...seen }
  for (const thing of things) totals[kindOf(thing)]++
  const primary: ThingKind = totals.certificate > 0 ? 'certificate' : totals.request > 0 ? 'request' : 'key'
  return (thing) => {
    const kind = kindOf(thing)
    if (kind === 'block') return prefix
    const number = ++seen[kind]
    const word = kind === 'key' ? keyWord(thing) : kind
    if (kind === primary) {
      if (totals[kind] === 1) return prefix
      return prefix === '' ? `${word} ${number}` : `${prefix} #${number}`
    }
    const counted = totals[kind] === 1 ? word : `${word} ${number}`
    return prefix === '' ? counted : `${prefix} ${counted}`
  }
}

function keyWord(thing: MaterialPart): string {
  return thing.kind === 'key' && thing.key.kind === 'public' ? 'public key' : 'private key'
}
