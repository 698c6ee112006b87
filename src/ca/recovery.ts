import type { KeyObject } from 'node:crypto'
import { readDocuments } from '../kubeconfig/documents.ts'
import { editKubeconfig } from '../kubeconfig/edit.ts'
import { isKubeconfig, readKubeconfig } from '../kubeconfig/kubeconfig.ts'
import { type Certificate, certificateOfBlock, readCertificates } from '../x509/certificate.ts'
import { isPrivateKeyLabel, readPrivateKey } from '../x509/keys.ts'
import { isCertificateLabel, looksLikePem, readPem, writePem } from '../x509/pem.ts'
import { verifySignature } from '../x509/signature.ts'
import { isKeyOf, type SigningPair } from './authority.ts'
import { renewRoot } from './root.ts'
import { reissueLeaf } from './successor.ts'

// A cluster whose CA has expired, from its files alone. The CA keeps name and key and gets a new end, so that pins of join tokens
// stay what they are and nobody needs a second CA; every leaf that has ended is signed anew for its own names and its own key.

export interface ClusterFile {
  readonly node: string
  readonly path: string
  readonly content: Uint8Array
}

/** A CA that has expired, and what takes its place. */
export interface RenewedCa {
  readonly old: Certificate
  readonly renewed: Certificate
  /** False: an earlier run has made it, and it lies on some node already. */
  readonly isMade: boolean
}

export interface RecoveredFile {
  readonly node: string
  readonly path: string
  readonly text: string
  /** What is new in it, as fragments: "CN=kubernetes until 2036-11-18". */
  readonly what: readonly string[]
}

export interface Recovery {
  readonly renewed: readonly RenewedCa[]
  readonly files: readonly RecoveredFile[]
  /** CAs of kubeconfigs that have expired and whose key lies in none of the files. */
  readonly keyless: readonly Certificate[]
  /** Leaves that have ended and whose CA's key lies in none of the files: somebody else's. */
  readonly foreign: readonly { readonly node: string; readonly path: string; readonly subject: string }[]
}

interface Issuer {
  readonly now: Date
  readonly serialNumber: () => string
}

/** Returns what the files of a cluster become. What is valid stays as it is: run again, nothing is left to do. */
export async function recoverFiles(files: readonly ClusterFile[], issuer: Issuer): Promise<Recovery> {
  const read = await Promise.all(files.map(readFile))
  const keys = read.flatMap((file) => file.keys)
  const certificates = read.flatMap((file) => file.certificates)
  const { renewed, pairs, keyless: withoutKey } = authoritiesOf(certificates, keys, issuer)
  // A kubelet's own self-signed CA ends too, and nobody minds: the cluster's is the one in kubeconfigs.
  const inKubeconfigs = new Set(read.flatMap((file) => file.authorities.map((one) => one.publicKey.sha256)))
  const keyless = withoutKey.filter((one) => inKubeconfigs.has(one.publicKey.sha256))
  const replacing = new Replacing(renewed, pairs, issuer)
  const recovered: { readonly isFirst: boolean; readonly file: RecoveredFile }[] = []
  const foreign: { node: string; path: string; subject: string }[] = []
  for (const file of read) {
    const { node, path } = file.file
    const what: string[] = []
    const replaced = (certificate: Certificate): Certificate => {
      const now = replacing.of(certificate)
      if (now === undefined) foreign.push({ node, path, subject: certificate.subject.text })
      else if (now !== certificate) {
        what.push(`${now.subject.text} until ${now.notAfter.toISOString().slice(0, 10)}`)
      }
      return now ?? certificate
    }
    const text = await file.rewrite(replaced)
    if (what.length === 0) continue
    const isFirst = file.certificates.every((one) => one.isCa)
    recovered.push({ isFirst, file: { node, path, text, what: [...new Set(what)] } })
  }
  // What holds the renewed CAs first: stopped behind it, the next run finds them.
  const inOrder = [...recovered.filter((one) => one.isFirst), ...recovered.filter((one) => !one.isFirst)]
  return { renewed, files: inOrder.map((one) => one.file), keyless, foreign }
}

interface ReadFile {
  readonly file: ClusterFile
  readonly certificates: readonly Certificate[]
  readonly keys: readonly KeyObject[]
  /** Of a kubeconfig: its CA data. */
  readonly authorities: readonly Certificate[]
  /** Returns the text with each certificate replaced, in order. */
  rewrite(replaced: (certificate: Certificate) => Certificate): Promise<string>
}

async function readFile(file: ClusterFile): Promise<ReadFile> {
  const text = Buffer.from(file.content).toString('utf8')
  if (looksLikePem(file.content)) return readPemFile(file)
  const kubeconfig = await readKubeconfigFile(file, text).catch(() => undefined)
  return kubeconfig ?? { file, certificates: [], keys: [], authorities: [], rewrite: async () => text }
}

