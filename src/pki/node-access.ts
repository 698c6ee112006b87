// The port to a node: reads and replaces its files, restarts its components and lists its processes. src/node contains the
// adapters (local, ssh, command). The code that makes decisions (rotation, renewal, kubelet diagnosis) uses only these types.

/** SHA-256 of a file's content, in lower-case hexadecimal. */
export type Sha256 = string

/** The time limit and the cancellation of a call. When the call ends, the processes that it started on the node end too. */
export interface NodeCall {
  /** 30 s unless given. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

interface FileName {
  /** As requested. */
  readonly path: string
  /** The target as written, when the path itself is a symbolic link. */
  readonly linkTarget?: string
  /** The time when that link was created. */
  readonly linkedAt?: Date
}

/** Mode and owner of the target of a path, following links. */
export interface FileAttributes {
  /** Permission bits with setuid, setgid and sticky: 0o600. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly sizeBytes: number
  /** In milliseconds if the node's stat supports it, otherwise in seconds. */
  readonly modifiedAt: Date
}

/** A path that does not exist, or a link without a target. */
export interface AbsentFile extends FileName {
  readonly found: 'absent'
}

/** A file that exists and could not be read: no permission, or larger than the limit. */
export interface UnreadableFile extends FileName {
  readonly found: 'unreadable'
  /** A fragment. */
  readonly reason: string
}

export interface OtherFile extends FileName, FileAttributes {
  readonly found: 'folder' | 'special'
}

/** A regular file's attributes, and its digest if requested. */
export interface StatedFile extends FileName, FileAttributes {
  readonly found: 'file'
  readonly sha256?: Sha256
}

/** A regular file with its content. Content, digest and attributes belong to the same file, even while it is being replaced. */
export interface ReadFile extends FileName, FileAttributes {
  readonly found: 'file'
  readonly sha256: Sha256
  readonly content: Uint8Array
}

export type FileContent = ReadFile | OtherFile | AbsentFile | UnreadableFile
export type FileFacts = StatedFile | OtherFile | AbsentFile | UnreadableFile

/** One name in a folder. Links are not followed. */
export interface FolderEntry extends FileAttributes {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'special'
  readonly linkTarget?: string
}

export type FolderListing =
  | { readonly found: 'folder'; readonly path: string; readonly entries: readonly FolderEntry[] }
  | { readonly found: 'absent' | 'not-a-folder' | 'unreadable'; readonly path: string }

/** The state that a change requires. `anything` includes a missing file. */
export type Expected = { readonly sha256: Sha256 } | { readonly linkTarget: string } | 'absent' | 'anything'

export interface WriteOptions extends NodeCall {
  readonly replaces: Expected
  /** Mode of the new file. Default: the mode of the file that it replaces, otherwise 0600. */
  readonly mode?: number
  /** Owner of the new file. Default: the owner of the file that it replaces, otherwise the shell's user. */
  readonly owner?: { readonly uid: number; readonly gid: number }
}

/**
 * The private key of a certificate. It keeps mode and owner of its file; a new file gets mode 0600. It is renamed directly before
 * the certificate, in less than a millisecond when both are in one folder, because Go programs read the pair at each new connection.
 */
interface KeyFile {
  readonly path: string
  readonly replaces: Expected
}

export interface KeyOf extends KeyFile {
  readonly content: string
}

/** A key with the content of another file on the node. */
export interface CopiedKey extends KeyFile {
  readonly from: string
  readonly sha256: Sha256
}

export interface Written {
  /** The path that was replaced: the target of a link, not the link. */
  readonly path: string
  readonly sha256: Sha256
  /** False when content, mode and owner were already correct: nothing was written. */
  readonly changed: boolean
  readonly before: Sha256 | 'absent'
}

export interface RunOptions extends NodeCall {
  readonly stdin?: Uint8Array | string
}

export interface RunResult {
  /** 127 when the program does not exist, 128 + the number of the signal that ended it. */
  readonly status: number
  readonly stdout: Uint8Array
  readonly stderr: string
}

/** The state of a systemd unit. */
export interface UnitFacts {
  readonly name: string
  /** "loaded", "not-found", "masked" */
  readonly loadState: string
  readonly fragmentPath?: string
  readonly dropInPaths: readonly string[]
}

/** The programs that kcert looks for among a node's processes. */
export type ComponentName =
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kube-scheduler'
  | 'cloud-controller-manager'
  | 'kube-proxy'
  | 'kubelet'
  | 'etcd'

export interface ProcessFacts {
  readonly program: ComponentName
  readonly pid: number
  /** Clock ticks from boot to start. Together with the pid this identifies one process, even if the clock changes. */
  readonly startTicks: number
  /** By the node's clock: in steps of 10 ms if its date supports fractions, otherwise in seconds. */
  readonly startedAt: Date
  /** As in /proc: program and arguments. */
  readonly argv: readonly string[]
}

