/** What is known of a file besides its bytes; absent for standard input and for a served chain. */
export interface FileFacts {
  /** Absolute path, symbolic links not followed. */
  readonly path: string
  /** Permission bits of the file that the path leads to, e.g. 0o600. */
  readonly mode: number
  /** Where the path itself points, when it is a symbolic link. */
  readonly linkTarget?: string
}

/** One thing to inspect: a file, standard input, or the chain that a server presented (as PEM). */
export interface Source {
  /** As the operator would name it: a path, "-", or host:port. Every line of the report about it begins so. */
  readonly name: string
  readonly bytes: Uint8Array
  readonly file?: FileFacts
  /** Absolute path of the folder that was walked to get here: roles of kubeadm's table are found below it. */
  readonly root?: string
}

/** A name that could not be read, and why; it becomes a problem in the report, never an exception. */
export interface UnreadableSource {
  readonly name: string
  readonly reason:
    | 'not-found'
    | 'permission'
    | 'dangling-link'
    | 'too-large'
    | 'not-a-file'
    | 'io'
    | 'seen-before'
  /** In words, for the report: the system's message, or where a link points. */
  readonly detail: string
  /** True for a folder: no one knows what is in it. */
  readonly isFolder?: true
  readonly file?: Pick<FileFacts, 'path' | 'linkTarget'>
  readonly root?: string
}

/**
 * Reads a file that a kubeconfig refers to. Implemented by system/files.ts.
 * Never throws: what cannot be read comes back as UnreadableSource.
 */
export type ReadReferencedFile = (path: string) => Source | UnreadableSource
