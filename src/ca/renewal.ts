import type { KeyObject } from 'node:crypto'
import { kubeadmKubeconfigs, kubeadmLeaves } from '../pki/kubeadm.ts'
import { currentLinkName, datedFileName, type KubeletFile } from '../pki/kubelet.ts'
import type { Certificate } from '../x509/certificate.ts'
import { generatePrivateKey, keyTypeLike, writePrivateKey } from '../x509/new-key.ts'
import { verifySignature } from '../x509/signature.ts'
import { isKeyOf, type SigningPair } from './certificate-authority.ts'
import { type ClusterFile, casAmong, type KnownCa, type OpenedFile, openFile } from './cluster-files.ts'
import { reissueLeaf } from './successor.ts'

// Renews kubeadm's leaf certificates, and those of kubelets, with the CA that signed them: from files alone, for the same names.

/** The locations of a node's certificates. */
export interface NodeLayout {
  readonly node: string
  readonly pkiFolder: string
  readonly kubernetesFolder: string
  readonly kubeletKubeconfig: string
  /** The kubelet's --cert-dir. */
  readonly kubeletFolder: string
}

/** The component that must restart to use a new certificate. */
export type LeafUser = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kubelet'

export interface LeafPlace {
  readonly node: string
  /** The name in `kubeadm certs renew`, or "kubelet.conf" or "kubelet-serving". */
  readonly name: string
  /** The path of the file with the certificate. */
  readonly path: string
  /**
   * `pair`: certificate and key in two files. `kubeconfig`: both inline. `store`: a kubelet's link to a dated file with both.
   * `file`: one file with both.
   */
  readonly form: 'pair' | 'kubeconfig' | 'store' | 'file'
  /** Of a pair. */
  readonly keyPath?: string
  readonly role?: KubeletFile['role']
  /** Absent for certificates of users. */
  readonly usedBy?: LeafUser
}

/**
 * `broken`: the key next to it does not match, as after a run that stopped between the two files. `foreign-ca`: no CA on
 * these nodes signed it. `external-ca`: the key of its CA is on none of them.
 */
export type LeafState = 'valid' | 'due' | 'expired' | 'key-mismatch'

export type SurveyedLeaf = SignerSearch & {
  readonly place: LeafPlace
  readonly leaf: Certificate
  readonly state: LeafState
  readonly opened: OpenedFile
  /** The key next to the certificate, whether it matches or not. */
  readonly key?: KeyObject
}

/** The CA that signed a leaf, and its key; or what is missing. */
type SignerSearch =
  | { readonly signer: SigningPair; readonly hindrance?: undefined }
  | { readonly signer?: undefined; readonly hindrance: 'foreign-ca' }
  | { readonly signer?: undefined; readonly hindrance: 'external-ca'; readonly ca: Certificate }
  | { readonly signer?: undefined; readonly hindrance: 'ca-expired'; readonly ca: Certificate }

export interface Survey {
  readonly leaves: readonly SurveyedLeaf[]
  /** Locations that should have a readable certificate and do not. */
  readonly missing: readonly MissingLeaf[]
}

export interface MissingLeaf extends LeafPlace {
  /** Those of its certificate and key files that exist. */
  readonly present: readonly string[]
}

/** The names that `kcert renew` accepts, in the order of kubeadm's table. */
export const renewableNames: readonly string[] = [
  ...kubeadmLeaves.map(({ name }) => name),
  ...kubeadmKubeconfigs.map(({ name }) => name),
  'kubelet-serving',
]

