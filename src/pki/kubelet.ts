import { type CommandLine, commandLine } from '../errors/command-line.ts'

// The kubelet's certificates: the names of its files (client-go util/certificate/certificate_store.go) and when it asks for
// new ones (certificate_manager.go).

/** What a file of /var/lib/kubelet/pki is, by its name. */
export interface KubeletFile {
  readonly role: 'kubelet-client' | 'kubelet-serving'
  /**
   * `current` is the symbolic link that the kubelet reads; `pair` a dated file that it may lead to, never deleted by the
   * kubelet; `updated` the link of a change that was interrupted; `self-signed` what the kubelet makes at its first start
   * when the kubelet requests no serving certificate from the cluster.
   */
  readonly part: 'current' | 'pair' | 'updated' | 'self-signed' | 'self-signed-key' | 'bootstrap-key'
}

const storePattern = /^kubelet-(client|server)-(current|updated|\d{4}(?:-\d{2}){5})\.pem$/

const otherFiles: ReadonlyMap<string, KubeletFile> = new Map([
  ['kubelet.crt', { role: 'kubelet-serving', part: 'self-signed' }],
  ['kubelet.key', { role: 'kubelet-serving', part: 'self-signed-key' }],
  ['kubelet-client.key.tmp', { role: 'kubelet-client', part: 'bootstrap-key' }],
])

/** Returns what the name says of a file in the kubelet's pki folder, or undefined when it says nothing. */
export function kubeletFile(name: string): KubeletFile | undefined {
  if (!name.startsWith('kubelet')) return undefined
  const match = storePattern.exec(name)
  if (match === null) return otherFiles.get(name)
  const role = match[1] === 'client' ? 'kubelet-client' : 'kubelet-serving'
  const part = match[2] === 'current' || match[2] === 'updated' ? match[2] : 'pair'
  return { role, part }
}

/** Name of the link beside a file of the store that the kubelet reads. */
export function currentLinkName(role: KubeletFile['role']): string {
  return role === 'kubelet-client' ? 'kubelet-client-current.pem' : 'kubelet-server-current.pem'
}

/** Returns the name of a dated file of the store: "kubelet-client-2026-11-21-22-05-00.pem". The kubelet takes its local time, kcert UTC. */
export function datedFileName(role: KubeletFile['role'], at: Date): string {
  const stamp = at.toISOString().slice(0, 19).replace(/[T:]/g, '-')
  return currentLinkName(role).replace('current', stamp)
}

export const nodeUserPrefix = 'system:node:'
export const nodeGroup = 'system:nodes'

/** True for the subject that only kubelets carry: CN=system:node:NAME, O=system:nodes. */
export function isNodeIdentity(commonName: string | undefined, organization: readonly string[]): boolean {
  return (commonName?.startsWith(nodeUserPrefix) ?? false) && organization.includes(nodeGroup)
}

/** False for a serving certificate that KEP-4872 lets API servers refuse. Without the name of the node, any node's name will do. */
export function hasServingName(commonName: string | undefined, node: string | undefined): boolean {
  return node === undefined
    ? (commonName?.startsWith(nodeUserPrefix) ?? false)
    : commonName === nodeUserPrefix + node
}

/**
 * What KEP-4872 makes of another common name. Kubernetes 1.37.2 and apiserver 0.38.0-alpha.2 have neither the flag nor its feature gate
 * (KubeletCertCNValidation).
 */
export const servingNameText =
  'it is not for CN=system:node:NAME, and an API server with --enable-kubelet-cert-cn-validation will refuse it, so that logs and exec fail; that flag (KEP-4872) is off by default, planned for Kubernetes 1.38, and in no release up to 1.37'

/** What gives a kubelet a serving certificate with that name. */
export const servingNameRemedy =
  'before you set that flag: set serverTLSBootstrap: true with an approver, or issue the tlsCertFile with that common name'

/** The subject that something showed at the address of a node's kubelet, and that is none of this kubelet's. */
export interface ForeignSubject {
  readonly shown: string
  /** The kubelet of another node; else no certificate that a kubelet makes or asks for, as that of --tls-cert-file may be. */
  readonly isOfAnotherNode: boolean
}

/**
 * Returns what speaks against the kubelet of this node in a certificate that was shown at its address, and undefined where nothing does: it
 * asks the cluster for CN=system:node:NODE, and names itself HOST@TIMESTAMP in what it signs itself (pkg/kubelet/certificate/kubelet.go,
 * cmd/kubelet/app/server.go). HOST need not be the name of the Node.
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

/** Returns the beginning of a message about it: "what answers at 192.0.2.7:10250 shows CN=printer, which is …". */
export function foreignSubjectText({ shown, isOfAnotherNode }: ForeignSubject, place: string): string {
  const whose = isOfAnotherNode
    ? "of another node's kubelet"
    : 'no certificate that a kubelet makes or asks for'
  return `what answers at ${place} shows ${shown}, which is ${whose}`
}

/**
 * Returns when a kubelet asks for the successor of a certificate: at a random point of 70–90 % of its life, chosen again
 * at each start of the kubelet, so that nodes made together do not renew together.
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
 * Returns the command after which a kubelet has created these files again. They are moved aside, not deleted, so a command that
 * fails loses nothing.
 */
export function recreatedByKubelet(files: readonly string[]): CommandLine {
  return commandLine`old=$(mktemp -d /var/tmp/kubelet-old-XXXXXX) && mv ${files} "$old" && systemctl restart kubelet`
}
