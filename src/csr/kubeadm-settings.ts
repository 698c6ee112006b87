import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { readDocuments } from '../kubeconfig/documents.ts'
import { entriesOf, itemsOf, type Node, textOf, valueAt } from '../kubeconfig/node.ts'
import { isNewerKeyType, type KubeadmVersion } from '../pki/kubeadm-organization.ts'
import { isMlDsa } from '../x509/ml-dsa.ts'
import { type KeyType, keyTypeName, kubeadmKeyTypes, parseKeyType } from '../x509/new-key.ts'

/** The settings for certificates in kubeadm's InitConfiguration and ClusterConfiguration. */
export interface KubeadmSettings {
  readonly nodeName?: string
  readonly advertiseAddress?: string
  readonly bindPort: string
  /** HOST, HOST:PORT or an address */
  readonly controlPlaneEndpoint?: string
  /** The first of two in a dual-stack cluster. */
  readonly serviceSubnet: string
  readonly dnsDomain: string
  readonly clusterName: string
  readonly apiServerCertSans: readonly string[]
  readonly etcdServerCertSans: readonly string[]
  readonly etcdPeerCertSans: readonly string[]
  readonly keyType: KeyType
  /** As written: subjects differ by version. */
  readonly kubernetesVersion?: string
  /** Notices on fields that have no effect, as in kubeadm's warnings. */
  readonly notices: readonly string[]
}

/** v1 has the same fields, on the paths that kcert reads (Kubernetes 1.37: cmd/kubeadm/app/apis/kubeadm/v1). */
const kubeadmApis = ['v1beta3', 'v1beta4', 'v1'].map((version) => `kubeadm.k8s.io/${version}`)

// The fields of v1beta3 and v1beta4 on the paths that kcert reads; it does not check below other fields.
const fields: Readonly<Record<string, string>> = {
  ClusterConfiguration:
    'apiVersion kind etcd networking kubernetesVersion controlPlaneEndpoint apiServer controllerManager scheduler dns proxy certificatesDir imageRepository featureGates clusterName encryptionAlgorithm certificateValidityPeriod caCertificateValidityPeriod',
  networking: 'serviceSubnet podSubnet dnsDomain',
  apiServer: 'extraArgs extraVolumes extraEnvs certSANs timeoutForControlPlane',
  etcd: 'local external',
  'etcd.local': 'imageRepository imageTag dataDir extraArgs extraEnvs serverCertSANs peerCertSANs',
  InitConfiguration:
    'apiVersion kind bootstrapTokens dryRun nodeRegistration localAPIEndpoint certificateKey skipPhases patches timeouts',
  nodeRegistration:
    'name criSocket taints kubeletExtraArgs ignorePreflightErrors imagePullPolicy imagePullSerial',
  localAPIEndpoint: 'advertiseAddress bindPort',
}

/** validateSupportedVersion in cmd/kubeadm/app/util/config/common.go. */
const experimental = 'is experimental: kubeadm 1.37 rejects this file; use kubeadm.k8s.io/v1beta4'

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
  notices: [],
}

/** Returns the key type of a kubeadm name. Throws KCERT_USAGE for types that kubeadm or kcert does not create. */
export function kubeadmKeyType(name: string): KeyType {
  const type = kubeadmKeyTypes.some((one) => one === name) ? parseKeyType(name) : undefined
  if (type !== undefined) return type
  if (isMlDsa(name))
    throw new KcertError('KCERT_USAGE', `kcert does not create ${name} keys`, {
      why: `kubeadm supports them since 1.38; kcert creates ${kubeadmKeyTypes.join(', ')}`,
    })
  throw new KcertError('KCERT_USAGE', `kubeadm does not support the key type "${name}"`, {
    why: `its key types are ${kubeadmKeyTypes.join(', ')}`,
  })
}

