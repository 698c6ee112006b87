import { type CertificateRecord, reissuedRecord } from './certificate-record.ts'
import { caFileOf, folderOn, keyBeside, materialPaths } from './material.ts'
import { apiServers, certificatesIn, fileAt, type Observed, type SectionName } from './snapshot.ts'
import { type CaChange, type CaName, caNames, plannedDigest, type Target } from './target.ts'

// The target is what the operator wants, filled with what the cluster says: which CA is the old one, whether the new one is made,
// and whether the old one is being dropped already.

/** What the operator chose. Kept in the journal, so that a second run means the same. */
export interface Settings extends Omit<Target, 'changes' | 'isDropping'> {
  readonly cas: readonly CaName[]
  readonly withBridge: boolean
  /** CAs that the operator brings along; the others are made in phase 1. */
  readonly given?: Readonly<Partial<Record<CaName, CertificateRecord>>>
}

export const defaultSettings: Settings = {
  cas: caNames,
  withBridge: true,
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

/** What every run observes first. */
export const targetSections = [
  'nodes',
  'components',
  'kubelets',
  'files',
  'handshakes',
  'intents',
] as const satisfies readonly SectionName[]

export type TargetSections = (typeof targetSections)[number]

/** What a journal remembers of the CAs. */
export type RememberedChanges = readonly (Pick<CaChange, 'oldCa' | 'newCa'> & { readonly ca: string })[]

/** Returns the target of a run. */
export function targetOf(
  observed: Observed<TargetSections>,
  settings: Settings,
  remembered: RememberedChanges = [],
): Target {
  const { cas, withBridge, given: _, ...rest } = settings
  const changes = cas.flatMap((ca) => changeFrom(observed, ca, settings, remembered) ?? [])
  // Who has the old CA's key may have more: with a leaked one no key is kept.
  const newKeys = settings.newKeys || settings.reason === 'compromise'
  return { ...rest, newKeys, changes, isDropping: isDropping(observed, changes) }
}

function changeFrom(
  observed: Observed<TargetSections>,
  ca: CaName,
  { withBridge, reason, given }: Settings,
  remembered: RememberedChanges,
): CaChange | undefined {
  const laidOut = (what: keyof ReturnType<typeof materialPaths>) =>
    apiServers(observed).flatMap(({ node }) => {
      return fileAt(observed, node, materialPaths(folderOn(observed, node), ca)[what]) ?? []
    })
  const first = (what: 'oldCertificate' | 'newCertificate' | 'bridge') =>
    laidOut(what).flatMap((file) => observed.certificates.get(certificatesIn(file)[0] ?? '') ?? [])[0]
  const known = remembered.find((one) => one.ca === ca)
  // A run that was killed between the two has left a key without its certificate: that key is certified.
  const madeKey = laidOut('newKey').flatMap(({ holds }) => (holds.kind === 'key' ? holds.spki : []))[0]
  const oldCa = first('oldCertificate') ?? known?.oldCa ?? presentCa(observed, ca)
  if (oldCa === undefined) return undefined
  const newCa =
    first('newCertificate') ?? known?.newCa ?? givenCa(given, ca) ?? plannedCa(observed, oldCa, ca, madeKey)
  if (ca === 'front-proxy' || !withBridge || reason === 'compromise') return { ca, oldCa, newCa }
  return { ca, oldCa, newCa, bridge: first('bridge') ?? plannedBridge(oldCa, newCa) }
}

/** The CA whose key lies beside the file by which API servers know clients; else the first of the file. */
function presentCa(observed: Observed<TargetSections>, ca: CaName): CertificateRecord | undefined {
  for (const api of apiServers(observed)) {
    const path = caFileOf(api, ca)
    if (path === undefined) continue
    const records = certificatesIn(fileAt(observed, api.node, path)).flatMap(
      (digest) => observed.certificates.get(digest) ?? [],
    )
    const key = fileAt(observed, api.node, keyBeside(path))?.holds
    const signer = key?.kind === 'key' ? records.find(({ spki }) => spki === key.spki) : undefined
    const found = signer ?? records[0]
    if (found !== undefined) return found
  }
  return undefined
}

/** As phase 1 will lay it out: until then it is one that is planned, like any other. */
function givenCa(given: Settings['given'], ca: CaName): CertificateRecord | undefined {
  const record = given?.[ca]
  return record && { ...record, digest: plannedDigest(ca, 'new') }
}

/** As phase 1 will create it: another name, so that tools that compare names can distinguish the two, and key identifiers. */
function plannedCa(
  observed: Observed<TargetSections>,
  oldCa: CertificateRecord,
  ca: CaName,
  key = `planned:key of ${ca}/new`,
): CertificateRecord {
  return {
    digest: plannedDigest(ca, 'new'),
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

function plannedBridge(oldCa: CertificateRecord, newCa: CertificateRecord): CertificateRecord {
  const bridge = reissuedRecord(newCa, oldCa, plannedDigest('cluster', 'bridge'))
  return { ...bridge, notBeforeMs: newCa.notBeforeMs }
}

/** CN=kubernetes → CN=kubernetes-ca-2 → CN=kubernetes-ca-3 */
export function nextName(subject: string, ca: CaName): string {
  const counted = /^(.*-ca)-(\d+)$/.exec(subject)
  if (counted !== null) return `${counted[1]}-${Number(counted[2]) + 1}`
  return ca === 'cluster' && !subject.endsWith('-ca') ? `${subject}-ca-2` : `${subject}-2`
}

/** True once a verifier trusts the new CA alone, or phase 12 wrote down that it would see to that. */
function isDropping(observed: Observed<TargetSections>, changes: readonly CaChange[]): boolean {
  if (observed.intents.some(({ drops }) => drops)) return true
  return changes.some(({ ca, oldCa, newCa }) =>
    apiServers(observed).some((api) => {
      const trust = certificatesIn(fileAt(observed, api.node, caFileOf(api, ca)))
      return trust.includes(newCa.digest) && !trust.includes(oldCa.digest)
    }),
  )
}
