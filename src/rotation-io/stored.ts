import { statusIn } from '../cluster/failures.ts'
import { type Metadata, resources } from '../cluster/kinds.ts'
import { listEach } from '../cluster/readable.ts'
import { given } from '../errors/given.ts'
import type { CertificateRecord, Digest } from '../rotation/certificate-record.ts'
import { certificatesIn, type Sections, type StoredKey, type StoredSnapshot } from '../rotation/snapshot.ts'
import type { Site } from '../site/site.ts'
import type { Certificate } from '../x509/certificate.ts'
import { readPublicKey } from '../x509/keys.ts'
import { verifySignature } from '../x509/signature.ts'
import type { NodeObservation } from './node-watch.ts'

// Copies of the cluster's CAs in ConfigMaps and Secrets of other owners. Lists are read page by page with the reader of `kcert
// inspect --cluster`. kcert keeps nothing of an object without these CAs. Of the others it keeps their name and which CAs they
// contain.

/** Two lists of the whole cluster are expensive: a phase that polls twice a second uses those of the last minute. */
const freshMs = 60_000

/** Type of the Secrets in the section `published`. */
const serviceAccountToken = 'kubernetes.io/service-account-token'

/** ConfigMaps in other sections, and kcert's own mirrors of journals. */
const known = new Set([
  'kube-public/cluster-info',
  'kube-system/extension-apiserver-authentication',
  'kube-system/kcert-rotation',
  'kube-system/kcert-etcd-rotation',
])

/** Lists objects again when the last list is older than a minute, or was read for other CAs. */
export class StoredWatch {
  private readonly site: Site
  private last:
    | { readonly key: string; readonly atMs: number; readonly found: Promise<Sections['stored']> }
    | undefined

  constructor(site: Site) {
    this.site = site
  }

  /**
   * Returns the objects that contain one of these CAs, or a leaf certificate signed by one. `remembered`: CAs that may be gone
   * from every node.
   */
  stored(
    cas: readonly Certificate[],
    remembered: readonly CertificateRecord[] = [],
  ): Promise<Sections['stored']> {
    const digests = cas.map(({ fingerprintSha256 }) => fingerprintSha256)
    const key = [...digests, ...remembered.map(({ spki }) => spki)].sort().join()
    const atMs = this.site.clock().getTime()
    const { last } = this
    if (last !== undefined && last.key === key && Math.abs(atMs - last.atMs) < freshMs) return last.found
    const found = storedIn(this.site, cas, remembered)
    this.last = { key, atMs, found }
    // Failed requests are repeated.
    found.catch(() => {
      if (this.last?.found === found) this.last = undefined
    })
    return found
  }
}

/** Returns every CA certificate in the files of these nodes, each once. */
export function casIn(
  observations: readonly NodeObservation[],
  { certificates }: Site,
): readonly Certificate[] {
  const digests = new Set(observations.flatMap(({ files }) => files.flatMap(certificatesIn)))
  return [...digests].flatMap((digest) => {
    const certificate = certificates.get(digest)
    return certificate?.isCa ? [certificate] : []
  })
}

