import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'

// kubeadm's certificates and files as data (Kubernetes 1.36: cmd/kubeadm/app/phases/certs/certlist.go, phases/kubeconfig,
// constants). Code that needs the files of a control plane reads these tables. No other file in kcert spells out these names.

export type Usage = 'serverAuth' | 'clientAuth'

/** A certificate authority of kubeadm: `<file>.crt` and `<file>.key` in the pki folder. */
export interface KubeadmCa {
  readonly kind: 'ca'
  /** As in `kubeadm certs check-expiration`. */
  readonly name: 'ca' | 'front-proxy-ca' | 'etcd-ca'
  /** Path in the pki folder, without extension. */
  readonly file: string
  readonly commonName: string
}

/** A group that only older versions of kubeadm write into a subject. A certificate with it is correct. */
export interface OlderOrganization {
  readonly organization: string
  /** The first version of each minor without it. Later minor versions do not have it either. */
  readonly droppedIn: readonly string[]
}

/** A leaf certificate of kubeadm, in a file of its own or in a kubeconfig. */
interface KubeadmCertificate {
  /** The argument for `kubeadm certs renew`, except for kubelet.conf. For a kubeconfig, also the name of its file. */
  readonly name: string
  /** Undefined if it is the node's name. */
  readonly commonName: string | undefined
  readonly organization: readonly string[]
  readonly olderOrganizations?: readonly OlderOrganization[]
  readonly usages: readonly Usage[]
}

/** A leaf certificate of kubeadm: `<file>.crt` and `<file>.key` in the pki folder. */
export interface KubeadmLeaf extends KubeadmCertificate {
  readonly kind: 'leaf'
  readonly file: string
  readonly signer: KubeadmCa['name']
  /** The static pod that must restart to use a new certificate, unless it reloads the file itself. */
  readonly usedBy: 'etcd' | 'kube-apiserver'
  /** The ClusterRoleBinding that a certificate without O needs. */
  readonly binding?: ClusterRoleBinding
}

export interface ClusterRoleBinding {
  readonly name: string
  readonly clusterRole: string
  readonly user: string
}

/** A kubeconfig that kubeadm writes into the folder above pki. */
export interface KubeadmKubeconfig extends KubeadmCertificate {
  readonly kind: 'kubeconfig'
  readonly signer: 'ca'
  /** The component that must restart after a change; undefined if people use the file. */
  readonly usedBy: string | undefined
  /** Only the first control-plane node has super-admin.conf, and only since 1.29. */
  readonly isOptional: boolean
}

export const systemMasters = 'system:masters'

const mastersBefore129: OlderOrganization = { organization: systemMasters, droppedIn: ['1.29.0'] }

export const kubeadmCas: readonly KubeadmCa[] = [
  { kind: 'ca', name: 'ca', file: 'ca', commonName: 'kubernetes' },
  { kind: 'ca', name: 'front-proxy-ca', file: 'front-proxy-ca', commonName: 'front-proxy-ca' },
  { kind: 'ca', name: 'etcd-ca', file: 'etcd/ca', commonName: 'etcd-ca' },
]

const server: readonly Usage[] = ['serverAuth']
const client: readonly Usage[] = ['clientAuth']
const both: readonly Usage[] = ['serverAuth', 'clientAuth']

type SignerAndUse = readonly [
  signer: KubeadmCa['name'],
  commonName: string | undefined,
  usages: readonly Usage[],
]

/** Returns a leaf without organization, in a file with its name. etcd's are in a separate folder. */
function leaf(
  name: string,
  [signer, commonName, usages]: SignerAndUse,
  usedBy: KubeadmLeaf['usedBy'],
  olderOrganizations?: readonly OlderOrganization[],
): KubeadmLeaf {
  const file = name.replace(/^etcd-/, 'etcd/')
  const older = olderOrganizations && { olderOrganizations }
  return { kind: 'leaf', name, file, signer, commonName, organization: [], ...older, usages, usedBy }
}

/**
 * The permissions of API servers on kubelets. `kubeadm init` and `kubeadm upgrade apply` create this binding in the versions that
 * issue apiserver-kubelet-client without O; `kubeadm join` and `kubeadm init phase certs` do not (kubeadm#3310).
 */
