import type { KcertError } from '../errors/kcert-error.ts'
import { type Documents, readDocuments } from '../kubeconfig/documents.ts'
import { readKubeconfigDocument } from '../kubeconfig/kubeconfig-document.ts'
import type { Node } from '../kubeconfig/node.ts'
import { type FoundFile, type RecognisedTrees, recogniseTrees } from '../pki/kubeadm-tree.ts'
import { RunKdfBudget } from '../x509/pbe.ts'
import { utf8Of } from '../x509/pem.ts'
import { readServiceAccountToken, serviceAccountTokensIn } from '../x509/service-account-token.ts'
import type { Snapshot } from './checks/check.ts'
import { problemsOf } from './checks/checks.ts'
import { currentContexts } from './checks/kubeconfigs.ts'
import { Collection, type Location } from './collection.ts'
import type { CertificateEntry, Group, Origin, TokenEntry } from './entries.ts'
import {
  type InspectedReport,
  keyReport,
  kubeconfigReport,
  ReportOfCertificate,
  requestReport,
  tokenReport,
} from './entry-reports.ts'
import { Links } from './links.ts'
import { objectNode } from './object-node.ts'
import { nameText } from './problems.ts'
import { collectKubeconfig, isKubeconfig, type KubeconfigContext } from './read-kubeconfig.ts'
import { collectManifest, type ManifestContext } from './read-manifest.ts'
import { type MaterialOptions, readDerMaterial, readPemMaterial } from './read-material.ts'
import { roleOf } from './roles.ts'
import { mayBeRelevant, type Shape, shapeOf } from './sniff.ts'
import type { ReadReferencedFile, Source, UnreadableSource } from './source.ts'
import { timeText } from './spans.ts'
import { statusAt } from './status.ts'
import { StoreLinks } from './store-links.ts'
import { summaryOf } from './summary.ts'
import type { Thresholds } from './thresholds.ts'
import { missingProblem, nothingFound, unreadableProblem } from './unreadable.ts'

export interface InspectionOptions {
  /** The time of the evaluation. */
  readonly now: Date
  /** The creation time of the report; default: `now`. */
  readonly generatedAt?: Date
  readonly thresholds: Thresholds
  readonly readReferencedFile: ReadReferencedFile
  /** Sources that form one configuration, as kubectl merges the files of $KUBECONFIG, in order. */
  readonly mergedKubeconfigs?: readonly string[]
  /** For keystores and encrypted keys. */
  readonly password?: string
}

export interface InspectionOutcome {
  readonly report: InspectedReport
}

const ofFile = { kind: 'file' } as const
const served = { kind: 'served' } as const

// A base64 kubeconfig in a Secret in a file has a depth of three. No legitimate input is deeper.
const deepestContent = 4
const longestTokenFile = 131_072

/**
 * One inspection. Add sources in any order; `finish` returns their entries, relations and problems. It reads only what is passed
 * to it, and files that kubeconfigs refer to, through the given function. The result is a report for any source: bad input never
 * throws.
 */
export class Inspection {
  private readonly options: InspectionOptions
  private readonly collection = new Collection()
  private readonly unreadable: UnreadableSource[] = []
  private readonly unlocking: Pick<MaterialOptions, 'password' | 'kdf'>
  private readonly referenced = new Map<string, Source | UnreadableSource>()

  constructor(options: InspectionOptions) {
    this.options = options
    this.unlocking = { password: options.password, kdf: new RunKdfBudget() }
  }

  /**
   * Reads one source. A source in a walked folder (`root`) without anything of interest is ignored; a given source without it is
   * a problem. Returns no promise for PEM, which most files of a large folder are: 10,000 promises cost as much as a tenth of the
   * parsing.
   */
  add(source: Source): Promise<void> | undefined {
    const { collection } = this
    const { name, file, root, bytes } = source
    const origin: Origin = { source: name, file, root, treePlace: undefined }
    collection.origins.push(origin)
    // An empty source matters only if it was given.
    const before = root === undefined ? collection.size : 0
    const location: Location = { origin, entry: '', owner: isAddress(source) ? served : ofFile }
    const shape = shapeOf(bytes)
    if (shape !== 'pem') {
      return this.read(location, bytes, shape, 0)
        .catch((error) => this.addFailed(name, error))
        .then(() => this.addNothingFound(source, shape, before))
    }
    try {
      this.readPem(location, bytes)
    } catch (error) {
      this.addFailed(name, error)
    }
    this.addNothingFound(source, shape, before)
    return undefined
  }