async function storedIn(
  { objects, clock }: Site,
  cas: readonly Certificate[],
  remembered: readonly CertificateRecord[],
): Promise<Sections['stored']> {
  const [{ Inspection }, { passedOverTypes }, { defaultThresholds }] = await Promise.all([
    import('../inspection/inspection.ts'),
    import('../inspection/read-manifest.ts'),
    import('../inspection/thresholds.ts'),
  ])
  const options = {
    now: clock(),
    thresholds: defaultThresholds,
    readReferencedFile: (name: string) => ({ name, reason: 'not-found', detail: 'in no object' }) as const,
  }
  const types = [...passedOverTypes, serviceAccountToken]
  const kinds = [
    ['ConfigMap', resources.configMaps, 'metadata.name!=kube-root-ca.crt'],
    ['Secret', resources.secrets, types.map((type) => `type!=${type}`).join(',')],
  ] as const
  const sorted = sorting(cas, remembered)
  // A list that was restarted returns objects twice.
  const found = new Map<string, StoredSnapshot>()
  const unread: ('ConfigMap' | 'Secret')[] = []
  let examined = 0
  for (const [kind, resource, fieldSelector] of kinds) {
    try {
      for await (const object of listEach(objects, resource, { fieldSelector })) {
        const { metadata, type } = object
        const name = `${metadata.namespace}/${metadata.name}`
        if (kind === 'ConfigMap' ? isKnown(metadata) : type === serviceAccountToken) continue
        examined++
        const inspection = new Inspection(options)
        await inspection.addObject(name, object, kind)
        const stored = sorted(`${kind} ${name}`, inspection.found, metadata)
        if (stored !== undefined) found.set(stored.id, stored)
      }
    } catch (error) {
      if (statusIn(error) !== 403) throw error
      unread.push(kind)
    }
  }
  return { examined, objects: [...found.values()], unread }
}

function isKnown({ namespace, name }: Metadata): boolean {
  return name === 'kube-root-ca.crt' || known.has(`${namespace}/${name}`)
}

type Found = readonly { readonly entry: string; readonly certificate: Certificate }[]

/** Returns a function that identifies the certificates of an object that belong to a cluster's CAs. */
function sorting(cas: readonly Certificate[], remembered: readonly CertificateRecord[]) {
  const spkis = new Set([
    ...remembered.map(({ spki }) => spki),
    ...cas.map(({ publicKey }) => publicKey.sha256),
  ])
  const keys = [
    ...cas.map(({ subject, publicKey }) => [subject.text, publicKey] as const),
    ...remembered.flatMap(({ subject, publicKey }) =>
      publicKey === undefined ? [] : [[subject, readPublicKey(Buffer.from(publicKey, 'base64'))] as const],
    ),
  ]
  /** By the issuer name of their leaf certificates. */
  const byName = Map.groupBy(keys, ([name]) => name)
  /** Nearly all objects with findings have the same ones, so only one copy is kept. */
  const shared = new Map<string, readonly StoredKey[]>()
  const once = (places: ReadonlyMap<Digest, string>): readonly StoredKey[] => {
    const list = [...places].map(([spki, at]) => ({ spki, at }))
    const key = JSON.stringify(list)
    const known = shared.get(key) ?? list
    shared.set(key, known)
    return known
  }
  const caKey = ({ publicKey: { sha256 } }: Certificate) => (spkis.has(sha256) ? sha256 : undefined)
  const signerOf = (leaf: Certificate): Digest | undefined =>
    byName.get(leaf.issuer.text)?.find(([, key]) => verifySignature(leaf, key).ok)?.[1].sha256
  return (id: string, found: Found, metadata: Metadata): StoredSnapshot | undefined => {
    const own = new Map<Digest, string>()
    const signers = new Map<Digest, string>()
    for (const { entry, certificate } of found) {
      const spki = certificate.isCa ? caKey(certificate) : signerOf(certificate)
      const its = certificate.isCa ? own : signers
      if (spki !== undefined && !its.has(spki)) its.set(spki, entry)
    }
    if (own.size + signers.size === 0) return undefined
    return given({ id, authorities: once(own), signers: once(signers), owner: ownerOf(metadata) })
  }
}

/** Returns its controller; otherwise the manager in its label; otherwise the writer of its data. */
export function ownerOf({ ownerReferences, labels, managedFields }: Metadata): string | undefined {
  const controller = ownerReferences?.find((one) => one.controller) ?? ownerReferences?.[0]
  if (controller !== undefined) return `${controller.kind} ${controller.name}`
  const label = labels?.['app.kubernetes.io/managed-by']
  return label ?? managedFields?.findLast(({ fieldsV1 }) => fieldsV1 && 'f:data' in fieldsV1)?.manager
}
