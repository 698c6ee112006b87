// The doctor's input for a node's kubelet: its store, its kubeconfig and the CAs, as read.

/** One entry of the kubelet's folder; links are not followed. */
export interface StoreEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'special'
  readonly mode: number
  readonly uid: number
  /** The target of a link, as written. */
  readonly linkTarget?: string
  /** The content of a file, or of a link's target; absent when there is none. */
  readonly content?: Uint8Array
}

export interface KubeconfigFacts {
  readonly path: string
  readonly mode: number
  readonly content: Uint8Array
}

export interface KubeletFacts {
  readonly node: string
  /** The kubelet's --cert-dir. */
  readonly folder: string
  readonly folderMode?: number
  /** Empty when the folder does not exist. */
  readonly entries: readonly StoreEntry[]
  readonly kubeconfigPath: string
  /** Absent when there is none. */
  readonly kubeconfig?: KubeconfigFacts
  /** The CAs of the kubeconfig, inline or from the referenced file, and of the kubelet's clientCAFile. */
  readonly trustBundles: readonly { readonly path: string; readonly content: Uint8Array }[]
  /** Other readable files that the kubeconfig references. */
  readonly named: ReadonlyMap<string, Uint8Array>
  readonly hasBootstrapKubeconfig: boolean
  /** The name of the Node object; absent if unknown. */
  readonly nodeName?: string
  /** serverTLSBootstrap. */
  readonly asksForServing: boolean
  /**
   * tlsCertFile, when set: the kubelet then ignores the serving files of the folder. Without content, the file does not exist.
   */
  readonly ownServing?: { readonly path: string; readonly content?: Uint8Array }
  /** kubeadm's instance-config.yaml, if it exists: the settings for certificates that it changes, or why it cannot be read. */
  readonly instance?: {
    readonly path: string
    readonly changes: readonly string[]
    readonly fault?: string
  }
}