/** A process of a pod, and facts about its program. */
export interface PodProcess {
  readonly podUid: string
  /** ID of its container; absent if its control group does not contain one. */
  readonly container?: string
  /** True for the first process of the container. */
  readonly isFirst: boolean
  readonly ageMs: number
  /**
   * Lines about client-go in Go's build info, each with the following line; absent if the program could not be searched in time.
   */
  readonly build?: readonly string[]
  /** The sources of feature gates: environment, flags and --config; absent if one of them cannot be read. */
  readonly settings?: readonly string[]
}

export interface ClockReading {
  /** The time by the node's clock. */
  readonly at: Date
  /** The node's clock minus kcert's clock: between `atLeast` and `atMost`. */
  readonly aheadMs: { readonly atLeast: number; readonly atMost: number }
  readonly roundTripMs: number
}

export interface FreeSpace {
  readonly path: string
  readonly availableBytes: number
  readonly totalBytes: number
}

/** The user of kcert on the node, and its missing permissions. */
export interface NodeIdentity {
  readonly hostname: string
  /** Changes with each boot. */
  readonly bootId: string
  readonly uid: number
  readonly isRoot: boolean
  /** True when `become: sudo` would give root without a password; absent when the user is already root. */
  readonly maySudo?: boolean
}

/**
 * A node that can be read and written. Paths are absolute. Throws KcertError: KCERT_NODE_UNREACHABLE when it cannot be reached or
 * does not answer in time, KCERT_NODE_UNTRUSTED for its host key, KCERT_NODE_REFUSED when the login or sudo is refused,
 * KCERT_NODE_UNFIT when a tool is missing, KCERT_NODE_FILE_CHANGED when a file is not in the expected state,
 * KCERT_NODE_FILE_NOT_WRITTEN when the node could not write. After any of them a file has its old content or its new one.
 */
export interface NodeAccess {
  /** The name in the inventory. */
  readonly name: string
  identity(call?: NodeCall): Promise<NodeIdentity>
  /** Runs a program, not a shell line. A status other than 0 is a result, not an error. */
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>
  /** Reads all files in one round trip, in the given order. Files above `largestBytes` (1 MiB) are unreadable. */
  readFiles(
    paths: readonly string[],
    call?: NodeCall & { readonly largestBytes?: number },
  ): Promise<FileContent[]>
  /** Like readFiles, without content. */
  statFiles(paths: readonly string[], call?: NodeCall & { readonly sha256?: boolean }): Promise<FileFacts[]>
  listFolder(path: string, call?: NodeCall): Promise<FolderListing>
  /**
   * Returns the paths that match shell patterns (`*`, `?`, `[…]`), sorted for each pattern. Names with a line break are omitted.
   */
  matchPaths(patterns: readonly string[], call?: NodeCall): Promise<string[]>
  /**
   * Replaces a file atomically and durably when its current content is the expected or the new one. If the path is a symbolic
   * link, its target is replaced. Between the last check and the rename there is about a millisecond in which another program's
   * change is lost. A new file (`absent`) has no such gap.
   */
  writeFile(
    path: string,
    content: Uint8Array | string,
    options: WriteOptions & { readonly key?: KeyOf },
  ): Promise<Written>
  /**
   * Like writeFile, with the content of another file on the node, which does not leave the node. Throws when that content does
   * not match `sha256`.
   */
  copyFile(
    from: string,
    to: string,
    options: WriteOptions & { readonly sha256: Sha256; readonly key?: CopiedKey },
  ): Promise<Written>
  /** Makes a path a symbolic link, atomically. Returns whether it changed. */
  linkFile(
    path: string,
    target: string,
    options: NodeCall & { readonly replaces: Expected },
  ): Promise<boolean>
  /** Removes a file or a link. Returns false when it does not exist. */
  removeFile(path: string, options: NodeCall & { readonly holds: Expected }): Promise<boolean>
  /** Creates a folder and its missing parents (0755). An existing folder keeps its mode. */
  makeFolder(path: string, options: NodeCall & { readonly mode: number }): Promise<void>
  /** Removes an empty folder. Returns false when it does not exist. */
  removeFolder(path: string, call?: NodeCall): Promise<boolean>
  unit(name: string, call?: NodeCall): Promise<UnitFacts>
  /** Restarts a unit and returns its state afterwards. systemd reloads changed unit files first. */
  restartUnit(name: string, call?: NodeCall): Promise<UnitFacts>
  processes(programs: readonly ComponentName[], call?: NodeCall): Promise<ProcessFacts[]>
  /** Returns the processes of these pods, by UID. Each program is searched once, for at most 10 s. */
  podProcesses(podUids: readonly string[], call?: NodeCall): Promise<PodProcess[]>
  clock(call?: NodeCall): Promise<ClockReading>
  freeSpace(path: string, call?: NodeCall): Promise<FreeSpace>
  /** Closes the connections to the node, and ends what is still running there. */
  close(): Promise<void>
}
