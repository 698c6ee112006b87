import type { Kubeconfig } from '../kubeconfig/kubeconfig.ts'
import type { KubeadmRow, Usage } from '../pki/kubeadm.ts'
import type { TreePlace } from '../pki/kubeadm-tree.ts'
import type { KubeletFile } from '../pki/kubelet.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { UnseenText } from '../x509/pem.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { CertificateRequest } from '../x509/request.ts'
import type { ServiceAccountToken } from '../x509/service-account-token.ts'
import type { Place } from './problems.ts'
import type { CertificateStatus, Problem } from './report.ts'
import type { FileFacts } from './source.ts'

// The entries collected from the sources, before they are linked, checked and reported.

/** The source of an entry. */
export interface Origin {
  readonly source: string
  readonly file?: FileFacts | undefined
  readonly root?: string | undefined
  /** True for an object of a cluster, which `source` identifies. */
  readonly isObject?: true
  /** True for a file that was read because a kubeconfig refers to it. `source` is then the kubeconfig. */
  readonly isReferenced?: true
  /** Set when all sources have been read: the role of the file in kubeadm's or the kubelet's folder. */
  treePlace?: TreePlace | undefined
}

/** Returns the role of a file in kubeadm's folders; undefined for any other file. */
export function kubeadmPlaceOf({ treePlace }: Origin): Extract<TreePlace, { row: unknown }> | undefined {
  return treePlace !== undefined && 'row' in treePlace ? treePlace : undefined
}

/** Returns the role of a file in the kubelet's folder; undefined for any other file. */
export function kubeletPlaceOf({ treePlace }: Origin): Extract<TreePlace, { file: unknown }> | undefined {
  return treePlace !== undefined && 'file' in treePlace ? treePlace : undefined
}

/** The purpose of a group's certificates, as far as its place shows it. */
export type Owner =
  | { readonly kind: 'file' }
  | { readonly kind: 'served' }
  | { readonly kind: 'cluster'; readonly kubeconfig: KubeconfigEntry; readonly name: string }
  | { readonly kind: 'user'; readonly kubeconfig: KubeconfigEntry; readonly name: string }
  /** A value of a Secret or ConfigMap. */
  | { readonly kind: 'value'; readonly object: ObjectEntry; readonly key: string }
  | { readonly kind: 'ca-bundle'; readonly of: string }
  | {
      readonly kind: 'issued'
      readonly request: RequestEntry | undefined
      readonly signerName: string | undefined
    }

/** Certificates and keys in one place, in order. */
export interface Group extends Place {
  readonly origin: Origin
  readonly owner: Owner
  certificates: readonly CertificateEntry[]
  keys: readonly KeyEntry[]
  /** The problem of the first certificate if it cannot be read. Then none of `certificates` is the leaf. */
  leafFault?: Problem | undefined
}

/** Returns the certificate that a server or client with this group presents as its own. */
export function leafOf({ certificates, leafFault }: Group): CertificateEntry | undefined {
  return leafFault === undefined ? certificates[0] : undefined
}

export interface CertificateEntry extends Place {
  readonly certificate: Certificate
  readonly group: Group
  /** Position among the certificates of the group, from 0. */
  readonly position: number
  /** Computed on first use, after everything was collected. */
  role: Role | undefined
  status: CertificateStatus | undefined
}

export interface KeyEntry extends Place {
  readonly group: Group
  readonly kind: 'private' | 'public'
  readonly format: string
  readonly encrypted: boolean
  /** Undefined while the key is encrypted. */
  readonly publicKey: PublicKeyInfo | undefined
}

/** A service account token: what it says, without the token. */
export interface TokenEntry extends Place {
  readonly claims: ServiceAccountToken
}

export interface RequestEntry extends Place {
  readonly request: CertificateRequest
  readonly signerName?: string | undefined
  readonly usages?: readonly string[]
  readonly username?: string | undefined
  readonly condition?: string
}

/** A Kubernetes object with values: Secret or ConfigMap. */
export interface ObjectEntry extends Place {
  readonly origin: Origin
  readonly kind: 'Secret' | 'ConfigMap'
  readonly namespace: string | undefined
  readonly name: string
  readonly type: string | undefined
  readonly groups: Group[]
}

export interface KubeconfigEntry extends Place {
  readonly origin: Origin
  readonly currentContext: string | undefined
  readonly clusters: (Omit<Kubeconfig['clusters'][number], 'certificateAuthority'> & {
    readonly group: Group | undefined
  })[]
  readonly users: {
    readonly name: string
    readonly group: Group | undefined
    /** Authentication methods: "client certificate", "token", "exec". */
    readonly credentials: readonly string[]
    /** The secret in the file other than keys. */
    readonly secret: 'token' | 'password' | undefined
  }[]
  readonly contexts: Kubeconfig['contexts']
}

/** Why Go, and therefore Kubernetes, does not read something as PEM that kcert reads. */
export type UnseenForm = UnseenText | 'base64' | 'DER' | 'PKCS#7' | 'PKCS#12' | 'encrypted'

/** The purpose of a certificate, as far as its place and, for kubelets' certificates, its subject show it. */
export interface Role {
  /** For the report; undefined when unknown. */
  readonly name: string | undefined
  /** Its row in kubeadm's table. */
  readonly row?: Exclude<KubeadmRow, { kind: 'service-account-key' }>
  /** The usages that the place requires. */
  readonly usages: readonly Usage[]
  /** True if the place contains trusted CAs. */
  readonly isTrusted: boolean
  /** The kubelet will request the successor itself. */
  readonly kubelet?: KubeletFile['role']
  /** The certificate is kept, but not or no longer used here: a dated file of the kubelet, a copy in a request object. */
  readonly isRecord: boolean
  /** Among records, only set for the kubelet's dated files. */
  readonly isReplaced?: true
}
