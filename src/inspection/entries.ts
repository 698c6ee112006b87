import type { Kubeconfig } from '../kubeconfig/kubeconfig.ts'
import type { KubeadmRow, Usage } from '../pki/kubeadm.ts'
import type { TreePlace } from '../pki/kubeadm-tree.ts'
import type { KubeletFile } from '../pki/kubelet.ts'
import type { Certificate } from '../x509/certificate.ts'
import type { UnseenText } from '../x509/pem.ts'
import type { PublicKeyInfo } from '../x509/public-key.ts'
import type { CertificateRequest } from '../x509/request.ts'
import type { Place } from './problems.ts'
import type { CertificateStatus, Problem } from './report.ts'
import type { FileFacts } from './source.ts'

// What was collected from the sources, before it is linked, checked and reported.

/** Where things came from. */
export interface Origin {
  readonly source: string
  readonly file?: FileFacts | undefined
  readonly root?: string | undefined
  /** True for an object of a cluster: `source` says which. */
  readonly isObject?: true
  /** True for a file that was read because a kubeconfig names it; `source` is then the kubeconfig. */
  readonly isReferenced?: true
  /** Set when all sources are there: what the file is in kubeadm's or the kubelet's folder. */
  treePlace?: TreePlace | undefined
}

/** Returns what a file is in kubeadm's folders; undefined for any other. */
export function kubeadmPlaceOf({ treePlace }: Origin): Extract<TreePlace, { row: unknown }> | undefined {
  return treePlace !== undefined && 'row' in treePlace ? treePlace : undefined
}

/** Returns what a file is in the kubelet's folder; undefined for any other. */
export function kubeletPlaceOf({ treePlace }: Origin): Extract<TreePlace, { file: unknown }> | undefined {
  return treePlace !== undefined && 'file' in treePlace ? treePlace : undefined
}

/** What the certificates of a group are for, as far as their place says. */
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

/** Certificates and keys that stand together in one place, in their order. */
export interface Group extends Place {
  readonly origin: Origin
  readonly owner: Owner
  certificates: readonly CertificateEntry[]
  keys: readonly KeyEntry[]
  /** What is wrong with the first certificate where it cannot be read: none of `certificates` is the leaf then. */
  leafFault?: Problem | undefined
}

/** Returns the certificate that a server or client with these shows as its own. */
export function leafOf({ certificates, leafFault }: Group): CertificateEntry | undefined {
  return leafFault === undefined ? certificates[0] : undefined
}

export interface CertificateEntry extends Place {
  readonly certificate: Certificate
  readonly group: Group
  /** Among the certificates of the group, from 0. */
  readonly position: number
  /** Computed when first asked for, after everything was collected. */
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
    /** Ways to say who one is: "client certificate", "token", "exec". */
    readonly credentials: readonly string[]
    /** What is secret in the file besides keys. */
    readonly secret: 'token' | 'password' | undefined
  }[]
  readonly contexts: Kubeconfig['contexts']
}

/** What keeps Go, and with it Kubernetes, from reading something as PEM that kcert reads. */
export type UnseenForm = UnseenText | 'base64' | 'DER' | 'PKCS#7' | 'PKCS#12' | 'encrypted'

/** What a certificate is for, as far as its place and, for kubelets' certificates, its subject say. */
export interface Role {
  /** For the report; undefined when nothing is known. */
  readonly name: string | undefined
  /** Its row in kubeadm's table. */
  readonly row?: Exclude<KubeadmRow, { kind: 'service-account-key' }>
  /** What the place demands of it. */
  readonly usages: readonly Usage[]
  /** True where the place holds CAs that somebody trusts. */
  readonly isTrusted: boolean
  /** The kubelet will ask for its successor by itself. */
  readonly kubelet?: KubeletFile['role']
  /** It is kept but no longer, or not by anyone here, in use: a dated file of the kubelet, a copy in a request object. */
  readonly isRecord: boolean
  /** Of records only the kubelet's dated file. */
  readonly isReplaced?: true
}
