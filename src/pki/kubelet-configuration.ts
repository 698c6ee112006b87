import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { editYaml, type YamlEdit } from '../kubeconfig/edit-yaml.ts'
import { entriesOf, isTrue, type Node, textOf, valueAt } from '../kubeconfig/node.ts'

/** A kubelet's configuration file (kubelet.config.k8s.io/v1beta1), as far as certificates go. Absent: not set, the kubelet's default. */
export interface KubeletConfiguration {
  /** authentication.x509.clientCAFile: who may talk to the kubelet. */
  readonly clientCaFile?: string
  /** The kubelet asks for a new client certificate before the old one ends. */
  readonly rotateCertificates?: boolean
  /** The kubelet asks the cluster for its serving certificate, which somebody has to approve. */
  readonly serverTlsBootstrap?: boolean
  readonly tlsCertFile?: string
  readonly tlsPrivateKeyFile?: string
  readonly staticPodPath?: string
  /** Where it serves: an address of the node, or all of them; port 10250 unless set. */
  readonly address?: string
  readonly port?: number
  /** Where it says that it is well, without TLS: 127.0.0.1 and 10248 unless set. */
  readonly healthzBindAddress?: string
  readonly healthzPort?: number
  readonly featureGates: Readonly<Record<string, boolean>>
}

/** What changes; of what is absent nothing does. */
export interface KubeletConfigurationChanges {
  readonly clientCaFile?: string
  readonly rotateCertificates?: boolean
  readonly serverTlsBootstrap?: boolean
}

const kind = 'KubeletConfiguration'

const places = {
  clientCaFile: ['authentication', 'x509', 'clientCAFile'],
  rotateCertificates: ['rotateCertificates'],
  serverTlsBootstrap: ['serverTLSBootstrap'],
} as const

/** Returns what a kubelet's configuration file says. Throws KCERT_MANIFEST_MALFORMED when it is none. */
export async function readKubeletConfiguration(text: string): Promise<KubeletConfiguration> {
  const root = await configurationOf(text)
  const file = (...path: string[]): string | undefined => textOf(valueAt(root, ...path))
  const flag = (...path: string[]): boolean | undefined => {
    const value = valueAt(root, ...path)
    return value?.kind === 'scalar' && value.type === 'boolean' ? isTrue(value) : undefined
  }
  const number = (...path: string[]): number | undefined => {
    const text = file(...path)
    return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
  }
  return defined({
    clientCaFile: file(...places.clientCaFile),
    rotateCertificates: flag(...places.rotateCertificates),
    serverTlsBootstrap: flag(...places.serverTlsBootstrap),
    tlsCertFile: file('tlsCertFile'),
    tlsPrivateKeyFile: file('tlsPrivateKeyFile'),
    staticPodPath: file('staticPodPath'),
    address: file('address'),
    port: number('port'),
    healthzBindAddress: file('healthzBindAddress'),
    healthzPort: number('healthzPort'),
    featureGates: Object.fromEntries(
      entriesOf(valueAt(root, 'featureGates')).map(([name, value]) => [name, isTrue(value)]),
    ),
  })
}

/** Returns the file's text with these fields changed in place. Throws like readKubeletConfiguration, and KCERT_EDIT_REFUSED. */
export async function editKubeletConfiguration(
  text: string,
  changes: KubeletConfigurationChanges,
): Promise<string> {
  const now = await readKubeletConfiguration(text)
  const edits = Object.entries(places).flatMap(([name, path]): YamlEdit[] => {
    const field = name as keyof KubeletConfigurationChanges
    const value = changes[field]
    return value === undefined || value === now[field] ? [] : [{ do: 'set', path, value }]
  })
  return editYaml(text, edits)
}

async function configurationOf(text: string): Promise<Node> {
  const { documents, defects } = await readDocuments(text)
  const [root] = documents
  if (defects.length === 0 && root !== undefined && textOf(valueAt(root, 'kind')) === kind) return root
  const [defect] = defects
  throw new KcertError('KCERT_MANIFEST_MALFORMED', "a kubelet's configuration file that is none", {
    why: defect === undefined ? `its kind is not ${kind}` : `line ${defect.line ?? 1}: ${defect.reason}`,
    next: 'the flag --config of the kubelet names it; kubeadm has it in /var/lib/kubelet/config.yaml',
  })
}

type Optional<T> = { [K in keyof T]?: T[K] | undefined }

function defined(
  fields: Optional<KubeletConfiguration> & Pick<KubeletConfiguration, 'featureGates'>,
): KubeletConfiguration {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as unknown as KubeletConfiguration
}
