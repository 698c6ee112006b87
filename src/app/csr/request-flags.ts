import type { FlagsOf } from '../../cli/base-command.ts'
import * as Flag from '../../cli/flags.ts'
import { kubeadmRowNames } from '../../csr/kubeadm-requests.ts'
import { keyFormats, keyTypeNames } from '../../x509/new-key.ts'

/** The outputs of csr create. */
export const requestFormats = ['pem', 'manifest', 'cfssl', 'json', 'yaml'] as const

/** --key-type of a command that creates a key; `others`: the inputs that also set it. */
export const keyTypeFlag = (others: string) =>
  Flag.value('TYPE', `type of the new key: ${keyTypeNames.join(', ')} (default ECDSA-P256${others})`)

/** --key-format of a command that creates a key; `others`: the inputs with another default. */
export const keyFormatFlag = (others: string) =>
  Flag.word(
    keyFormats,
    `format of the new key (default pkcs8, or kubernetes with ${others}); see kcert key generate --help`,
  )

/** The subject and the SANs of a new request. */
export const subjectFlags = {
  cn: Flag.value('NAME', 'common name (CN) of the subject'),
  org: Flag.repeated('NAME', 'organization (O) of the subject; for a user: a group'),
  ou: Flag.repeated('NAME', 'organizational unit (OU) of the subject'),
  dns: Flag.repeated('NAME', 'DNS name (SAN)'),
  ip: Flag.repeated('ADDRESS', 'IP address (SAN)'),
  email: Flag.repeated('ADDRESS', 'email address (SAN)'),
  uri: Flag.repeated('URI', 'URI (SAN)'),
}

/** Requests whose form Kubernetes defines. */
export const presetFlags = Flag.inGroup('PRESET', {
  user: Flag.value('NAME', 'client certificate of a user'),
  'kubelet-client': Flag.value('NODE', 'client certificate of a kubelet'),
  'kubelet-serving': Flag.value('NODE', 'serving certificate of a kubelet'),
  service: Flag.value('NAME.NAMESPACE', 'serving certificate of a Service'),
})

/** The flags of `kcert csr create`. */
export const requestFlags = {
  ...subjectFlags,
  cfssl: Flag.value(
    'FILE',
    'cfssl JSON file with the subject, the SANs and the key type; "-" for standard input',
  ),
  ...presetFlags,
  kubeadm: Flag.value('NAME', `one of kubeadm's certificates, or all of them: ${kubeadmRowNames.join(', ')}`),
  key: Flag.value('FILE', 'existing private key, instead of --key-out; "-" for standard input'),
  'key-out': Flag.value('FILE', 'file for a new private key, instead of --key; "-" prints it'),
  'key-type': keyTypeFlag(', or that of --cfssl or --kubeadm-config'),
  'key-format': keyFormatFlag('--cfssl and --kubeadm'),
  'password-file': Flag.value(
    'FILE',
    'file with the password of --key, or for the new key, on its first line',
  ),
  out: Flag.value('FILE', 'file for the CSR; "-" prints it (default "-")'),
  output: Flag.format(requestFormats, 'output format'),
  force: Flag.boolean('overwrite existing files'),
  ...Flag.inGroup('OBJECT', {
    signer: Flag.value('NAME', 'spec.signerName (default that of the preset)'),
    usage: Flag.repeated(
      'USAGE',
      'spec.usages, such as "client auth"; separate several with commas (default that of the preset or the signer)',
    ),
    'expiration-seconds': Flag.number(
      'SECONDS',
      'spec.expirationSeconds, at least 600 (default none: the signer decides)',
    ),
    name: Flag.value('NAME', 'metadata.name'),
  }),
  ...Flag.inGroup('CONTROL PLANE', {
    'cluster-domain': Flag.value('DOMAIN', 'DNS domain of Services (default cluster.local)'),
    'node-name': Flag.value('NAME', 'name of the node (default that in --kubeadm-config)'),
    'advertise-address': Flag.value(
      'ADDRESS',
      'address of the API server on the node (default that in --kubeadm-config)',
    ),
    'control-plane-endpoint': Flag.value(
      'HOST',
      'DNS name or address of the load balancer, with or without port',
    ),
    'service-subnet': Flag.value('CIDR', 'IP range of Services (default 10.96.0.0/12)'),
    'kubernetes-version': Flag.value(
      'VERSION',
      'version of the control plane, which decides subjects and keys (default kubernetesVersion of --kubeadm-config, or the newest)',
    ),
    'kubeadm-config': Flag.value('FILE', "kubeadm's configuration file; flags override it"),
    'cert-dir': Flag.value(
      'DIR',
      'folder for keys and CSRs, required with --kubeadm all (kubeadm uses /etc/kubernetes/pki)',
    ),
    'kubeconfig-dir': Flag.value(
      'DIR',
      'folder for kubeconfigs, required with --kubeadm all (kubeadm uses /etc/kubernetes)',
    ),
    'ca-cert': Flag.value('FILE', "the cluster's CA certificate, for the kubeconfigs"),
  }),
}

/** The values of these flags. Commands with some of these flags give them the same meaning. */
export type RequestFlagValues = Partial<Omit<FlagsOf<typeof requestFlags>, 'output' | 'force'>>
