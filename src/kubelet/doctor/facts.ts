// What the doctor knows of a node's kubelet: its store, its kubeconfig and the CAs beside it, as they were read.

/** One name in the kubelet's folder; links are not followed. */
export interface StoreEntry {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'special'
  readonly mode: number
  readonly uid: number
  /** Of a link, as written. */
  readonly linkTarget?: string
  /** Of a file, or of what a link leads to; absent where there is nothing. */
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
  /** Empty where there is no such folder. */
  readonly entries: readonly StoreEntry[]
  readonly kubeconfigPath: string
  /** Absent where there is none. */
  readonly kubeconfig?: KubeconfigFacts
  /** Of the kubeconfig, in place or from the file that it names, and of the kubelet's clientCAFile. */
  readonly trustBundles: readonly { readonly path: string; readonly content: Uint8Array }[]
  /** Other files that the kubeconfig names, where they could be read. */
  readonly named: ReadonlyMap<string, Uint8Array>
  readonly hasBootstrapKubeconfig: boolean
  /** The name of the Node object; absent if unknown. */
  readonly nodeName?: string
  /** serverTLSBootstrap. */
  readonly asksForServing: boolean
  /** tlsCertFile, where it is set: the serving files of the folder are not used then. Without content it is not there. */
  readonly ownServing?: { readonly path: string; readonly content?: Uint8Array }
}
