import { withoutBrackets } from '../errors/host-port.ts'
import { shellWord } from '../errors/shell-word.ts'
import type { Found } from './found.ts'

export type Component = 'api-server' | 'kubelet' | 'etcd' | 'in-cluster' | 'other' | 'unknown'

const componentOfPort: Readonly<Record<string, Component>> = {
  6443: 'api-server',
  10250: 'kubelet',
  2379: 'etcd',
  2380: 'etcd',
}

/** Returns what was connected to, as far as its port and name tell. */
export function componentOf(found: Found): Component {
  if (found.webhook !== undefined || found.apiGroup?.endsWith('metrics.k8s.io')) return 'in-cluster'
  if (found.isToKubelet === true) return 'kubelet'
  const endpoint = found.endpoints[0]
  if (endpoint === undefined) return found.candidate === 'etcd-ca' ? 'etcd' : 'unknown'
  const byPort = componentOfPort[portOf(endpoint)]
  if (byPort !== undefined) return byPort
  return /\.svc(?:\.|:|$)/.test(endpoint) ? 'in-cluster' : 'other'
}

/** Returns what in the text speaks for a kubelet as the server. */
export function kubeletEvidence(found: Found): string | undefined {
  if (componentOf(found) !== 'kubelet') return undefined
  const [endpoint] = found.endpoints
  return endpoint !== undefined && portOf(endpoint) === '10250'
    ? `${endpoint} is the port of a kubelet`
    : 'an API server called a kubelet'
}

/** Returns the etcd of the text, or the one of the machine. */
export function etcdEndpoint({ endpoints }: Found): string {
  return endpoints[0] ?? '127.0.0.1:2379'
}

export function hostOf(endpoint: string): string {
  return withoutBrackets(endpoint.slice(0, endpoint.lastIndexOf(':')))
}

function portOf(endpoint: string): string {
  return endpoint.slice(endpoint.lastIndexOf(':') + 1)
}

/** Returns the kubeconfig that the text names, or the one that kubectl reads. */
export function kubeconfigOf({ files }: Found): string {
  const named = files.find((path) => /\.(?:conf|kubeconfig)$|\/config$/.test(path))
  return named === undefined ? '~/.kube/config' : shellPath(named)
}

/** Returns a certificate file that the text names. */
export function certificateFileOf({ files }: Found): string | undefined {
  const named = files.find((path) => /\.(?:pem|crt|cer)$/.test(path))
  return named === undefined ? undefined : shellPath(named)
}

/** Returns the folders in which kubeadm and kubelets keep theirs. */
export const nodeFolders = '/etc/kubernetes /var/lib/kubelet/pki'

/** Returns the command that looks at what the servers of the text serve; without one, at all API servers. */
export function probeCommand(found: Found): string {
  if (componentOf(found) === 'in-cluster') return 'kcert probe --webhooks'
  if (found.endpoints.length > 0) return `kcert probe ${found.endpoints.map(shellWord).join(' ')}`
  return 'kcert probe --api-servers'
}

/** The same for one server, with the chain that it sends. */
export function inspectCommand(found: Found): string {
  const [endpoint] = found.endpoints
  return endpoint === undefined || componentOf(found) === 'in-cluster'
    ? 'kcert probe --all'
    : `kcert inspect ${shellWord(endpoint)}`
}

/** Returns the command that tells when the kubelet of the text's node renews; without one, of every node. */
export function forecastCommand({ node }: Found): string {
  return node === undefined ? 'kcert kubelet forecast' : `kcert kubelet forecast --node ${shellWord(node)}`
}

/** Returns the command that judges a server by the CAs of a file, as its client does. */
export function verifyCommand(found: Found, roots: string): string {
  const [endpoint] = found.endpoints
  if (endpoint === undefined || componentOf(found) === 'in-cluster') return probeCommand(found)
  return `kcert verify ${shellWord(endpoint)} --roots ${roots} --name ${shellWord(found.wantedName ?? hostOf(endpoint))}`
}

/** Where the text names a server, "10.0.0.1:6443"; else "the server". */
export function serverName({ endpoints }: Found): string {
  return endpoints[0] ?? 'the server'
}

/** "~" stays outside of quotes, or no shell replaces it. */
function shellPath(path: string): string {
  return path.startsWith('~/') ? `~/${shellWord(path.slice(2))}` : shellWord(path)
}
