import type { ServiceAccountToken } from '../../x509/service-account-token.ts'

// The service account keys of a cluster, and the tokens that they signed, as read from its API servers, nodes and objects.

/** What was read, or why it could not be read. A missing answer never counts as an empty one. */
export type Reading<Value> = { readonly value: Value } | { readonly unread: string }

/** A file with keys: their IDs, in the order of the file. */
export interface KeyFile {
  readonly path: string
  readonly keyIds: Reading<readonly string[]>
}

/** An API server: its flags, the keys in its files, and the keys that it verifies tokens with. */
export interface ApiServerKeys {
  readonly node: string
  /** --service-account-issuer: the first is in new tokens. */
  readonly issuers: readonly string[]
  /** --api-audiences; by default the issuers. */
  readonly audiences: readonly string[]
  /** --service-account-jwks-uri */
  readonly jwksUri?: string
  /** --service-account-signing-endpoint: a program outside of the API server has the keys (KEP-740). */
  readonly signingEndpoint?: string
  /** --service-account-key-file, in order */
  readonly keyFiles: readonly KeyFile[]
  /** --service-account-signing-key-file */
  readonly signingKey?: KeyFile
  /** The key IDs of /openid/v1/jwks. */
  readonly served: Reading<readonly string[]>
  /** --shutdown-delay-duration, as written */
  readonly shutdownDelay?: string
}

/** A controller manager, which signs the tokens of Secrets. */
export interface ControllerManagerKey {
  readonly node: string
  /** --service-account-private-key-file */
  readonly signingKey?: KeyFile
}

/** A node that may have an API server, with its two programs; `undefined` for one that does not run there. */
export interface ControlPlaneKeys {
  readonly node: string
  readonly apiServer?: ApiServerKeys
  readonly controllerManager?: ControllerManagerKey
}

/** A token in a file of a node or in an object. */
export interface FoundToken {
  readonly kind: 'Secret' | 'ConfigMap' | 'file'
  /** "shop/web-token data[token]", or NODE:PATH */
  readonly location: string
  readonly claims: ServiceAccountToken
  /** Who writes the object, as far as it says. */
  readonly owner?: string
}

/** The tokens on a node: mounted into pods, and in files such as kubeconfigs of CNI plugins. */
export interface NodeTokens {
  readonly mounted: readonly ServiceAccountToken[]
  readonly files: readonly FoundToken[]
  /** Image credential providers for which the kubelet requests tokens of the service accounts of pods (KEP-4412). */
  readonly credentialProviders: readonly { readonly name: string; readonly audience: string }[]
}

/** A CSI driver for which kubelets request tokens of the service accounts of pods, and the longest lifetime of these tokens. */
export interface TokenDriver {
  readonly name: string
  /** "" is the audience of the API server. */
  readonly audiences: readonly string[]
  readonly lifetimeSeconds: number
}

export interface ServiceAccountKeys {
  readonly atMs: number
  readonly controlPlanes: readonly { readonly node: string; readonly keys: Reading<ControlPlaneKeys> }[]
  readonly nodes: readonly { readonly node: string; readonly tokens: Reading<NodeTokens> }[]
  readonly objects: readonly {
    readonly kind: 'Secret' | 'ConfigMap'
    readonly tokens: Reading<readonly FoundToken[]>
  }[]
  /** CSIDriver objects with tokenRequests. */
  readonly drivers: Reading<readonly TokenDriver[]>
  /** Kubeconfigs of the inventory that are on no node. */
  readonly otherKubeconfigs: readonly string[]
}

/** What only the plan needs: phases observe kubeadm's objects themselves. */
export interface PlannedKeys extends ServiceAccountKeys {
  /** True if the Secret kubeadm-certs exists: `kubeadm join --control-plane` copies sa.key from it. */
  readonly hasUploadedCerts: Reading<boolean>
}