  /**
   * Reads one object of a cluster, as the API server returns it. An object without anything of interest is ignored.
   * @param name its source in the report: "secret shop/web-tls"
   */
  async addObject(name: string, object: object, kind: string): Promise<void> {
    const { collection } = this
    const origin: Origin = { source: name, isObject: true, treePlace: undefined }
    const before = collection.size
    try {
      await collectManifest(this.manifestContext(0), origin, objectNode({ ...object }, kind))
    } catch (error) {
      this.addFailed(name, error)
    }
    if (collection.size !== before) collection.origins.push(origin)
  }

  /** The certificates found so far, each with its place in its source. They are not linked or checked yet. */
  get found(): readonly Pick<CertificateEntry, 'source' | 'entry' | 'certificate'>[] {
    return this.collection.certificates
  }

  /** The service account tokens found so far. */
  get tokens(): readonly TokenEntry[] {
    return this.collection.tokens
  }

  /** Like `found`, with groups and with the reason if a leaf cannot be read. */
  get groups(): readonly Group[] {
    return this.collection.groups
  }

  /** Records what the cluster does not allow kcert to read. */
  addRefused(name: string, { message, why, next }: KcertError): void {
    this.collection.addProblem({ source: name, entry: '' }, 'SOURCE_UNREADABLE', {
      message: why === undefined ? message : `${message}: ${why}`,
      ...(next === undefined ? { fix: 'ask an administrator for the permission to list them' } : { next }),
    })
  }

  /** Records a source that could not be read. */
  addUnreadable(unreadable: UnreadableSource): void {
    this.unreadable.push(unreadable)
  }

  /** Links, checks and reports everything that was added. Call it once. */
  finish(): InspectionOutcome {
    const { collection, options } = this
    const trees = this.recognise()
    const store = new StoreLinks(collection, this.unreadable)
    store.leaveOutLinkTargets()
    const snapshot = this.snapshot(store)
    const missing = this.missing(trees)
    const problems = [
      ...collection.problems,
      ...this.unreadable.flatMap(
        (one) =>
          unreadableProblem(one, one.file && trees.locationOf(one.file.path), store.isTargetHere(one)) ?? [],
      ),
      ...missing.map(({ source, file }) =>
        missingProblem(source, file, {
          isThere: collection.origins.some((origin) => origin.file?.path === file.path),
          lacksKey: missing.some((one) => one.file.row === file.row && one.file.part === 'key'),
        }),
      ),
      ...problemsOf(snapshot),
    ]
    const isCurrent = currentContexts(snapshot)
    const parts = {
      certificates: collection.certificates.map((entry) => new ReportOfCertificate(entry, snapshot)),
      requests: collection.requests.map(requestReport),
      tokens: collection.tokens.map((token) => tokenReport(token, options.now)),
      keys: collection.keys.map((key) => keyReport(key, snapshot.links)),
      kubeconfigs: collection.kubeconfigs.map((one) => kubeconfigReport(one, isCurrent)),
      withoutCertificate: collection.withoutCertificate,
      missing: missing.map(({ source, file }) => ({ source, role: file.role })),
      problems: problems.sort((a, b) => rank[a.severity] - rank[b.severity]),
    }
    const report: InspectedReport = {
      apiVersion: 'kcert/v1',
      kind: 'InspectionReport',
      generatedAt: timeText(options.generatedAt ?? options.now),
      at: timeText(options.now),
      ...parts,
      summary: summaryOf(parts),
    }
    return { report }
  }

  private addFailed(name: string, error: unknown): void {
    const place = { source: name, entry: '' }
    this.collection.addFailure(place, error, 'CERT_UNREADABLE', 'fetch the file again')
  }

