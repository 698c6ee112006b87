import type { FlagsOf } from '../../cli/base-command.ts'
import { booleanFlag, formatFlag, numberFlag, repeatedFlag, valueFlag, wordFlag } from '../../cli/flags.ts'
import { kubeadmRowNames } from '../../csr/kubeadm-requests.ts'
import { keyFormats, keyTypeNames } from '../../x509/new-key.ts'

/** What csr create makes. */
export const requestFormats = ['pem', 'manifest', 'cfssl', 'json', 'yaml'] as const

const preset = { helpGroup: 'PRESET' }
const controlPlane = { helpGroup: 'CONTROL PLANE' }

/** The flags of `kcert csr create`. */
export const requestFlags = {
  cn: valueFlag('NAME', 'common name'),
  org: repeatedFlag('NAME', 'organization; of a user: a group'),
  ou: repeatedFlag('NAME', 'organizational unit'),
  dns: repeatedFlag('NAME', 'DNS name'),
  ip: repeatedFlag('ADDRESS', 'IP address'),
  email: repeatedFlag('ADDRESS', 'email address'),
  uri: repeatedFlag('URI', 'URI'),
  cfssl: valueFlag('FILE', 'cfssl\'s JSON; "-" for standard input'),
  user: valueFlag('NAME', 'for a user of the cluster', preset),
  'kubelet-client': valueFlag('NODE', 'for a kubelet, as client of the API server', preset),
  'kubelet-serving': valueFlag('NODE', 'for a kubelet, as server', preset),
  service: valueFlag('NAME.NAMESPACE', 'for the servers of a Service', preset),
  kubeadm: valueFlag('ROW', `one of kubeadm's certificates: ${kubeadmRowNames.join(', ')}`),
  key: valueFlag('FILE', 'sign with this private key; "-" for standard input'),
  'key-out': valueFlag('FILE', 'make a private key, and write it here; "-" prints it'),
  'key-type': valueFlag(
    'TYPE',
    `what kind of key: ${keyTypeNames.join(', ')} (ECDSA-P256 if nothing says otherwise)`,
  ),
  'key-format': wordFlag(
    keyFormats,
    'how the key is written (kcert key generate --help); pkcs8, with --cfssl kubernetes',
  ),
  'password-file': valueFlag('FILE', 'file whose first line opens --key, or encrypts the new key'),
  out: valueFlag('FILE', 'where the request goes; "-" prints it'),
  output: formatFlag(requestFormats, 'what is made of it'),
  force: booleanFlag('replace files that are there'),
  signer: valueFlag('NAME', 'spec.signerName', { helpGroup: 'OBJECT' }),
  usage: repeatedFlag('USAGE', 'one of spec.usages; with commas for several', { helpGroup: 'OBJECT' }),
  'expiration-seconds': numberFlag('SECONDS', 'spec.expirationSeconds', { helpGroup: 'OBJECT' }),
  name: valueFlag('NAME', 'metadata.name', { helpGroup: 'OBJECT' }),
  'cluster-domain': valueFlag('DOMAIN', 'the domain of services; cluster.local if not said', controlPlane),
  'node-name': valueFlag('NAME', 'name of the node', controlPlane),
  'advertise-address': valueFlag('ADDRESS', 'address of the API server on the node', controlPlane),
  'control-plane-endpoint': valueFlag(
    'HOST',
    'name or address, with or without port, of the load balancer',
    controlPlane,
  ),
  'service-subnet': valueFlag('CIDR', 'range of services; 10.96.0.0/12 if not said', controlPlane),
  'kubernetes-version': valueFlag(
    'VERSION',
    'version of the control plane; subjects differ by version (default: kubernetesVersion of --kubeadm-config, or the newest)',
    controlPlane,
  ),
  'kubeadm-config': valueFlag('FILE', "kubeadm's configuration, of which flags are exceptions", controlPlane),
  'cert-dir': valueFlag('DIR', 'where keys and requests go (kubeadm: /etc/kubernetes/pki)', controlPlane),
  'kubeconfig-dir': valueFlag('DIR', 'where kubeconfigs go (kubeadm: /etc/kubernetes)', controlPlane),
  'ca-cert': valueFlag('FILE', "the cluster's CA, for the kubeconfigs", controlPlane),
}

/** What flags say of a request. Commands that take some of these flags say what they say. */
export type RequestFlagValues = Partial<Omit<FlagsOf<typeof requestFlags>, 'output' | 'force'>>
