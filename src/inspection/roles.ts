import type { KubeadmRow, Usage } from '../pki/kubeadm.ts'
import type { TreePlace } from '../pki/kubeadm-tree.ts'
import { isNodeIdentity, type KubeletFile } from '../pki/kubelet.ts'
import {
  type CertificateEntry,
  type Group,
  type KeyEntry,
  kubeadmPlaceOf,
  type Origin,
  type Owner,
  type Role,
} from './entries.ts'
import { nameText } from './problems.ts'

const nothing: Role = { name: undefined, usages: [], isTrusted: false, isRecord: false }
const server: readonly Usage[] = ['serverAuth']
const client: readonly Usage[] = ['clientAuth']

/** Returns the role of a certificate by its place. */
export function roleOf(entry: CertificateEntry, isReplaced: (group: Group) => boolean): Role {
  const { certificate } = entry
  const role = roleOfPlace(entry, isReplaced)
  if (role.kubelet !== undefined || certificate.isCa) return role
  const { commonName, organization } = certificate.subject
  if (!isNodeIdentity(commonName, organization)) return role
  const usages = certificate.extendedKeyUsage
  const isClient = usages.includes('clientAuth')
  if (!isClient && !usages.includes('serverAuth')) return role
  const kubelet = isClient ? 'kubelet-client' : 'kubelet-serving'
  return { ...role, kubelet, name: role.name ?? kubelet }
}

function roleOfPlace(entry: CertificateEntry, isReplaced: (group: Group) => boolean): Role {
  const { group, position } = entry
  const { owner, origin } = group
  const isChain = position > 0
  switch (owner.kind) {
    case 'file':
      return origin.treePlace === undefined ? nothing : roleInTree(entry, origin.treePlace, isReplaced)
    case 'served':
      return isChain ? { ...nothing, name: 'served chain' } : { ...nothing, name: 'served', usages: server }
    case 'cluster':
      return { ...nothing, name: 'cluster CA', isTrusted: true }
    case 'user': {
      const row = kubeconfigRow(owner.kubeconfig.origin)
      const name = row?.name ?? `client of user ${nameText(owner.name)}`
      if (isChain) return { ...nothing, name: `${name}, chain` }
      return { ...nothing, name, usages: client, ...(row && { row }) }
    }
    case 'value':
      return roleOfValue(owner, position)
    case 'ca-bundle':
      return { ...nothing, name: owner.of, isTrusted: true }
    case 'issued': {
      const kubelet = kubeletOfSigner.get(owner.signerName)
      return {
        ...nothing,
        isRecord: true,
        name: isChain ? 'issued chain' : 'issued',
        ...(kubelet && !isChain && { kubelet, name: kubelet }),
      }
    }
  }
}

function roleInTree(entry: CertificateEntry, place: TreePlace, isReplaced: (group: Group) => boolean): Role {
  if (place.tree.kind === 'kubelet' && 'file' in place)
    return roleOfKubeletFile(entry, place.file, isReplaced)
  if (!('row' in place) || place.row.kind === 'service-account-key') return nothing
  const { row } = place
  if (row.kind === 'ca') return { ...nothing, name: row.name, row, isTrusted: true }
  if (row.kind === 'kubeconfig') return nothing
  return entry.position > 0
    ? { ...nothing, name: `${row.name}, chain` }
    : { ...nothing, name: row.name, row, usages: row.usages }
}

function roleOfKubeletFile(
  { group, position }: CertificateEntry,
  { role, part }: KubeletFile,
  isReplaced: (group: Group) => boolean,
): Role {
  if (position > 0)
    return { ...nothing, name: part === 'self-signed' ? `${role}, self-signed CA` : `${role}, chain` }
  const usages = role === 'kubelet-client' ? client : server
  // The kubelet creates it once and never rotates it.
  if (part === 'self-signed') return { ...nothing, name: `${role}, self-signed`, usages }
  if (isReplaced(group)) return { ...nothing, name: `${role}, replaced`, isRecord: true, isReplaced: true }
  return { ...nothing, name: role, usages, kubelet: role }
}

const caFilesOfApiServer: ReadonlyMap<string, string> = new Map([
  ['client-ca-file', 'client CA'],
  ['requestheader-client-ca-file', 'front-proxy CA'],
])

function roleOfValue({ object, key }: Extract<Owner, { kind: 'value' }>, position: number): Role {
  const { kind, name, type } = object
  const trusted = (role: string): Role => ({ ...nothing, name: role, isTrusted: true })
  if (kind === 'ConfigMap') {
    const ofApiServer =
      name === 'extension-apiserver-authentication' ? caFilesOfApiServer.get(key) : undefined
    if (ofApiServer !== undefined) return trusted(ofApiServer)
    if (!/\.(?:crt|pem)$/.test(key)) return nothing
    return trusted(name === 'kube-root-ca.crt' ? 'cluster CA' : 'CA bundle')
  }
  if (key === 'ca.crt')
    return trusted(type === 'kubernetes.io/service-account-token' ? 'cluster CA' : 'CA bundle')
  return key === 'tls.crt' ? { ...nothing, name: position > 0 ? 'TLS chain' : 'TLS' } : nothing
}

function kubeconfigRow(origin: Origin): Extract<KubeadmRow, { kind: 'kubeconfig' }> | undefined {
  const row = kubeadmPlaceOf(origin)?.row
  return row?.kind === 'kubeconfig' ? row : undefined
}

const kubeletOfSigner: ReadonlyMap<string | undefined, KubeletFile['role']> = new Map([
  ['kubernetes.io/kube-apiserver-client-kubelet', 'kubelet-client'],
  ['kubernetes.io/kubelet-serving', 'kubelet-serving'],
])

/** Returns the name of a certificate for `kcert renew`; undefined if it cannot renew it, as outside kubeadm's folders. */
export function renewalName({ group: { origin } }: CertificateEntry, role: Role): string | undefined {
  const { row, kubelet, isRecord } = role
  const tree = origin.treePlace?.tree
  if (isRecord || tree === undefined || row?.kind === 'ca') return undefined
  // The key of the CA is on another node.
  if (tree.kind === 'kubeadm' && tree.node === 'worker') return undefined
  if (kubelet === 'kubelet-client') return 'kubelet.conf'
  return row?.name ?? kubelet
}

/** Returns the role of a key by its place, for the report. */
export function roleOfKey({ group }: KeyEntry): string | undefined {
  const { owner, origin } = group
  if (owner.kind === 'user') return `client of user ${nameText(owner.name)}`
  const place = origin.treePlace
  if (owner.kind !== 'file' || place === undefined) return undefined
  return 'row' in place ? place.row.name : place.file.role
}
