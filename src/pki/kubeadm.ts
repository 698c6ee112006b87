// kubeadm's certificates and files as data (Kubernetes 1.36: cmd/kubeadm/app/phases/certs/certlist.go, phases/kubeconfig,
// constants). Whoever needs to know what a control plane has reads these tables; nothing else in kcert spells these names.

export type Usage = 'serverAuth' | 'clientAuth'

/** A certificate authority of kubeadm: `<file>.crt` and `<file>.key` in the pki folder. */
export interface KubeadmCa {
  readonly kind: 'ca'
  /** As `kubeadm certs check-expiration` names it. */
  readonly name: 'ca' | 'front-proxy-ca' | 'etcd-ca'
  /** Path in the pki folder, without extension. */
  readonly file: string
  readonly commonName: string
}

/** The one group that older versions of kubeadm write into a subject; a certificate with it is as it should be. */
export interface OlderOrganization {
  readonly organization: string
  /** The first version of each minor without it; later minors are without it too. */
  readonly droppedIn: readonly string[]
}

/** A leaf certificate of kubeadm: `<file>.crt` and `<file>.key` in the pki folder. */
export interface KubeadmLeaf {
  readonly kind: 'leaf'
  /** As `kubeadm certs renew` takes it. */
  readonly name: string
  readonly file: string
  readonly signer: KubeadmCa['name']
  /** Undefined where it is the node's name. */
  readonly commonName: string | undefined
  readonly organization: readonly string[]
  readonly olderOrganizations?: readonly OlderOrganization[]
  readonly usages: readonly Usage[]
  /** The static pod that must start anew to take a new one, where it does not read the file again by itself. */
  readonly usedBy: string
}

/** A kubeconfig that kubeadm writes into the folder above pki. */
export interface KubeadmKubeconfig {
  readonly kind: 'kubeconfig'
  /** The file's name; except for kubelet.conf also what `kubeadm certs renew` takes. */
  readonly name: string
  readonly signer: 'ca'
  /** Undefined where it holds the node's name. */
  readonly commonName: string | undefined
  readonly organization: readonly string[]
  readonly olderOrganizations?: readonly OlderOrganization[]
  readonly usages: readonly Usage[]
  /** What must start anew after a change; undefined where people use it. */
  readonly usedBy: string | undefined
  /** Only the first control-plane node has super-admin.conf, and none before 1.29. */
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

export const kubeadmLeaves: readonly KubeadmLeaf[] = [
  {
    kind: 'leaf',
    name: 'apiserver',
    file: 'apiserver',
    signer: 'ca',
    commonName: 'kube-apiserver',
    organization: [],
    usages: server,
    usedBy: 'kube-apiserver',
  },
  {
    kind: 'leaf',
    name: 'apiserver-kubelet-client',
    file: 'apiserver-kubelet-client',
    signer: 'ca',
    commonName: 'kube-apiserver-kubelet-client',
    organization: [],
    // kubernetes#121837 put the second one in, in 1.29; #138957 and its picks took it out again.
    olderOrganizations: [
      mastersBefore129,
      {
        organization: 'kubeadm:cluster-admins',
        droppedIn: ['1.33.12', '1.34.8', '1.35.5', '1.36.1', '1.37.0'],
      },
    ],
    usages: client,
    usedBy: 'kube-apiserver',
  },
  {
    kind: 'leaf',
    name: 'front-proxy-client',
    file: 'front-proxy-client',
    signer: 'front-proxy-ca',
    commonName: 'front-proxy-client',
    organization: [],
    usages: client,
    usedBy: 'kube-apiserver',
  },
  {
    kind: 'leaf',
    name: 'etcd-server',
    file: 'etcd/server',
    signer: 'etcd-ca',
    commonName: undefined,
    organization: [],
    usages: both,
    usedBy: 'etcd',
  },
  {
    kind: 'leaf',
    name: 'etcd-peer',
    file: 'etcd/peer',
    signer: 'etcd-ca',
    commonName: undefined,
    organization: [],
    usages: both,
    usedBy: 'etcd',
  },
  {
    kind: 'leaf',
    name: 'etcd-healthcheck-client',
    file: 'etcd/healthcheck-client',
    signer: 'etcd-ca',
    commonName: 'kube-etcd-healthcheck-client',
    organization: [],
    olderOrganizations: [mastersBefore129],
    usages: client,
    usedBy: 'etcd',
  },
  {
    kind: 'leaf',
    name: 'apiserver-etcd-client',
    file: 'apiserver-etcd-client',
    signer: 'etcd-ca',
    commonName: 'kube-apiserver-etcd-client',
    organization: [],
    olderOrganizations: [mastersBefore129],
    usages: client,
    usedBy: 'kube-apiserver',
  },
]

export const kubeadmKubeconfigs: readonly KubeadmKubeconfig[] = [
  {
    kind: 'kubeconfig',
    name: 'admin.conf',
    signer: 'ca',
    commonName: 'kubernetes-admin',
    organization: ['kubeadm:cluster-admins'],
    olderOrganizations: [mastersBefore129],
    usages: client,
    usedBy: undefined,
    isOptional: false,
  },
  {
    kind: 'kubeconfig',
    name: 'super-admin.conf',
    signer: 'ca',
    commonName: 'kubernetes-super-admin',
    organization: [systemMasters],
    usages: client,
    usedBy: undefined,
    isOptional: true,
  },
  {
    kind: 'kubeconfig',
    name: 'kubelet.conf',
    signer: 'ca',
    commonName: undefined,
    organization: ['system:nodes'],
    usages: client,
    usedBy: 'the kubelet',
    isOptional: false,
  },
  {
    kind: 'kubeconfig',
    name: 'controller-manager.conf',
    signer: 'ca',
    commonName: 'system:kube-controller-manager',
    organization: [],
    usages: client,
    usedBy: 'kube-controller-manager',
    isOptional: false,
  },
  {
    kind: 'kubeconfig',
    name: 'scheduler.conf',
    signer: 'ca',
    commonName: 'system:kube-scheduler',
    organization: [],
    usages: client,
    usedBy: 'kube-scheduler',
    isOptional: false,
  },
]

/** The pair that signs service account tokens: `sa.key` and `sa.pub` in the pki folder. It has no certificate and never expires. */
export const serviceAccountKey = { kind: 'service-account-key', name: 'sa', file: 'sa' } as const

export type KubeadmRow = KubeadmCa | KubeadmLeaf | KubeadmKubeconfig | typeof serviceAccountKey

/** Where kubeadm puts things. */
export const kubeadmFolders = {
  kubernetes: '/etc/kubernetes',
  pki: '/etc/kubernetes/pki',
  kubeletPki: '/var/lib/kubelet/pki',
} as const
