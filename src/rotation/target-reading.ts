import { type CertificateRecord, reissuedRecord } from './certificate-record.ts'
import { caFileOf, folderOn, keyPathFor, materialPaths } from './material.ts'
import { apiServers, certificatesIn, fileAt, type Observed, type SectionName } from './snapshot.ts'
import { type CaChange, type CaName, caNames, plannedDigest, type Target } from './target.ts'

// The target combines what the operator wants with the state of the cluster: which CA is the old one, whether the new one exists,
// and whether the old one is already being dropped.

/** The operator's choices. The journal keeps them, so that a second run uses the same ones. */
export interface Settings extends Omit<Target, 'changes' | 'key' | 'isDropping' | 'etcdClients'> {
  readonly cas: readonly CaName[]
  readonly withBridge: boolean
  /** Absent: as the rotation began; `known` for a new one. */
  readonly etcdClients?: Target['etcdClients'] | undefined
  /** CAs that the operator supplies; phase 1 creates the others. */
  readonly given?: Readonly<Partial<Record<CaName, CertificateRecord>>>
}

export const defaultSettings: Settings = {
  cas: caNames,
  withBridge: true,
  proof: 'counters',
  reason: 'routine',
  newKeys: false,
  atOnce: 4,
  waivers: new Set(),
  trustsReloadingClients: true,
  mostClockSkewMs: 30_000,
  soakMs: 20_000,
  acceptsOutage: false,
  acceptedVersions: new Set(),
}

/** The sections that every run observes first. */
export const targetSections = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'handshakes',
  'intents',
] as const satisfies readonly SectionName[]

export type TargetSections = (typeof targetSections)[number]

/** The CAs and the service account key in a journal. */
export interface Remembered extends Pick<Target, 'key'> {
  readonly changes: readonly (Pick<CaChange, 'oldCa' | 'newCa'> & { readonly ca: string })[]
}

/** Returns the target of a run. */
export function targetOf(
  observed: Observed<TargetSections>,
  settings: Settings,
  { changes: remembered }: Remembered = { changes: [] },
): Target {
  const { cas, withBridge, given: _, ...rest } = settings
  const changes = cas.flatMap((ca) => changeFrom(observed, ca, settings, remembered) ?? [])
  // An attacker with the old CA's key may have other keys too, so after a leak no key is kept.
  // Another key type needs new keys. etcd reads certificate and key from two files, which cannot be replaced at once.
  const otherType = settings.keyType !== undefined && !cas.includes('etcd')
  const newKeys = settings.newKeys || settings.reason === 'compromise' || otherType
  // The CAs of the cluster and of etcd may be in one folder. Only the rotation of etcd's CA has such clients.
  const isUnknown = cas.includes('etcd') && beganWithUnknownClients(observed)
  const etcdClients = settings.etcdClients ?? (isUnknown ? 'unknown' : 'known')
  return { ...rest, newKeys, changes, etcdClients, isDropping: isDropping(observed, changes) }
}

/**
 * Returns true if phase 1 has distributed both CAs of etcd in one file, as it does for unknown clients. The journal, which has this
 * choice too, may be lost.
 */
export function beganWithUnknownClients(observed: Observed<'components' | 'files'>): boolean {
  return apiServers(observed).some(({ node }) => {
    const { bundle } = materialPaths(folderOn(observed, node, 'etcd'), 'etcd')
    return fileAt(observed, node, bundle) !== undefined
  })
}