/** Returns every leaf on these nodes, with the CA that signed it. `isDue` decides for leaves that have not expired. */
export async function surveyLeaves(
  files: readonly ClusterFile[],
  layouts: readonly NodeLayout[],
  now: Date,
  isDue: (leaf: Certificate, place: LeafPlace) => boolean,
): Promise<Survey> {
  const opened = await Promise.all(files.map(openFile))
  const byPath = new Map(opened.map((one) => [`${one.file.node}:${one.file.path}`, one]))
  const cas = casAmong(opened, () => true)
  const leaves: SurveyedLeaf[] = []
  const missing: MissingLeaf[] = []
  for (const layout of layouts) {
    const at = (path: string): OpenedFile | undefined => byPath.get(`${layout.node}:${path}`)
    for (const place of placesOn(layout, at)) {
      const file = at(place.path)
      const leaf = file && certificatesAt(file, place)[0]
      if (file === undefined || leaf === undefined) {
        const { path, keyPath = path } = place
        missing.push({ ...place, present: [path, keyPath].filter((one) => at(one) !== undefined) })
        continue
      }
      const key = keyAt(file, place, at)
      const isPair = key !== undefined && isKeyOf(key, leaf)
      const ended = leaf.notAfterMs <= now.getTime()
      const state = !isPair ? 'key-mismatch' : ended ? 'expired' : isDue(leaf, place) ? 'due' : 'valid'
      leaves.push({ place, leaf, state, opened: file, ...(key && { key }), ...signerOf(leaf, cas, now) })
    }
  }
  return { leaves, missing }
}

function* placesOn(
  layout: NodeLayout,
  at: (path: string) => OpenedFile | undefined,
): Generator<LeafPlace, void, undefined> {
  const { node, pkiFolder, kubernetesFolder, kubeletKubeconfig, kubeletFolder } = layout
  for (const { name, file, usedBy } of kubeadmLeaves) {
    const path = `${pkiFolder}/${file}.crt`
    const keyPath = `${pkiFolder}/${file}.key`
    // With an external etcd, none of its files exist.
    if (at(path) === undefined && at(keyPath) === undefined) continue
    yield { node, name, path, keyPath, form: 'pair', usedBy }
  }
  for (const { name, usedBy } of kubeadmKubeconfigs) {
    const isKubelets = name === 'kubelet.conf'
    const path = isKubelets ? kubeletKubeconfig : `${kubernetesFolder}/${name}`
    const file = at(path)
    if (file?.clients.some(({ needsCertificate }) => needsCertificate) !== true) continue
    const user = isKubelets ? 'kubelet' : (usedBy as LeafUser | undefined)
    yield { node, name, ...materialPlace(file), ...(user && { usedBy: user }) }
  }
  const serving = `${kubeletFolder}/${currentLinkName('kubelet-serving')}`
  if (at(serving) !== undefined) {
    const role = 'kubelet-serving'
    yield { node, name: role, path: serving, form: 'store', role, usedBy: 'kubelet' }
  }
}

/** Returns where the client certificate of a kubeconfig is: inline, or in the referenced files. */
function materialPlace({ file, clients }: OpenedFile): Pick<LeafPlace, 'path' | 'form' | 'keyPath' | 'role'> {
  const named = clients.find(({ certificateFile }) => certificateFile !== undefined)
  const isInline = clients.some(({ certificates }) => certificates.length > 0)
  if (isInline || named?.certificateFile === undefined) return { path: file.path, form: 'kubeconfig' }
  const absolute = (name: string): string =>
    name.startsWith('/') ? name : `${file.path.slice(0, file.path.lastIndexOf('/'))}/${name}`
  const path = absolute(named.certificateFile)
  if (path.endsWith(`/${currentLinkName('kubelet-client')}`))
    return { path, form: 'store', role: 'kubelet-client' }
  const keyPath = absolute(named.keyFile ?? named.certificateFile)
  return keyPath === path ? { path, form: 'file' } : { path, keyPath, form: 'pair' }
}

function certificatesAt(file: OpenedFile, { form }: LeafPlace): readonly Certificate[] {
  if (form !== 'kubeconfig') return file.certificates.filter(({ isCa }) => !isCa)
  return file.clients.flatMap(({ certificates }) => certificates)
}