export const kubeletClientBinding: ClusterRoleBinding = {
  name: 'kubeadm:apiserver-kubelet-client',
  clusterRole: 'system:kubelet-api-admin',
  user: 'kube-apiserver-kubelet-client',
}

/** Returns the command that creates a binding. */
export function bindingCommand({ name, clusterRole, user }: ClusterRoleBinding): CommandLine {
  return commandLine`kubectl create clusterrolebinding ${name} --clusterrole ${clusterRole} --user ${user}`
}

/** Returns what a certificate without O needs, and the command that makes sure of it. */
export function bindingAdvice(binding: ClusterRoleBinding): string {
  const { name } = binding
  const command = commandLine`kubectl get clusterrolebinding ${name} || ${embed(bindingCommand(binding))}`
  return `without O, it needs the ClusterRoleBinding ${name}, or logs and exec fail. kubeadm creates it in init and upgrade apply; in an existing cluster, first run: ${command}`
}

export const kubeadmLeaves: readonly KubeadmLeaf[] = [
  leaf('apiserver', ['ca', 'kube-apiserver', server], 'kube-apiserver'),
  {
    ...leaf('apiserver-kubelet-client', ['ca', kubeletClientBinding.user, client], 'kube-apiserver', [
      mastersBefore129,
      // kubernetes#121837 added this one in 1.29; #138957 and its cherry-picks removed it again.
      {
        organization: 'kubeadm:cluster-admins',
        droppedIn: ['1.33.12', '1.34.8', '1.35.5', '1.36.1', '1.37.0'],
      },
    ]),
    binding: kubeletClientBinding,
  },
  leaf('front-proxy-client', ['front-proxy-ca', 'front-proxy-client', client], 'kube-apiserver'),
  leaf('etcd-server', ['etcd-ca', undefined, both], 'etcd'),
  leaf('etcd-peer', ['etcd-ca', undefined, both], 'etcd'),
  leaf('etcd-healthcheck-client', ['etcd-ca', 'kube-etcd-healthcheck-client', client], 'etcd', [
    mastersBefore129,
  ]),
  leaf('apiserver-etcd-client', ['etcd-ca', 'kube-apiserver-etcd-client', client], 'kube-apiserver', [
    mastersBefore129,
  ]),
]

/** Returns a kubeconfig with a client certificate from the cluster's CA. */
function kubeconfig(
  name: string,
  commonName: string | undefined,
  organization: readonly string[],
  usedBy: string | undefined,
): KubeadmKubeconfig {
  const isOptional = name === 'super-admin.conf'
  const older = name === 'admin.conf' && { olderOrganizations: [mastersBefore129] }
  const who = { commonName, organization, ...older }
  return { kind: 'kubeconfig', name, signer: 'ca', ...who, usages: client, usedBy, isOptional }
}

export const kubeadmKubeconfigs: readonly KubeadmKubeconfig[] = [
  kubeconfig('admin.conf', 'kubernetes-admin', ['kubeadm:cluster-admins'], undefined),
  kubeconfig('super-admin.conf', 'kubernetes-super-admin', [systemMasters], undefined),
  kubeconfig('kubelet.conf', undefined, ['system:nodes'], 'the kubelet'),
  kubeconfig('controller-manager.conf', 'system:kube-controller-manager', [], 'kube-controller-manager'),
  kubeconfig('scheduler.conf', 'system:kube-scheduler', [], 'kube-scheduler'),
]

/** The pair that signs service account tokens: `sa.key` and `sa.pub` in the pki folder. It has no certificate and never expires. */
export const serviceAccountKey = { kind: 'service-account-key', name: 'sa', file: 'sa' } as const

export type KubeadmRow = KubeadmCa | KubeadmLeaf | KubeadmKubeconfig | typeof serviceAccountKey

/** The folders that kubeadm uses. */
export const kubeadmFolders = {
  kubernetes: '/etc/kubernetes',
  pki: '/etc/kubernetes/pki',
  kubeletPki: '/var/lib/kubelet/pki',
} as const