function changeFrom(
  observed: Observed<TargetSections>,
  ca: CaName,
  { withBridge, reason, given }: Settings,
  remembered: Remembered['changes'],
): CaChange | undefined {
  const laidOut = (what: keyof ReturnType<typeof materialPaths>) =>
    apiServers(observed).flatMap(({ node }) => {
      return fileAt(observed, node, materialPaths(folderOn(observed, node, ca), ca)[what]) ?? []
    })
  const first = (what: 'oldCertificate' | 'newCertificate' | 'bridge') =>
    laidOut(what).flatMap((file) => observed.certificates.get(certificatesIn(file)[0] ?? '') ?? [])[0]
  const known = remembered.find((one) => one.ca === ca)
  // A run that was killed between the two writes left a key without its certificate. This key is used for the new certificate.
  const madeKey = laidOut('newKey').flatMap(({ contains }) =>
    contains.kind === 'key' ? contains.spki : [],
  )[0]
  const oldCa = first('oldCertificate') ?? known?.oldCa ?? presentCa(observed, ca)
  if (oldCa === undefined) return undefined
  // A supplied CA is a planned one too, because phase 1 has not distributed it yet.
  const planned = given?.[ca] ?? plannedCa(observed, oldCa, ca, madeKey)
  const newCa = first('newCertificate') ?? known?.newCa ?? { ...planned, digest: plannedDigest(ca, 'new') }
  // Members of etcd restart one after another, so each must accept the others with either CA in the meantime.
  if (ca !== 'etcd' && (ca === 'front-proxy' || !withBridge || reason === 'compromise'))
    return { ca, oldCa, newCa }
  return { ca, oldCa, newCa, bridge: first('bridge') ?? plannedBridge(ca, oldCa, newCa) }
}

/**
 * Returns the CA whose key is next to the file with which API servers authenticate clients; otherwise the first CA in the file.
 */
function presentCa(observed: Observed<TargetSections>, ca: CaName): CertificateRecord | undefined {
  for (const api of apiServers(observed)) {
    const path = caFileOf(api, ca)
    if (path === undefined) continue
    const records = certificatesIn(fileAt(observed, api.node, path)).flatMap(
      (digest) => observed.certificates.get(digest) ?? [],
    )
    const key = fileAt(observed, api.node, keyPathFor(path))?.contains
    const signer = key?.kind === 'key' ? records.find(({ spki }) => spki === key.spki) : undefined
    const found = signer ?? records[0]
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Returns the CA that phase 1 will create: it has another name, so that tools that compare names can distinguish the two, and key
 * identifiers.
 */
function plannedCa(
  observed: Observed<TargetSections>,
  oldCa: CertificateRecord,
  ca: CaName,
  key = `planned:key of ${ca}/new`,
): Omit<CertificateRecord, 'digest'> {
  return {
    subject: nextName(oldCa.subject, ca),
    issuer: nextName(oldCa.subject, ca),
    subjectKeyId: key,
    authorityKeyId: key,
    spki: key,
    signedBy: key,
    isCa: true,
    notBeforeMs: observed.atMs - 300_000,
    notAfterMs: observed.atMs + 3_650 * 86_400_000,
  }
}

function plannedBridge(ca: CaName, oldCa: CertificateRecord, newCa: CertificateRecord): CertificateRecord {
  const bridge = reissuedRecord(newCa, oldCa, plannedDigest(ca, 'bridge'))
  return { ...bridge, notBeforeMs: newCa.notBeforeMs }
}

/** CN=kubernetes → CN=kubernetes-ca-2 → CN=kubernetes-ca-3 */
export function nextName(subject: string, ca: CaName): string {
  const counted = /^(.*-ca)-(\d+)$/.exec(subject)
  if (counted !== null) return `${counted[1]}-${Number(counted[2]) + 1}`
  return ca === 'cluster' && !subject.endsWith('-ca') ? `${subject}-ca-2` : `${subject}-2`
}

/** Returns true once a verifier trusts only the new CA, or phase 12 recorded that it will make this change. */
function isDropping(observed: Observed<TargetSections>, changes: readonly CaChange[]): boolean {
  if (observed.intents.some(({ drops }) => drops)) return true
  return changes.some(({ ca, oldCa, newCa }) =>
    apiServers(observed).some((api) => {
      // An etcd member trusts only the new CA long before the end, and can go back.
      if (ca === 'etcd') return false
      const trust = certificatesIn(fileAt(observed, api.node, caFileOf(api, ca)))
      return trust.includes(newCa.digest) && !trust.includes(oldCa.digest)
    }),
  )
}
