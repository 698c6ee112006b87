import * as Flags from '@oclif/core/flags'
import { kubeadmRowNames } from '../csr/kubeadm-requests.ts'
import { keyFormats, keyTypeNames } from '../x509/new-key.ts'
import { requestFormats } from './request-outputs.ts'

function many(description: string, helpValue: string) {
  return Flags.string({
    description,
    helpValue,
    multiple: true,
    multipleNonGreedy: true,
  })
}

function preset(description: string, helpValue: string) {
  return Flags.string({
    description: `for ${description}`,
    helpValue,
    helpGroup: 'PRESET',
  })
}

function controlPlane(description: string, helpValue: string) {
  return Flags.string({ description, helpValue, helpGroup: 'CONTROL PLANE' })
}

/** The flags of `kcert csr create`. */
export const requestFlags = {
  cn: Flags.string({ description: 'common name', helpValue: 'NAME' }),
  org: many('organization; of a user: a group', 'NAME'),
  ou: many('organizational unit', 'NAME'),
  dns: many('DNS name', 'NAME'),
  ip: many('IP address', 'ADDRESS'),
  email: many('email address', 'ADDRESS'),
  uri: many('URI', 'URI'),
  cfssl: Flags.string({
    description: 'cfssl\'s JSON; "-" for standard input',
    helpValue: 'FILE',
  }),
  user: preset('a user of the cluster', 'NAME'),
  'kubelet-client': preset('a kubelet, as client of the API server', 'NODE'),
  'kubelet-serving': preset('a kubelet, as server', 'NODE'),
  service: preset('the servers of a Service', 'NAME.NAMESPACE'),
  kubeadm: Flags.string({
    description: `one of kubeadm's certificates: ${kubeadmRowNames.join(', ')}`,
    helpValue: 'ROW',
  }),
  key: Flags.string({
    description: 'sign with this private key; "-" for standard input',
    helpValue: 'FILE',
  }),
  'key-out': Flags.string({
    description: 'make a private key, and write it here; "-" prints it',
    helpValue: 'FILE',
  }),
  'key-type': Flags.string({
    description: `what kind of key: ${keyTypeNames.join(', ')} (ECDSA-P256 if nothing says otherwise)`,
    helpValue: 'TYPE',
  }),
  'key-format': Flags.option({ options: keyFormats })({
    description: 'how the key is written (kcert key generate --help); pkcs8, with --cfssl kubernetes',
  }),
  'password-file': Flags.string({
    description: 'file whose first line opens --key, or encrypts the new key',
    helpValue: 'FILE',
  }),
  out: Flags.string({ description: 'where the request goes; "-" prints it', helpValue: 'FILE' }),
  output: Flags.option({ char: 'o', options: requestFormats, default: 'pem' as const })({
    description: 'what is made of it',
  }),
  force: Flags.boolean({ description: 'replace files that are there' }),
  signer: Flags.string({ description: 'spec.signerName', helpValue: 'NAME', helpGroup: 'OBJECT' }),
  usage: Flags.string({
    description: 'one of spec.usages; with commas for several',
    helpValue: 'USAGE',
    multiple: true,
    multipleNonGreedy: true,
    helpGroup: 'OBJECT',
  }),
  'expiration-seconds': Flags.integer({
    description: 'spec.expirationSeconds',
    helpValue: 'SECONDS',
    helpGroup: 'OBJECT',
  }),
  name: Flags.string({ description: 'metadata.name', helpValue: 'NAME', helpGroup: 'OBJECT' }),
  'cluster-domain': controlPlane('the domain of services; cluster.local if not said', 'DOMAIN'),
  'node-name': controlPlane('name of the node', 'NAME'),
  'advertise-address': controlPlane('address of the API server on the node', 'ADDRESS'),
  'control-plane-endpoint': controlPlane(
    'name or address, with or without port, of the load balancer',
    'HOST',
  ),
  'service-subnet': controlPlane('range of services; 10.96.0.0/12 if not said', 'CIDR'),
  'kubernetes-version': controlPlane(
    'version of the control plane; subjects differ by version (default: kubernetesVersion of --kubeadm-config, or the newest)',
    'VERSION',
  ),
  'kubeadm-config': controlPlane("kubeadm's configuration, of which flags are exceptions", 'FILE'),
  'cert-dir': controlPlane('where keys and requests go (kubeadm: /etc/kubernetes/pki)', 'DIR'),
  'kubeconfig-dir': controlPlane('where kubeconfigs go (kubeadm: /etc/kubernetes)', 'DIR'),
  'ca-cert': controlPlane("the cluster's CA, for the kubeconfigs", 'FILE'),
}
