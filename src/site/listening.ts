import { withoutBrackets } from '../errors/host-port.ts'
import { type Flags, flagsOf, programOf } from '../pki/component-flags.ts'
import { type KubeletConfiguration, readKubeletConfiguration } from '../pki/kubelet-configuration.ts'
import type { ComponentName, NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { dropInsOn } from './kubelet-drop-ins.ts'
import { textOf } from './node-files.ts'

// Where components listen on their own node: from their command lines, and for kubelets also from their configuration.

/** The port that a component listens on, and the address at which its own node reaches it. */
export interface Listening {
  readonly host: string
  readonly port: number
}

/** The listening settings of a kubelet's configuration. Flags take precedence. */
export type ListeningConfiguration = Pick<
  KubeletConfiguration,
  'address' | 'port' | 'healthzBindAddress' | 'healthzPort'
>

const defaultPorts: Readonly<Partial<Record<ComponentName, number>>> = {
  'kube-apiserver': 6443,
  'kube-controller-manager': 10257,
  'kube-scheduler': 10259,
  'cloud-controller-manager': 10258,
  kubelet: 10250,
}

/** Returns where a component serves TLS, from its command line and, for a kubelet, its configuration. */
export function listeningOf(
  argv: readonly string[],
  { address, port }: ListeningConfiguration = {},
): Listening {
  const flags = flagsOf(argv)
  if (programOf(argv) === 'etcd') return etcdListening(flags, 'client') ?? { host: '127.0.0.1', port: 2379 }
  const standard = defaultPorts[programOf(argv) as ComponentName]
  return {
    host: reachable(flags['bind-address'] ?? flags.address ?? address),
    port: Number(flags['secure-port'] ?? flags.port ?? port ?? standard ?? 0),
  }
}

/** Returns where etcd serves TLS to clients or to other members; undefined if it listens on no https:// address. */
export function etcdListening(flags: Flags, part: 'client' | 'peer'): Listening | undefined {
  const urls = flags[`listen-${part}-urls`]?.split(',') ?? []
  const url = URL.parse(urls.find((one) => one.startsWith('https://')) ?? '')
  if (url === null) return undefined
  return { host: reachable(withoutBrackets(url.hostname)), port: Number(url.port) }
}

/** Returns the health endpoint of a component. */
export function healthOf(
  { program, argv }: Pick<ProcessFacts, 'program' | 'argv'>,
  configuration: ListeningConfiguration = {},
): Listening & { readonly path: string; readonly isTls: boolean } {
  const flags = flagsOf(argv)
  if (program === 'kubelet') {
    const { healthzBindAddress, healthzPort = 10_248 } = configuration
    const host = reachable(flags['healthz-bind-address'] ?? healthzBindAddress)
    return { host, port: Number(flags['healthz-port'] ?? healthzPort), path: '/healthz', isTls: false }
  }
  if (program === 'kube-proxy') {
    const [, host, port = '10256'] = /^(.*):(\d+)$/.exec(flags['healthz-bind-address'] ?? '') ?? []
    return { host: reachable(host), port: Number(port), path: '/healthz', isTls: false }
  }
  if (program === 'etcd') return etcdHealth(flags)
  const path = program === 'kube-apiserver' ? '/readyz' : '/healthz'
  return { ...listeningOf(argv), path, isTls: true }
}

/** Returns the metrics endpoint, which needs no client certificate. kubeadm binds it to loopback. */
function etcdHealth({ 'listen-metrics-urls': metrics, 'listen-client-urls': clients }: Flags) {
  const [first = ''] = (metrics ?? clients ?? 'http://127.0.0.1:2379').split(',')
  const url = URL.parse(first)
  const host = reachable(withoutBrackets(url?.hostname ?? ''))
  return { host, port: Number(url?.port || 2379), path: '/health', isTls: url?.protocol === 'https:' }
}

/** Returns the configuration file of a kubelet, with its drop-ins. Returns an empty one for other components, and if the file cannot be read. */
export async function configurationOf(
  node: NodeAccess | undefined,
  { program, argv }: Pick<ProcessFacts, 'program' | 'argv'>,
): Promise<Partial<KubeletConfiguration>> {
  const path = program === 'kubelet' ? flagsOf(argv).config : undefined
  if (node === undefined || path === undefined) return {}
  try {
    const [file] = await node.readFiles([path])
    if (file?.found !== 'file') return {}
    return await readKubeletConfiguration(textOf(file), path, await dropInsOn(node, flagsOf(argv)))
  } catch {
    return {}
  }
}

/** Returns the address at which a node reaches itself: loopback for an unspecified address. */
export function reachable(address = ''): string {
  return address === '' || address === '0.0.0.0' || address === '::' ? '127.0.0.1' : address
}