  private addNothingFound({ name, root, bytes }: Source, shape: Shape, before: number): void {
    const { collection } = this
    if (root !== undefined || collection.size !== before) return
    collection.addProblem({ source: name, entry: '' }, 'NOTHING_FOUND', nothingFound(name, bytes, shape))
  }

  private async read(
    location: Location,
    bytes: Uint8Array,
    shape: Shape,
    depth: number,
    wrapped: Pick<MaterialOptions, 'form'> = {},
  ): Promise<Group | undefined> {
    if (depth > deepestContent) return undefined
    const { collection, unlocking } = this
    const file = location.owner.kind === 'file' ? location.origin.file?.path : undefined
    if (shape === 'pem')
      return readPemMaterial(collection, location, bytes, { ...unlocking, file, ...wrapped })
    if (shape === 'der')
      return readDerMaterial(collection, location, bytes, {
        ...unlocking,
        isGuess: isForeign(location),
        ...wrapped,
      })
    if (shape === 'document') await this.readDocuments(location, bytes, depth)
    if (shape === 'other') this.readToken(location, bytes)
    if (shape !== 'base64') return undefined
    const decoded = Buffer.from(Buffer.from(bytes).toString('latin1'), 'base64')
    return this.read(location, decoded, shapeOf(decoded), depth + 1, { form: 'base64' })
  }

  private async readDocuments(location: Location, content: Uint8Array, depth: number): Promise<void> {
    // YAML may be UTF-16 too, if it begins with a byte order mark, and kubectl reads it.
    const bytes = utf8Of(content)
    if (!mayBeRelevant(bytes)) return
    const { collection } = this
    const { origin } = location
    const { documents, defects, first } = await documentsOf(content, bytes)
    const isConfig = first !== undefined
    const usualFix = isConfig
      ? 'correct it: kubectl and every other client reject the whole file because of it'
      : 'correct the YAML or JSON'
    for (const { reason, line, next } of isForeign(location) && !isPlainlyKubeconfig(bytes) ? [] : defects) {
      collection.addProblem({ source: origin.source, entry: location.entry }, 'DOCUMENT_MALFORMED', {
        message: line === undefined ? reason : `line ${line}: ${reason}`,
        ...(next === undefined ? { fix: usualFix } : { next }),
        severity: isConfig ? 'critical' : undefined,
      })
    }
    const isEmbedded = location.owner.kind === 'value'
    let kubeconfigs = 0
    for (const document of documents) {
      if (isKubeconfig(document)) {
        const prefix =
          ++kubeconfigs > 1 ? `${location.entry} document ${kubeconfigs}`.trimStart() : location.entry
        if (document !== first)
          collection.addProblem({ source: origin.source, entry: prefix }, 'KUBECONFIG_FIELD_MALFORMED', {
            message:
              'a kubeconfig that is not the first document: clients read only the first one, even if it is empty',
            fix: 'move it to its own file, or remove the documents before it',
            severity: isConfig ? 'warning' : 'critical',
          })
        const context: KubeconfigContext = {
          collection,
          readReferencedFile: isEmbedded ? undefined : (path) => this.readReferenced(path),
          // Only PEM is usable by a client.
          readMaterial: (at, field, wanted) =>
            shapeOf(field) === 'pem' ? this.readPem(at, field, { wanted }) : undefined,
        }
        collectKubeconfig(context, origin, prefix, document)
      } else if (!isEmbedded) {
        await collectManifest(this.manifestContext(depth), origin, document)
      }
    }
  }

  private manifestContext(depth: number): ManifestContext {
    return {
      collection: this.collection,
      readValue: (at, value) => this.readValue(at, value, depth + 1),
      readPem: (at, value, onRequest) => this.readPem(at, value, onRequest && { onRequest }),
    }
  }

  private readPem(location: Location, bytes: Uint8Array, options: MaterialOptions = {}): Group | undefined {
    return readPemMaterial(this.collection, location, bytes, { ...this.unlocking, ...options })
  }

