import { KcertError } from '../errors/kcert-error.ts'
import { readDocumentOfKind } from '../kubeconfig/documents.ts'
import { entriesOf, isTrue, type Node, textOf, valueAt } from '../kubeconfig/node.ts'

/** A kubelet's configuration file (kubelet.config.k8s.io/v1beta1), as far as certificates go. Absent: not set, the kubelet's default. */
export interface KubeletConfiguration {
  /** authentication.x509.clientCAFile: who may talk to the kubelet. */
  readonly clientCaFile?: string | undefined
  /** The kubelet asks for a new client certificate before the old one ends. */
  readonly rotateCertificates?: boolean | undefined
  /** The kubelet asks the cluster for its serving certificate, which somebody has to approve. */
  readonly serverTlsBootstrap?: boolean | undefined
  readonly tlsCertFile?: string | undefined
  readonly tlsPrivateKeyFile?: string | undefined
  readonly staticPodPath?: string | undefined
  /** Where it serves: an address of the node, or all of them; port 10250 unless set. */
  readonly address?: string | undefined
  readonly port?: number | undefined
  /** Where it says that it is well, without TLS: 127.0.0.1 and 10248 unless set. */
  readonly healthzBindAddress?: string | undefined
  readonly healthzPort?: number | undefined
  readonly featureGates: Readonly<Record<string, boolean>>
}

/** Returns what a kubelet's configuration file says. Throws KCERT_MANIFEST_MALFORMED when it is none. */
export async function readKubeletConfiguration(text: string): Promise<KubeletConfiguration> {
  const root = await configurationOf(text)
  const file = (...path: string[]): string | undefined => textOf(valueAt(root, ...path))
  const flag = (name: string): boolean | undefined => {
    const value = valueAt(root, name)
    return value?.kind === 'scalar' && value.type === 'boolean' ? isTrue(value) : undefined
  }
  const number = (name: string): number | undefined => {
    const text = file(name)
    return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined
  }
  return {
    clientCaFile: file('authentication', 'x509', 'clientCAFile'),
    rotateCertificates: flag('rotateCertificates'),
    serverTlsBootstrap: flag('serverTLSBootstrap'),
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
  }
}

async function configurationOf(text: string): Promise<Node> {
  const root = await readDocumentOfKind(text, 'KubeletConfiguration')
  if (typeof root !== 'string') return root
  throw new KcertError('KCERT_MANIFEST_MALFORMED', 'not a KubeletConfiguration file', {
    why: `${root}; the kubelet's flag --config has its path (with kubeadm: /var/lib/kubelet/config.yaml)`,
  })
}