function keyAt(
  file: OpenedFile,
  { form, keyPath }: LeafPlace,
  at: (path: string) => OpenedFile | undefined,
): KeyObject | undefined {
  if (form === 'kubeconfig') return file.clients.find(({ certificates }) => certificates.length > 0)?.key
  return (keyPath === undefined ? file : at(keyPath))?.keys[0]
}

function signerOf(leaf: Certificate, cas: readonly KnownCa[], now: Date): SignerSearch {
  const ca = cas.find(
    ({ latest }) => leaf.issuer.equals(latest.subject) && verifySignature(leaf, latest.publicKey).ok,
  )
  if (ca === undefined) return { hindrance: 'foreign-ca' }
  const { latest, key } = ca
  if (latest.notAfterMs <= now.getTime()) return { ca: latest, hindrance: 'ca-expired' }
  if (key === undefined) return { ca: latest, hindrance: 'external-ca' }
  return { signer: { certificate: latest, key } }
}

export type FileChange =
  /** `mode` for a new file. `isDated`: no process reads it yet, so a file that a stopped run left there may be overwritten. */
  | {
      readonly kind: 'write'
      readonly path: string
      readonly text: string
      readonly mode: number
      readonly isDated?: true
    }
  | { readonly kind: 'link'; readonly path: string; readonly to: string }

export interface RenewedLeaf {
  readonly place: LeafPlace
  readonly old: Certificate
  readonly renewed: Certificate
  readonly hasNewKey: boolean
  /** In order: each certificate comes after the files that it needs. */
  readonly changes: readonly FileChange[]
}

export interface RenewalSettings {
  readonly now: Date
  readonly serialNumber: () => string
  readonly keepKeys: boolean
  /** Default: the validity of the old certificate. */
  readonly ttlMs?: number
}

/**
 * Returns the changes that renew a leaf. If the key next to the leaf does not match, the new certificate is for that key: an
 * earlier run wrote it and was stopped.
 */
export async function renewLeaf(
  { place, leaf, opened, signer, state, key: present }: SurveyedLeaf & { readonly signer: SigningPair },
  { now, serialNumber, keepKeys, ttlMs }: RenewalSettings,
): Promise<RenewedLeaf> {
  const isBroken = state === 'key-mismatch'
  const found = isBroken ? present : undefined
  const needsKey = found === undefined && (!keepKeys || isBroken)
  const made = needsKey ? generatePrivateKey(keyTypeLike(leaf.publicKey)) : undefined
  const key = found ?? made
  const issuing = { now, serialNumber: serialNumber() }
  const renewed = reissueLeaf(leaf, signer, issuing, key, ttlMs)
  const rewritten = await opened.rewrite({
    certificate: (one) => (one.fingerprintSha256 === leaf.fingerprintSha256 ? renewed : one),
    key: (one) => (one.fingerprintSha256 === leaf.fingerprintSha256 ? key : undefined),
  })
  // The store's file has lost its key.
  const lacksKey = (place.form === 'store' || place.form === 'file') && opened.keys.length === 0
  const text =
    lacksKey && key !== undefined
      ? `${rewritten.replace(/\n?$/, '\n')}${writePrivateKey(key, 'kubernetes')}`
      : rewritten
  return {
    ...{ place, old: leaf, renewed, hasNewKey: key !== undefined },
    changes: [...changesAt(place, text, made, now)],
  }
}

function* changesAt(
  { path, keyPath, form, role }: LeafPlace,
  text: string,
  made: KeyObject | undefined,
  now: Date,
): Generator<FileChange, void, undefined> {
  if (form === 'store' && role !== undefined) {
    const dated = `${path.slice(0, path.lastIndexOf('/'))}/${datedFileName(role, now)}`
    yield { kind: 'write', path: dated, text, mode: 0o600, isDated: true }
    yield { kind: 'link', path, to: dated }
    return
  }
  if (keyPath !== undefined && made !== undefined)
    yield { kind: 'write', path: keyPath, text: writePrivateKey(made, 'kubernetes'), mode: 0o600 }
  yield { kind: 'write', path, text, mode: 0o644 }
}