  /** Reads a value of a Secret or ConfigMap, which may be anything. */
  private async readValue(location: Location, bytes: Uint8Array, depth: number): Promise<Group | undefined> {
    const shape = shapeOf(bytes)
    if (shape === 'der')
      return readDerMaterial(this.collection, location, bytes, { ...this.unlocking, isGuess: true })
    if (shape === 'document' && isPlainlyKubeconfig(bytes)) {
      const { tokens } = this.collection
      const before = tokens.length
      await this.readDocuments(location, bytes, depth)
      // Of a malformed one, no field is read.
      if (tokens.length === before) this.readTokens(location, bytes)
      return undefined
    }
    this.readTokens(location, bytes)
    if (shape === 'pem') return this.readPem(location, bytes)
    if (shape === 'document' && holdsCertificateText(bytes)) await this.readSettings(location, bytes)
    return undefined
  }

  /** Reads a file that is a service account token. */
  private readToken({ origin, entry }: Location, bytes: Uint8Array): void {
    if (bytes.length > longestTokenFile) return
    const claims = readServiceAccountToken(Buffer.from(bytes).toString('latin1'))
    if (claims !== undefined) this.collection.tokens.push({ source: origin.source, entry, claims })
  }

  /** Reads the service account tokens in a value of a Secret or ConfigMap. */
  private readTokens({ origin, entry }: Location, bytes: Uint8Array): void {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (!buffer.includes('eyJ', 0, 'latin1')) return
    const found = serviceAccountTokensIn(buffer.toString('latin1'))
    for (const [index, claims] of found.entries()) {
      const numbered = found.length === 1 ? entry : `${entry} token ${index + 1}`
      this.collection.tokens.push({ source: origin.source, entry: numbered, claims })
    }
  }

  /**
   * Reads certificates among the fields of application settings: `caData` of an Argo CD cluster, `ca` of a monitoring
   * configuration.
   */
  private async readSettings(location: Location, bytes: Uint8Array): Promise<void> {
    const { documents } = await readDocuments(Buffer.from(bytes).toString('utf8'))
    for (const document of documents) {
      for (const { path, text } of textsIn(document)) {
        const value = Buffer.from(text, text.startsWith(encodedCertificate) ? 'base64' : 'utf8')
        if (shapeOf(value) !== 'pem') continue
        const at = { ...location, entry: `${location.entry} ${path}`.trimStart() }
        readPemMaterial(this.collection, at, value, { wanted: 'certificate', isGuess: true })
      }
    }
  }

  private readReferenced(path: string): Source | UnreadableSource {
    const outcome = this.referenced.get(path) ?? this.options.readReferencedFile(path)
    this.referenced.set(path, outcome)
    return outcome
  }

  private recognise(): RecognisedTrees {
    const { origins, kubeconfigs } = this.collection
    const kubeconfigOrigins = new Set(kubeconfigs.map(({ origin }) => origin))
    const files: FoundFile[] = origins.flatMap((origin) => {
      const { file, root } = origin
      return file === undefined
        ? []
        : { path: file.path, root, isNoKubeconfig: !kubeconfigOrigins.has(origin) }
    })
    for (const { file, root } of this.unreadable) {
      if (file !== undefined) files.push({ path: file.path, root, isNoKubeconfig: false })
    }
    const trees = recogniseTrees(files)
    for (const origin of origins) {
      if (origin.file !== undefined) origin.treePlace = trees.locationOf(origin.file.path)
    }
    return trees
  }

  private snapshot(store: StoreLinks): Snapshot {
    const { collection } = this
    const { now, thresholds } = this.options
    const isReplaced = (group: Group) => store.isReplaced(group)
    const roleFor = (entry: CertificateEntry) => {
      entry.role ??= roleOf(entry, isReplaced)
      return entry.role
    }
    const statusFor = (entry: CertificateEntry) => {
      entry.status ??= statusAt(entry.certificate, roleFor(entry), now, thresholds)
      return entry.status
    }
    return {
      now,
      collection,
      links: new Links(collection, now),
      mergedKubeconfigs: this.options.mergedKubeconfigs ?? [],
      roleOf: roleFor,
      statusOf: statusFor,
      isBundle: (group) => isBundle(group, roleFor, now),
    }
  }