function readPemFile(file: ClusterFile): ReadFile {
  const { blocks } = readPem(file.content)
  const parts = blocks.map((block) => {
    const certificate = isCertificateLabel(block.label) ? parsed(() => certificateOfBlock(block)) : undefined
    const key = isPrivateKeyLabel(block.label) ? parsed(() => readPrivateKey(block).keyObject) : undefined
    return { block, certificate, key }
  })
  return {
    file,
    certificates: parts.flatMap(({ certificate }) => certificate ?? []),
    keys: parts.flatMap(({ key }) => key ?? []),
    authorities: [],
    rewrite: async (replaced) =>
      parts
        .map(({ block, certificate }) =>
          certificate === undefined
            ? writePem(block.label, block.der)
            : writePem('CERTIFICATE', replaced(certificate).der),
        )
        .join(''),
  }
}

async function readKubeconfigFile(file: ClusterFile, text: string): Promise<ReadFile | undefined> {
  const [root] = (await readDocuments(text)).documents
  if (root === undefined || !isKubeconfig(root)) return undefined
  const { clusters, users } = readKubeconfig(root)
  const authorities = clusters.flatMap(({ name, certificateAuthority }) => {
    const data = certificateAuthority?.data
    return data === undefined ? [] : [{ name, certificates: parsed(() => readCertificates(data)) ?? [] }]
  })
  const clients = users.flatMap(({ name, clientCertificate }) => {
    const data = clientCertificate?.data
    return data === undefined ? [] : [{ name, certificates: parsed(() => readCertificates(data)) ?? [] }]
  })
  return {
    file,
    certificates: [...authorities, ...clients].flatMap(({ certificates }) => certificates),
    keys: [],
    authorities: authorities.flatMap(({ certificates }) => certificates),
    rewrite: (replaced) => {
      const pem = (certificates: readonly Certificate[]) => ({
        data: Buffer.from(certificates.map((one) => writePem('CERTIFICATE', replaced(one).der)).join('')),
      })
      return editKubeconfig(text, {
        clusters: authorities.map(({ name, certificates }) => ({
          name,
          certificateAuthority: pem(certificates),
        })),
        users: clients.map(({ name, certificates }) => ({ name, clientCertificate: pem(certificates) })),
      })
    },
  }
}

function parsed<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** CAs by their keys: the one that is valid, or the one that is made now. */
function authoritiesOf(
  certificates: readonly Certificate[],
  keys: readonly KeyObject[],
  { now, serialNumber }: Issuer,
) {
  const cas = certificates.filter((one) => one.isCa && one.isSelfIssued)
  const byKey = Map.groupBy(cas, ({ publicKey }) => publicKey.sha256)
  const renewed: RenewedCa[] = []
  const pairs: SigningPair[] = []
  const keyless: Certificate[] = []
  for (const all of byKey.values()) {
    const latest = all.reduce((last, one) => (one.notAfterMs > last.notAfterMs ? one : last))
    const expired = all.filter((one) => one.notAfterMs <= now.getTime())
    const distinct = [...new Map(expired.map((one) => [one.fingerprintSha256, one])).values()]
    const key = keys.find((one) => isKeyOf(one, latest))
    const isValid = latest.notAfterMs > now.getTime()
    if (key === undefined) {
      if (!isValid) keyless.push(latest)
      continue
    }
    const successor = isValid ? latest : renewRoot(authorityOf(latest, key), now, serialNumber())
    pairs.push({ certificate: successor, key })
    for (const old of distinct) renewed.push({ old, renewed: successor, isMade: !isValid })
  }
  return { renewed, pairs, keyless }
}

function authorityOf(certificate: Certificate, key: KeyObject) {
  return { certificate, key, names: { ca: 'ca.crt', key: 'ca.key' } }
}

/** What takes the place of each certificate; the same everywhere. */
class Replacing {
  private readonly cas: ReadonlyMap<string, Certificate>
  private readonly pairs: readonly SigningPair[]
  private readonly issuer: Issuer
  private readonly made = new Map<string, Certificate | undefined>()

  constructor(renewed: readonly RenewedCa[], pairs: readonly SigningPair[], issuer: Issuer) {
    this.cas = new Map(renewed.map((one) => [one.old.fingerprintSha256, one.renewed]))
    this.pairs = pairs
    this.issuer = issuer
  }

  /** Returns the certificate itself while it is valid; undefined for one that has ended and that nobody here can sign. */
  of(certificate: Certificate): Certificate | undefined {
    const { fingerprintSha256: id } = certificate
    const ca = this.cas.get(id)
    if (ca !== undefined) return ca
    if (certificate.isCa || certificate.notAfterMs > this.issuer.now.getTime()) return certificate
    if (!this.made.has(id)) this.made.set(id, this.reissued(certificate))
    return this.made.get(id)
  }

  private reissued(leaf: Certificate): Certificate | undefined {
    const signer = this.pairs.find(({ certificate }) => verifySignature(leaf, certificate.publicKey).ok)
    const { now, serialNumber } = this.issuer
    return signer && reissueLeaf(leaf, signer, { now, serialNumber: serialNumber() })
  }
}
