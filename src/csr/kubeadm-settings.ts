import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import { type KeyType, parseKeyType } from '../x509/new-key.ts'

/** What kubeadm's InitConfiguration and ClusterConfiguration say about certificates. */
export interface KubeadmSettings {
  readonly nodeName?: string
  readonly advertiseAddress?: string
  readonly bindPort: string
  /** HOST, HOST:PORT or an address */
  readonly controlPlaneEndpoint?: string
  /** The first of two, where a cluster has both families. */
  readonly serviceSubnet: string
  readonly dnsDomain: string
  readonly clusterName: string
  readonly apiServerCertSans: readonly string[]
  readonly etcdServerCertSans: readonly string[]
  readonly etcdPeerCertSans: readonly string[]
  readonly keyType: KeyType
}

/** kubeadm's own defaults (apis/kubeadm/v1beta4/defaults.go). */
export const kubeadmDefaults: KubeadmSettings = {
  bindPort: '6443',
  serviceSubnet: '10.96.0.0/12',
  dnsDomain: 'cluster.local',
  clusterName: 'kubernetes',
  apiServerCertSans: [],
  etcdServerCertSans: [],
  etcdPeerCertSans: [],
  keyType: { algorithm: 'RSA', bits: 2048 },
}

/**
 * Returns the settings of a kubeadm configuration file, defaults where it is silent. `source` is its name, for messages.
 * Throws KCERT_MANIFEST_MALFORMED when neither configuration is in it.
 */
export async function readKubeadmSettings(text: string, source: string): Promise<KubeadmSettings> {
  const { documents, defects } = await readDocuments(text)
  const find = (kind: string): Node | undefined =>
    documents.find((document) => textOf(valueAt(document, 'kind')) === kind)
  const [cluster, init] = [find('ClusterConfiguration'), find('InitConfiguration')]
  if (cluster === undefined && init === undefined) {
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `${source} holds no configuration of kubeadm`, {
      why: defects[0]?.reason ?? 'there is no ClusterConfiguration and no InitConfiguration in it',
      next: 'kubectl -n kube-system get cm kubeadm-config -o jsonpath={.data.ClusterConfiguration} > kubeadm.yaml',
    })
  }
  const texts = (...path: string[]): string[] =>
    itemsOf(valueAt(cluster, ...path)).map((item) => textOf(item) ?? '')
  const algorithm = textOf(valueAt(cluster, 'encryptionAlgorithm'))
  return {
    ...kubeadmDefaults,
    ...given('nodeName', valueAt(init, 'nodeRegistration', 'name')),
    ...given('advertiseAddress', valueAt(init, 'localAPIEndpoint', 'advertiseAddress')),
    ...given('bindPort', valueAt(init, 'localAPIEndpoint', 'bindPort')),
    ...given('controlPlaneEndpoint', valueAt(cluster, 'controlPlaneEndpoint')),
    ...given('serviceSubnet', valueAt(cluster, 'networking', 'serviceSubnet')),
    ...given('dnsDomain', valueAt(cluster, 'networking', 'dnsDomain')),
    ...given('clusterName', valueAt(cluster, 'clusterName')),
    apiServerCertSans: texts('apiServer', 'certSANs'),
    etcdServerCertSans: texts('etcd', 'local', 'serverCertSANs'),
    etcdPeerCertSans: texts('etcd', 'local', 'peerCertSANs'),
    ...(algorithm === undefined ? {} : { keyType: parseKeyType(algorithm) }),
  }
}

function given<Key extends keyof KubeadmSettings>(key: Key, node: Node | undefined): { [K in Key]?: string } {
  const value = textOf(node)
  return (value === undefined || value === '' ? {} : { [key]: value }) as { [K in Key]?: string }
}