  /** Returns the missing files with the names that an operator would use; none below a folder that could not be read. */
  private missing(trees: RecognisedTrees): { source: string; file: RecognisedTrees['missing'][number] }[] {
    if (trees.missing.length === 0) return []
    const closed = this.unreadable.flatMap(({ file }) => (file === undefined ? [] : [`${file.path}/`]))
    const shown = new Map<string, string>()
    for (const { source, file, root } of this.collection.origins) {
      if (file !== undefined && root !== undefined)
        shown.set(root, source.slice(0, source.length - (file.path.length - root.length)))
    }
    return trees.missing
      .filter(({ path }) => !closed.some((folder) => path.startsWith(folder)))
      .map((file) => {
        const [root = '', name = ''] = [...shown].find(([one]) => file.path.startsWith(`${one}/`)) ?? []
        return { source: name + file.path.slice(root.length), file }
      })
  }
}

const rank = { critical: 0, warning: 1, info: 2 } as const

/** True for several trusted CAs, or for a file that contains only CAs, at least one of them valid. */
function isBundle(
  { certificates }: Group,
  roleFor: (entry: CertificateEntry) => { isTrusted: boolean },
  now: Date,
): boolean {
  if (certificates.length < 2) return false
  const areTrusted =
    certificates.every((entry) => roleFor(entry).isTrusted) ||
    certificates.every(({ certificate }) => certificate.isCa)
  return (
    areTrusted &&
    certificates.some(({ certificate }) => certificate.notBefore <= now && now <= certificate.notAfter)
  )
}

/** Served chains have an address as a name and no file. */
function isAddress({ name, file }: Source): boolean {
  return file === undefined && !name.startsWith('/') && /:\d{1,5}$/.test(name)
}

const certificateName = /\.(?:crt|cer|cert|pem|der|key|pub|p12|pfx|p7b|p7c|csr)$/

/** In a walked folder a file may be anything. Its name shows whether it should be a certificate. */
function isForeign({ origin }: Location): boolean {
  return origin.root !== undefined && !certificateName.test(origin.source)
}

// "-----BEGIN CERTIFICATE" and its base64, up to the last complete group of three bytes.
const certificateArmour = '-----BEGIN CERTIFICATE'
const encodedCertificate = Buffer.from(certificateArmour.slice(0, 21)).toString('base64')

function holdsCertificateText(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return [certificateArmour, encodedCertificate].some((text) => buffer.includes(text, 0, 'latin1'))
}

/** Yields every text in a document that contains a certificate, with its path: "tlsClientConfig.caData". */
function* textsIn(node: Node, path = ''): Generator<{ readonly path: string; readonly text: string }> {
  if (node.kind === 'scalar') {
    if (node.text.startsWith(encodedCertificate) || node.text.includes(certificateArmour))
      yield { path, text: node.text }
  } else if (node.kind === 'list') {
    for (const [index, item] of node.items.entries()) yield* textsIn(item, `${path}[${index}]`)
  } else {
    for (const [key, { value }] of node.entries)
      yield* textsIn(value, path === '' ? nameText(key) : `${path}.${nameText(key)}`)
  }
}

/**
 * Returns the documents of a text. If the first is a kubeconfig, it is returned as `first`, as client-go reads it, with only its
 * defects.
 */
async function documentsOf(
  content: Uint8Array,
  bytes: Buffer,
): Promise<Documents & { readonly first?: Node }> {
  const all = await readDocuments(bytes.toString('utf8'))
  const mayBeOne = all.documents.length === 0 ? isPlainlyKubeconfig(bytes) : all.documents.some(isKubeconfig)
  if (!mayBeOne) return all
  const { documents, defects } = await readKubeconfigDocument(content)
  const [first] = documents
  if (first === undefined || !isKubeconfig(first)) return all
  return { documents: [first, ...all.documents.slice(1)], defects, first }
}

function isPlainlyKubeconfig(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return buffer.includes('clusters', 0, 'latin1') && buffer.includes('users', 0, 'latin1')
}
