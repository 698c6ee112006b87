import { commandLine, embed } from '../errors/command-line.ts'
import { withoutBrackets } from '../errors/host-port.ts'
import type { Found, Peer } from './found.ts'

export type Component =
  | 'api-server'
  | 'kubelet'
  | 'etcd'
  | 'in-cluster'
  | 'mesh'
  | 'outside'
  | 'other'
  | 'unknown'

const componentOfPort: Readonly<Record<string, Component>> = {
  6443: 'api-server',
  10250: 'kubelet',
  2379: 'etcd',
  2380: 'etcd',
}

const componentOfPeer: Readonly<Record<Peer, Component>> = {
  'api-server': 'api-server',
  kubelet: 'kubelet',
  etcd: 'etcd',
  mesh: 'mesh',
  registry: 'outside',
  repository: 'outside',
  'identity-provider': 'outside',
  acme: 'outside',
  elsewhere: 'outside',
}

/** Returns what was connected to, as far as its port, its name and the words around tell. */
export function componentOf(found: Found): Component {
  if (found.webhook !== undefined || found.apiGroup?.endsWith('metrics.k8s.io')) return 'in-cluster'
  const endpoint = found.endpoints[0]
  const byPort = endpoint === undefined ? undefined : componentOfPort[portOf(endpoint)]
  if (byPort !== undefined) return byPort
  if (endpoint !== undefined && /^(?!kubernetes\.default).*\.svc(?:\.|:|$)/.test(endpoint))
    return 'in-cluster'
  if (found.candidate === 'etcd-ca') return 'etcd'
  if (found.peer !== undefined) return componentOfPeer[found.peer]
  return endpoint === undefined ? 'unknown' : 'other'
}

/** Returns a condition of a cause: one of these was connected to. */
export const isAt =
  (...components: readonly Component[]) =>
  (found: Found): boolean =>
    components.includes(componentOf(found))

/** Returns what in the text speaks for a kubelet as the server. */
export function kubeletEvidence(found: Found): string | undefined {
  if (componentOf(found) !== 'kubelet') return undefined
  const [endpoint] = found.endpoints
  return endpoint !== undefined && portOf(endpoint) === '10250'
    ? `${endpoint} is the port of a kubelet`
    : 'a kubelet was called'
}

/** Returns what in the text speaks for etcd, as the server or as the one that refuses. */
export function etcdEvidence(found: Found): string | undefined {
  if (componentOf(found) !== 'etcd') return undefined
  const [endpoint] = found.endpoints
  return endpoint !== undefined && /:23(?:79|80)$/.test(endpoint)
    ? `${endpoint} is a port of etcd`
    : 'the text is of etcd, or of one that calls it'
}

/** kubeadm's file of the CA that servers verify clients by: etcd and the front proxy have CAs of their own. */
export function clientCaFile(found: Found): string {
  if (componentOf(found) === 'etcd') return etcdCaFile
  return found.candidate?.startsWith('front-proxy') === true
    ? '/etc/kubernetes/pki/front-proxy-ca.crt'
    : '/etc/kubernetes/pki/ca.crt'
}

const etcdCaFile = '/etc/kubernetes/pki/etcd/ca.crt'

export function hostOf(endpoint: string): string {
  return withoutBrackets(endpoint.slice(0, endpoint.lastIndexOf(':')))
}

function portOf(endpoint: string): string {
  return endpoint.slice(endpoint.lastIndexOf(':') + 1)
}

/** Returns the kubeconfig that the text names, or that of its author, or the one that kubectl reads. */
export function kubeconfigOf({ files, by }: Found): ShellPath {
  const named = files.find((path) => /\.(?:conf|kubeconfig)$|\/config$/.test(path))
  if (named !== undefined) return shellPath(named)
  return shellPath(by === undefined ? '~/.kube/config' : `/etc/kubernetes/${by.replace('kube-', '')}.conf`)
}

/** Returns a certificate file that the text names. */
export function certificateFileOf({ files }: Found): string | undefined {
  return files.find((path) => /\.(?:pem|crt|cer)$/.test(path))
}

/** Returns the file in which the server of the text has its certificate, as kubeadm and kubelets name it. */
export function servingFileOf(found: Found): string {
  switch (componentOf(found)) {
    case 'kubelet':
      return '/var/lib/kubelet/pki/kubelet-server-current.pem'
    case 'etcd':
      return '/etc/kubernetes/pki/etcd/server.crt'
    default:
      return '/etc/kubernetes/pki/apiserver.crt'
  }
}

/** Returns the folders in which kubeadm and kubelets keep theirs. */
export const nodeFolders = ['/etc/kubernetes', '/var/lib/kubelet/pki']

/** Returns the command that looks at what the servers of the text serve; without one, at all API servers. */
export function probeCommand(found: Found): string {
  if (componentOf(found) === 'in-cluster') return 'kcert probe --webhooks'
  if (componentOf(found) === 'kubelet' && found.endpoints.length === 0) return 'kcert probe --nodes'
  if (componentOf(found) === 'etcd') return etcdProbe(found)
  if (found.endpoints.length > 0) return commandLine`kcert probe ${found.endpoints}`
  return 'kcert probe --api-servers'
}

// As etcd's own health check does; without a client certificate etcd says no more than that it wants one.
function etcdProbe({ endpoints }: Found): string {
  const servers = endpoints.length > 0 ? endpoints : ['127.0.0.1:2379']
  const client = '/etc/kubernetes/pki/etcd/healthcheck-client'
  return commandLine`kcert probe ${servers} --ca ${etcdCaFile} --client-certificate ${client}.crt --client-key ${client}.key`
}

/** The same for one server, with the chain that it sends. */
export function inspectCommand(found: Found): string {
  const [endpoint] = found.endpoints
  return endpoint === undefined || componentOf(found) === 'in-cluster'
    ? 'kcert probe --all'
    : commandLine`kcert inspect ${endpoint}`
}

/** Returns the command that tells when the kubelet of the text's node renews; without one, of every node. */
export function forecastCommand({ node }: Found): string {
  return node === undefined ? 'kcert kubelet forecast' : commandLine`kcert kubelet forecast --node ${node}`
}

/** Returns the file with the CAs by which the client of the text judges its server. */
function rootsOf(found: Found): ShellPath {
  const component = componentOf(found)
  if (component === 'etcd') return shellPath(etcdCaFile)
  return component === 'outside' || component === 'mesh' ? shellPath('CA.crt') : kubeconfigOf(found)
}

/** Returns the command that judges a server by the CAs of its client, or by those of a file. */
export function verifyCommand(found: Found, roots = rootsOf(found)): string {
  const [endpoint] = found.endpoints
  if (endpoint === undefined || componentOf(found) === 'in-cluster') return probeCommand(found)
  return commandLine`kcert verify ${endpoint} --roots ${roots} --name ${found.wantedName ?? hostOf(endpoint)}`
}

/** Where the text names a server, "10.0.0.1:6443"; else "the server". */
export function serverName({ endpoints }: Found): string {
  return endpoints[0] ?? 'the server'
}

/** "~" stays outside of quotes, or no shell replaces it. */
export function shellPath(path: string): ShellPath {
  return embed(path.startsWith('~/') ? commandLine`~/${path.slice(2)}` : commandLine`${path}`)
}

type ShellPath = ReturnType<typeof embed>