/** Throws KCERT_USAGE for a key type that kubeadm of this version refuses. */
export function refuseNewerKeyType(keyType: KeyType, version: KubeadmVersion | undefined): void {
  if (!isNewerKeyType(keyTypeName(keyType), version)) return
  const what = `kubeadm 1.${version?.minor} does not support the key type "ECDSA-P384"`
  throw new KcertError('KCERT_USAGE', what, {
    why: 'kubeadm supports it since 1.34',
    next: '--key-type ECDSA-P256',
  })
}

/**
 * Returns the settings of a kubeadm configuration file, with kubeadm's defaults. `source` is its name, for messages.
 * Throws KCERT_MANIFEST_MALFORMED when the file contains neither configuration, or has another version of kubeadm's API.
 */
export async function readKubeadmSettings(text: string, source: string): Promise<KubeadmSettings> {
  const { documents, defects } = await readDocuments(text)
  const find = (kind: string): Node | undefined =>
    documents.find((document) => textOf(valueAt(document, 'kind')) === kind)
  const [cluster, init] = [find('ClusterConfiguration'), find('InitConfiguration')]
  if (cluster === undefined && init === undefined)
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `${source} contains no kubeadm configuration`, {
      why: defects[0]?.reason ?? 'it contains neither a ClusterConfiguration nor an InitConfiguration',
      next: 'kubectl -n kube-system get cm kubeadm-config -o jsonpath={.data.ClusterConfiguration} > kubeadm.yaml',
    })
  const apis = [cluster, init].flatMap((document) => textOf(valueAt(document, 'apiVersion')) ?? [])
  const other = apis.find((api) => !kubeadmApis.includes(api))
  if (other !== undefined)
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `${source} has apiVersion ${JSON.stringify(other)}`, {
      why: `kcert reads the configuration of kubeadm in ${kubeadmApis.join(', ')}`,
      next: commandLine`kubeadm config migrate --old-config ${source} --new-config kubeadm.yaml`,
    })
  const texts = (...path: string[]): string[] =>
    itemsOf(valueAt(cluster, ...path)).map((item) => textOf(item) ?? '')
  const algorithm = textOf(valueAt(cluster, 'encryptionAlgorithm'))
  return {
    ...kubeadmDefaults,
    ...given({
      nodeName: textAt(init, 'nodeRegistration', 'name'),
      advertiseAddress: textAt(init, 'localAPIEndpoint', 'advertiseAddress'),
      bindPort: textAt(init, 'localAPIEndpoint', 'bindPort'),
      controlPlaneEndpoint: textAt(cluster, 'controlPlaneEndpoint'),
      serviceSubnet: textAt(cluster, 'networking', 'serviceSubnet'),
      dnsDomain: textAt(cluster, 'networking', 'dnsDomain'),
      clusterName: textAt(cluster, 'clusterName'),
      kubernetesVersion: textAt(cluster, 'kubernetesVersion'),
    }),
    apiServerCertSans: texts('apiServer', 'certSANs'),
    etcdServerCertSans: texts('etcd', 'local', 'serverCertSANs'),
    etcdPeerCertSans: texts('etcd', 'local', 'peerCertSANs'),
    ...(algorithm === undefined ? {} : { keyType: kubeadmKeyType(algorithm) }),
    notices: [
      ...(apis.includes('kubeadm.k8s.io/v1') ? [`kubeadm.k8s.io/v1 in "${source}" ${experimental}`] : []),
      ...[...unknownFields('ClusterConfiguration', cluster), ...unknownFields('InitConfiguration', init)].map(
        (field) => `kubeadm does not know the field ${field} in "${source}"; check its spelling`,
      ),
    ],
  }
}

function unknownFields(place: string, node: Node | undefined): string[] {
  const known = fields[place]?.split(' ') ?? []
  const path = /^[A-Z]/.test(place) ? '' : `${place}.`
  return entriesOf(node).flatMap(([name, value]) => {
    if (!known.includes(name)) return [`"${path}${name}"`]
    return fields[path + name] === undefined ? [] : unknownFields(path + name, value)
  })
}

function textAt(node: Node | undefined, ...path: string[]): string | undefined {
  return textOf(valueAt(node, ...path)) || undefined
}
