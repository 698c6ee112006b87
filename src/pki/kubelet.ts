import { type CommandLine, commandLine } from '../errors/command-line.ts'

// The kubelet's certificates: the names of its files (client-go util/certificate/certificate_store.go) and the time when it
// requests new ones (certificate_manager.go).

/** The role of a file in /var/lib/kubelet/pki, by its name. */
export interface KubeletFile {
  readonly role: 'kubelet-client' | 'kubelet-serving'
  /**
   * `current` is the symbolic link that the kubelet reads. `pair` is a dated file that the link may point to; the kubelet never
   * deletes it. `updated` is the link of an interrupted change. `self-signed` is the certificate that the kubelet creates at its
   * first start when it requests no serving certificate from the cluster.
   */
  readonly part: 'current' | 'pair' | 'updated' | 'self-signed' | 'self-signed-key' | 'bootstrap-key'
}

const storePattern = /^kubelet-(client|server)-(current|updated|\d{4}(?:-\d{2}){5})\.pem$/

const otherFiles: ReadonlyMap<string, KubeletFile> = new Map([
  ['kubelet.crt', { role: 'kubelet-serving', part: 'self-signed' }],
  ['kubelet.key', { role: 'kubelet-serving', part: 'self-signed-key' }],
  ['kubelet-client.key.tmp', { role: 'kubelet-client', part: 'bootstrap-key' }],
])

/** Returns the role that the name of a file in the kubelet's pki folder indicates, or undefined. */
export function kubeletFile(name: string): KubeletFile | undefined {
  if (!name.startsWith('kubelet')) return undefined
  const match = storePattern.exec(name)
  if (match === null) return otherFiles.get(name)
  const role = match[1] === 'client' ? 'kubelet-client' : 'kubelet-serving'
  const part = match[2] === 'current' || match[2] === 'updated' ? match[2] : 'pair'
  return { role, part }
}

/** Returns the name of the link that the kubelet reads, next to a file of the store. */
export function currentLinkName(role: KubeletFile['role']): string {
  return role === 'kubelet-client' ? 'kubelet-client-current.pem' : 'kubelet-server-current.pem'
}

/**
 * Returns the name of a dated file of the store: "kubelet-client-2026-11-21-22-05-00.pem". The kubelet uses its local time, kcert
 * uses UTC.
 */
export function datedFileName(role: KubeletFile['role'], at: Date): string {
  const stamp = at.toISOString().slice(0, 19).replace(/[T:]/g, '-')
  return currentLinkName(role).replace('current', stamp)
}

export const nodeUserPrefix = 'system:node:'
export const nodeGroup = 'system:nodes'

/** True for the subject that only kubelets have: CN=system:node:NAME, O=system:nodes. */
export function isNodeIdentity(commonName: string | undefined, organization: readonly string[]): boolean {
  return (commonName?.startsWith(nodeUserPrefix) ?? false) && organization.includes(nodeGroup)
}

/**
 * False for a serving certificate that API servers may reject according to KEP-4872. Without the name of the node, any node's
 * name is accepted.
 */
export function hasServingName(commonName: string | undefined, node: string | undefined): boolean {
  return node === undefined
    ? (commonName?.startsWith(nodeUserPrefix) ?? false)
    : commonName === nodeUserPrefix + node
}

/**
 * The effect of KEP-4872 on another common name. Kubernetes 1.37.2 and apiserver 0.38.0-alpha.2 have neither the flag nor its
 * feature gate (KubeletCertCNValidation).
 */
export const servingNameText =
  'it is not for CN=system:node:NAME, and an API server with --enable-kubelet-cert-cn-validation will refuse it, so that logs and exec fail; that flag (KEP-4872) is off by default, planned for Kubernetes 1.38, and in no release up to 1.37'

/** How to give a kubelet a serving certificate with that name. */
export const servingNameRemedy =
  'before you set that flag: set serverTLSBootstrap: true with an approver, or issue the tlsCertFile with that common name'

/** The subject that was served at the address of a node's kubelet and is not that kubelet's. */
export interface ForeignSubject {
  readonly shown: string
  /**
   * True if it belongs to the kubelet of another node. Otherwise no kubelet creates or requests such a certificate, but
   * --tls-cert-file may contain it.
   */
  readonly isOfAnotherNode: boolean
}

/**
 * Returns the subject that contradicts the kubelet of this node in a certificate served at its address; undefined if it fits. A
 * kubelet requests CN=system:node:NODE from the cluster, and uses HOST@TIMESTAMP in a self-signed certificate
 * (pkg/kubelet/certificate/kubelet.go, cmd/kubelet/app/server.go). HOST may differ from the name of the Node.
 */
export function foreignSubjectOf(
  { commonName = '', text }: { readonly commonName?: string | undefined; readonly text: string },
  node: string | undefined,
): ForeignSubject | undefined {
  const isOfNodes = commonName.startsWith(nodeUserPrefix)
  if (/^[^@]+@\d+$/.test(commonName) || (isOfNodes && (node ?? '') === '')) return undefined
  if (commonName === `${nodeUserPrefix}${node}`) return undefined
  return { shown: text || 'an empty name', isOfAnotherNode: isOfNodes }
}

/** Returns the beginning of a message about it: "the server at 192.0.2.7:10250 serves a certificate for CN=printer, which is …". */
export function foreignSubjectText({ shown, isOfAnotherNode }: ForeignSubject, place: string): string {
  const whose = isOfAnotherNode
    ? "belongs to another node's kubelet"
    : 'is not one that a kubelet creates or requests'
  return `the server at ${place} serves a certificate for ${shown}, which ${whose}`
}

/**
 * Returns when a kubelet requests the successor of a certificate: at a random point of 70–90 % of its lifetime. The kubelet
 * chooses the point again at each start, so that nodes created together do not renew together.
 */
export function kubeletRotationWindow(notBefore: Date, notAfter: Date): { earliest: Date; latest: Date } {
  const begin = notBefore.getTime()
  const lifetimeMs = notAfter.getTime() - begin
  return {
    earliest: new Date(begin + lifetimeMs * 0.7),
    latest: new Date(begin + lifetimeMs * 0.9),
  }
}

/**
 * Returns the command that makes a kubelet create these files again. It moves them and does not delete them, so a failing command
 * loses nothing.
 */
export function recreatedByKubelet(files: readonly string[]): CommandLine {
  return commandLine`old=$(mktemp -d /var/tmp/kubelet-old-XXXXXX) && mv ${files} "$old" && systemctl restart kubelet`
}
