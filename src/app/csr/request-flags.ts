import type { FlagsOf } from '../../cli/base-command.ts'
import {
  booleanFlag,
  formatFlag,
  inGroup,
  numberFlag,
  repeatedFlag,
  valueFlag,
  wordFlag,
} from '../../cli/flags.ts'
import { kubeadmRowNames } from '../../csr/kubeadm-requests.ts'
import { keyFormats, keyTypeNames } from '../../x509/new-key.ts'

/** What csr create makes. */
export const requestFormats = ['pem', 'manifest', 'cfssl', 'json', 'yaml'] as const

/** --key-type of a command that creates a key; `others`: the inputs that also set it. */
export const keyTypeFlag = (others: string) =>
  valueFlag('TYPE', `type of the new key: ${keyTypeNames.join(', ')} (default ECDSA-P256${others})`)

/** --key-format of a command that creates a key; `others`: the inputs with another default. */
export const keyFormatFlag = (others: string) =>
  wordFlag(
    keyFormats,
    `format of the new key (default pkcs8, or kubernetes with ${others}); see kcert key generate --help`,
  )

/** The flags of `kcert csr create`. */
export const requestFlags = {
  cn: valueFlag('NAME', 'common name (CN) of the subject'),
  org: repeatedFlag('NAME', 'organization (O) of the subject; for a user: a group'),
  ou: repeatedFlag('NAME', 'organizational unit (OU) of the subject'),
  dns: repeatedFlag('NAME', 'DNS name (SAN)'),
  ip: repeatedFlag('ADDRESS', 'IP address (SAN)'),
  email: repeatedFlag('ADDRESS', 'email address (SAN)'),
  uri: repeatedFlag('URI', 'URI (SAN)'),
  cfssl: valueFlag(
    'FILE',
    'cfssl JSON file with the subject, the SANs and the key type; "-" for standard input',
  ),
  ...inGroup('PRESET', {
    user: valueFlag('NAME', 'client certificate of a user'),
    'kubelet-client': valueFlag('NODE', 'client certificate of a kubelet'),
    'kubelet-serving': valueFlag('NODE', 'serving certificate of a kubelet'),
    service: valueFlag('NAME.NAMESPACE', 'serving certificate of a Service'),
  }),
  kubeadm: valueFlag('ROW', `one of kubeadm's certificates, or all: ${kubeadmRowNames.join(', ')}`),
  key: valueFlag('FILE', 'existing private key, instead of --key-out; "-" for standard input'),
  'key-out': valueFlag(
    'FILE',
    'create a private key and write it to this file, instead of --key; "-" prints it',
  ),
  'key-type': keyTypeFlag(', or that of --cfssl or --kubeadm-config'),
  'key-format': keyFormatFlag('--cfssl and --kubeadm'),
  'password-file': valueFlag(
    'FILE',
    'file with the password of --key, or for the new key, on its first line',
  ),
  out: valueFlag('FILE', 'file for the CSR; "-" prints it (default "-")'),
  output: formatFlag(requestFormats, 'output format'),
  force: booleanFlag('overwrite existing files'),
  ...inGroup('OBJECT', {
    signer: valueFlag('NAME', 'spec.signerName (default that of the preset)'),
    usage: repeatedFlag(
      'USAGE',
      'spec.usages, such as "client auth"; separate several with commas (default that of the preset or the signer)',
    ),
    'expiration-seconds': numberFlag(
      'SECONDS',
      'spec.expirationSeconds, at least 600 (default none: the signer decides)',
    ),
    name: valueFlag('NAME', 'metadata.name'),
  }),
  ...inGroup('CONTROL PLANE', {
    'cluster-domain': valueFlag('DOMAIN', 'DNS domain of Services (default cluster.local)'),
    'node-name': valueFlag('NAME', 'name of the node (default that in --kubeadm-config)'),
    'advertise-address': valueFlag(
      'ADDRESS',
      'address of the API server on the node (default that in --kubeadm-config)',
    ),
    'control-plane-endpoint': valueFlag(
      'HOST',
      'DNS name or address of the load balancer, with or without port',
    ),
    'service-subnet': valueFlag('CIDR', 'IP range of Services (default 10.96.0.0/12)'),
    'kubernetes-version': valueFlag(
      'VERSION',
      'version of the control plane, which decides subjects and keys (default kubernetesVersion of --kubeadm-config, or the newest)',
    ),
    'kubeadm-config': valueFlag('FILE', "kubeadm's configuration file; flags override it"),
    'cert-dir': valueFlag(
      'DIR',
      'folder for keys and CSRs, required with --kubeadm all (kubeadm uses /etc/kubernetes/pki)',
    ),
    'kubeconfig-dir': valueFlag(
      'DIR',
      'folder for kubeconfigs, required with --kubeadm all (kubeadm uses /etc/kubernetes)',
    ),
    'ca-cert': valueFlag('FILE', "the cluster's CA certificate, for the kubeconfigs"),
  }),
}

/** What flags say of a request. Commands that take some of these flags say what they say. */
export type RequestFlagValues = Partial<Omit<FlagsOf<typeof requestFlags>, 'output' | 'force'>>
