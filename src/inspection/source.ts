/** The metadata of a file; absent for standard input and for a served chain. */
export interface FileFacts {
  /** Absolute path. Symbolic links are not followed. */
  readonly path: string
  /** Permission bits of the path's target, for example 0o600. */
  readonly mode: number
  /** The target of the path itself, when it is a symbolic link. */
  readonly linkTarget?: string
}

/** One thing to inspect: a file, standard input, or the chain that a server presented (as PEM). */
export interface Source {
  /** The name that an operator would use: a path, "-", or host:port. Every line of its report begins with it. */
  readonly name: string
  readonly bytes: Uint8Array
  readonly file?: FileFacts
  /** Absolute path of the walked folder that contains it. Roles of kubeadm's table are recognized below it. */
  readonly root?: string
}

/** A name that could not be read, and the reason. It becomes a problem in the report, never an exception. */
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
  /** Text for the report: the system's message, or the target of a link. */
  readonly detail: string
  /** True for a folder, whose content is unknown. */
  readonly isFolder?: true
  readonly file?: Pick<FileFacts, 'path' | 'linkTarget'>
  readonly root?: string
}

/**
 * Reads a file that a kubeconfig refers to. Implemented by system/files.ts. Never throws: an unreadable file is returned as
 * UnreadableSource.
 */
export type ReadReferencedFile = (path: string) => Source | UnreadableSource
