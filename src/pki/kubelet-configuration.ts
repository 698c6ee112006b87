import { posix } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import { readDocumentOfKind, readDocuments } from '../kubeconfig/documents.ts'
import { entriesOf, isTrue, itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import type { Flags } from './component-flags.ts'

/**
 * The certificate settings of a kubelet's configuration file (kubelet.config.k8s.io/v1beta1). Absent: not set, so the kubelet's
 * default applies.
 */
export interface KubeletConfiguration {
  /** authentication.x509.clientCAFile: the CAs for clients of the kubelet. */
  readonly clientCaFile?: string | undefined
  /** The kubelet requests a new client certificate before the old one expires. */
  readonly rotateCertificates?: boolean | undefined
  /** The kubelet requests its serving certificate from the cluster. The request needs approval. */
  readonly serverTlsBootstrap?: boolean | undefined
  readonly tlsCertFile?: string | undefined
  readonly tlsPrivateKeyFile?: string | undefined
  /** Separated by commas, as in --tls-cipher-suites. */
  readonly tlsCipherSuites?: string | undefined
  readonly tlsMinVersion?: string | undefined
  readonly staticPodPath?: string | undefined
  /** The address that it serves on: one address of the node, or all of them; port 10250 unless set. */
  readonly address?: string | undefined
  readonly port?: number | undefined
  /** The address of its health check, without TLS: 127.0.0.1 and 10248 unless set. */
  readonly healthzBindAddress?: string | undefined
  readonly healthzPort?: number | undefined
  readonly featureGates: Readonly<Record<string, boolean>>
}

/** A configuration file in the folder of a kubelet's flag --config-dir. */
export interface DropIn {
  readonly path: string
  readonly text: string
}

/**
 * Returns the settings in a kubelet's configuration file, which it may lack, and its drop-ins, which the kubelet merges in this order. Paths
 * in the file are relative to the folder of `path`. Throws KCERT_MANIFEST_MALFORMED for any other file.
 */
export async function readKubeletConfiguration(
  text: string | undefined,
  path: string,
  dropIns: readonly DropIn[] = [],
): Promise<KubeletConfiguration> {
  const file = text === undefined ? undefined : await configurationOf(text)
  let merged = file
  for (const dropIn of dropIns) merged = mergePatch(merged, await configurationOf(dropIn.text, dropIn.path))
  return settingsIn(merged, file, path)
}

/** Returns the document with a JSON merge patch (RFC 7386), as the kubelet applies a drop-in: null deletes a key, "" and [] clear it. */
function mergePatch(document: Node | undefined, patch: Node): Node {
  if (patch.kind !== 'map') return patch
  const entries = new Map(document?.kind === 'map' ? document.entries : [])
  for (const [name, { key, value }] of patch.entries) {
    if (value.kind === 'scalar' && value.type === 'null') entries.delete(name)
    else entries.set(name, { key, value: mergePatch(entries.get(name)?.value, value) })
  }
  return { ...patch, entries }
}

/**
 * Returns the settings in kubeadm's instance-config.yaml, which has no kind. The kubelet does not read this file: kubeadm since 1.34
 * merges it into config.yaml beside it at init, join and upgrade (cmd/kubeadm/app/phases/kubelet/config.go). Throws
 * KCERT_MANIFEST_MALFORMED if it cannot be read.
 */
export async function readInstanceConfiguration(text: string, path: string): Promise<KubeletConfiguration> {
  const { documents, defects } = await readDocuments(text)
  const [defect] = defects
  if (defect === undefined) return settingsIn(documents[0], documents[0], path)
  throw new KcertError('KCERT_MANIFEST_MALFORMED', 'not a kubelet configuration', {
    why: `line ${defect.line ?? 1}: ${defect.reason}`,
  })
}

/** The settings for certificates, by their names in the file. */
const certificateSettings = {
  clientCaFile: 'authentication.x509.clientCAFile',
  rotateCertificates: 'rotateCertificates',
  serverTlsBootstrap: 'serverTLSBootstrap',
  tlsCertFile: 'tlsCertFile',
  tlsPrivateKeyFile: 'tlsPrivateKeyFile',
} as const

/** Returns the settings for certificates that differ, by their names in the file. An absent setting of `changes` changes none. */
export function changedSettings(now: KubeletConfiguration, changes: KubeletConfiguration): string[] {
  const keys = Object.keys(certificateSettings) as (keyof typeof certificateSettings)[]
  return keys
    .filter((key) => changes[key] !== undefined && changes[key] !== now[key])
    .map((key) => certificateSettings[key])
}

/** `root`: `file`, the document at `path`, after the merge of drop-ins. */
function settingsIn(root: Node | undefined, file: Node | undefined, path: string): KubeletConfiguration {
  // For the kubelet, an empty text is none.
  const text = (...at: string[]): string | undefined => textOf(valueAt(root, ...at)) || undefined
  const pathIn = (...at: string[]): string | undefined => {
    const named = text(...at)
    // The kubelet does not resolve paths of drop-ins (cmd/kubelet/app/server.go, mergeKubeletConfigurations), and systemd starts it in /.
    const folder = valueAt(root, ...at) === valueAt(file, ...at) ? posix.dirname(path) : '/'
    return named === undefined ? undefined : posix.resolve(folder, named)
  }
  const flag = (name: string): boolean | undefined => {
    const value = valueAt(root, name)
    return value?.kind === 'scalar' && value.type === 'boolean' ? isTrue(value) : undefined
  }
  const number = (name: string): number | undefined => {
    const value = text(name) ?? ''
    return /^\d+$/.test(value) ? Number(value) : undefined
  }
  return {
    clientCaFile: pathIn('authentication', 'x509', 'clientCAFile'),
    rotateCertificates: flag('rotateCertificates'),
    serverTlsBootstrap: flag('serverTLSBootstrap'),
    tlsCertFile: pathIn('tlsCertFile'),
    tlsPrivateKeyFile: pathIn('tlsPrivateKeyFile'),
    tlsCipherSuites:
      itemsOf(valueAt(root, 'tlsCipherSuites'))
        .flatMap((item) => textOf(item) ?? [])
        .join() || undefined,
    tlsMinVersion: text('tlsMinVersion'),
    staticPodPath: pathIn('staticPodPath'),
    address: text('address'),
    port: number('port') || undefined,
    healthzBindAddress: text('healthzBindAddress'),
    healthzPort: number('healthzPort'),
    featureGates: Object.fromEntries(
      entriesOf(valueAt(root, 'featureGates')).map(([name, value]) => [name, isTrue(value)]),
    ),
  }
}

/**
 * Returns the settings that apply to a kubelet with these flags: a flag takes precedence over the file (k8s.io/kubernetes
 * cmd/kubelet/app, kubeletConfigFlagPrecedence).
 */
export function withKubeletFlags<Configuration extends Partial<KubeletConfiguration>>(
  configuration: Configuration,
  flags: Flags,
): Configuration {
  const isOn = (name: string, set: boolean | undefined): boolean | undefined =>
    flags[name] === undefined ? set : goTrue.includes(flags[name])
  return {
    ...configuration,
    clientCaFile: flags['client-ca-file'] ?? configuration.clientCaFile,
    rotateCertificates: isOn('rotate-certificates', configuration.rotateCertificates),
    serverTlsBootstrap: isOn('rotate-server-certificates', configuration.serverTlsBootstrap),
    tlsCertFile: flags['tls-cert-file'] ?? configuration.tlsCertFile,
    tlsPrivateKeyFile: flags['tls-private-key-file'] ?? configuration.tlsPrivateKeyFile,
    tlsCipherSuites: flags['tls-cipher-suites'] ?? configuration.tlsCipherSuites,
    tlsMinVersion: flags['tls-min-version'] ?? configuration.tlsMinVersion,
    staticPodPath: flags['pod-manifest-path'] ?? configuration.staticPodPath,
  }
}

/** Go's strconv.ParseBool. */
const goTrue = ['1', 't', 'T', 'TRUE', 'true', 'True']

async function configurationOf(text: string, dropIn?: string): Promise<Node> {
  const root = await readDocumentOfKind(text, 'KubeletConfiguration')
  if (typeof root !== 'string') return root
  throw new KcertError('KCERT_MANIFEST_MALFORMED', 'not a KubeletConfiguration file', {
    why:
      dropIn === undefined
        ? `${root}; the kubelet's flag --config has its path (with kubeadm: /var/lib/kubelet/config.yaml)`
        : `${dropIn}: ${root}. The kubelet merges this file (--config-dir)`,
  })
}
