// The port to a node: how its files are read and replaced, its components restarted and its processes seen. src/node has
// the adapters (local, ssh, command); what decides (rotation, renewal, the kubelet's doctor) knows these types alone.

/** SHA-256 of a file's content, in lower-case hexadecimal. */
export type Sha256 = string

/** How long a call may take, and who may end it. What it started on the node is ended with it. */
export interface NodeCall {
  /** 30 s unless given. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

interface FileName {
  /** As it was asked for. */
  readonly path: string
  /** Where it points, as written, when the path itself is a symbolic link. */
  readonly linkTarget?: string
  /** When that link was made. */
  readonly linkedAt?: Date
}

/** Mode and owner of what a path leads to, links followed. */
export interface FileAttributes {
  /** Permission bits with setuid, setgid and sticky: 0o600. */
  readonly mode: number
  readonly uid: number
  readonly gid: number
  readonly sizeBytes: number
  /** To the millisecond where the node's stat can say so, else to the second. */
  readonly modifiedAt: Date
}

/** What is not there: nothing of that name, or a link that leads nowhere. */
export interface AbsentFile extends FileName {
  readonly found: 'absent'
}

/** Files that exist and could not be read: no permission, or larger than the limit. */
export interface UnreadableFile extends FileName {
  readonly found: 'unreadable'
  /** A fragment. */
  readonly reason: string
}

export interface OtherFile extends FileName, FileAttributes {
  readonly found: 'folder' | 'special'
}

/** A regular file's attributes; its digest where that was asked for. */
export interface StatedFile extends FileName, FileAttributes {
  readonly found: 'file'
  readonly sha256?: Sha256
}

/** A regular file with its content. Content, digest and attributes are of one and the same file, also while it is replaced. */
export interface ReadFile extends FileName, FileAttributes {
  readonly found: 'file'
  readonly sha256: Sha256
  readonly content: Uint8Array
}

export type FileContent = ReadFile | OtherFile | AbsentFile | UnreadableFile
export type FileFacts = StatedFile | OtherFile | AbsentFile | UnreadableFile

/** One name in a folder; links are not followed. */
export interface FolderEntry extends FileAttributes {
  readonly name: string
  readonly kind: 'file' | 'folder' | 'link' | 'special'
  readonly linkTarget?: string
}

export type FolderListing =
  | { readonly found: 'folder'; readonly path: string; readonly entries: readonly FolderEntry[] }
  | { readonly found: 'absent' | 'not-a-folder' | 'unreadable'; readonly path: string }

/** What must be there for a change to happen. `anything` includes nothing. */
export type Expected = { readonly sha256: Sha256 } | { readonly linkTarget: string } | 'absent' | 'anything'

export interface WriteOptions extends NodeCall {
  readonly replaces: Expected
  /** Of the new file; where absent that of the file it replaces, else 0600. */
  readonly mode?: number
  /** Of the new file; where absent that of the file it replaces, else the shell's own user. */
  readonly owner?: { readonly uid: number; readonly gid: number }
}

export interface Written {
  /** What was replaced: where a link led, not the link. */
  readonly path: string
  readonly sha256: Sha256
  /** False when content, mode and owner were so already: nothing was touched. */
  readonly changed: boolean
  readonly before: Sha256 | 'absent'
}

export interface RunOptions extends NodeCall {
  readonly stdin?: Uint8Array | string
}

export interface RunResult {
  /** 127 when there is no such program, 128 + the number of the signal that ended it. */
  readonly status: number
  readonly stdout: Uint8Array
  readonly stderr: string
}

/** A unit as systemd knows it. */
export interface UnitFacts {
  readonly name: string
  /** "loaded", "not-found", "masked" */
  readonly loadState: string
  /** "active", "inactive", "failed", "activating" */
  readonly activeState: string
  /** 0 when nothing runs. */
  readonly mainPid: number
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
  /** Clock ticks from boot to start: with the pid it names one process, whatever the clock does. */
  readonly startTicks: number
  /** By the node's clock; to 10 ms where its date knows fractions, else to the second. */
  readonly startedAt: Date
  /** As in /proc: program and arguments. */
  readonly argv: readonly string[]
}

/** A process of a pod, and what it shows of its program. */
export interface PodProcess {
  readonly podUid: string
  /** ID of its container; absent where its control group names none. */
  readonly container?: string
  /** True for the one that the container was started with. */
  readonly isFirst: boolean
  readonly ageMs: number
  /** Lines of Go's build info about client-go, each with the line behind it; absent where the program could not be searched in time. */
  readonly build?: readonly string[]
  /** What sets feature gates in its environment, its flags and its --config; absent where one of them cannot be read. */
  readonly settings?: readonly string[]
}

export interface ClockReading {
  /** What the node's clock said. */
  readonly at: Date
  /** By how much the node's clock is ahead of kcert's: somewhere from `atLeast` to `atMost`. */
  readonly aheadMs: { readonly atLeast: number; readonly atMost: number }
  readonly roundTripMs: number
}

export interface FreeSpace {
  readonly path: string
  readonly availableBytes: number
  readonly totalBytes: number
}

/** Who kcert is on the node, and what it lacks. */
export interface NodeIdentity {
  readonly hostname: string
  /** Changes with each boot. */
  readonly bootId: string
  readonly uid: number
  readonly isRoot: boolean
  /** True when `become: sudo` would make it root without a password; absent when it is root already. */
  readonly maySudo?: boolean
}

/**
 * A node that can be read and written. Paths are absolute. Throws KcertError: KCERT_NODE_UNREACHABLE when it cannot be reached
 * or does not answer in time, KCERT_NODE_UNTRUSTED for its host key, KCERT_NODE_REFUSED where the login or sudo is refused,
 * KCERT_NODE_UNFIT where a tool is missing, KCERT_NODE_FILE_CHANGED when something else is there than was expected,
 * KCERT_NODE_FILE_NOT_WRITTEN when the node could not write. After any of them a file holds its old content or its new one.
 */
export interface NodeAccess {
  /** As the inventory calls it. */
  readonly name: string
  identity(call?: NodeCall): Promise<NodeIdentity>
  /** Runs a program, not a shell line. A status other than 0 is a result, not an error. */
  run(argv: readonly string[], options?: RunOptions): Promise<RunResult>
  /** All in one round trip, in the order asked for. Files above `largestBytes` (1 MiB) are unreadable. */
  readFiles(
    paths: readonly string[],
    call?: NodeCall & { readonly largestBytes?: number },
  ): Promise<FileContent[]>
  /** Like readFiles, without content. */
  statFiles(paths: readonly string[], call?: NodeCall & { readonly sha256?: boolean }): Promise<FileFacts[]>
  listFolder(path: string, call?: NodeCall): Promise<FolderListing>
  /** The paths that shell patterns (`*`, `?`, `[…]`) match, sorted within each. Names with a line end in them are left out. */
  matchPaths(patterns: readonly string[], call?: NodeCall): Promise<string[]>
  /**
   * Replaces a file atomically and durably when the current content is the expected one, or the new one already. Through a
   * symbolic link the file that it leads to is replaced. Between the last look and the rename there is about a millisecond
   * in which somebody else's change is lost; a new file (`absent`) has no such gap.
   */
  writeFile(path: string, content: Uint8Array | string, options: WriteOptions): Promise<Written>
  /** writeFile, with the content of another file of the node: it does not leave the node. Throws when that is not `sha256`. */
  copyFile(from: string, to: string, options: WriteOptions & { readonly sha256: Sha256 }): Promise<Written>
  /** Makes a path a symbolic link, atomically. Returns whether it changed. */
  linkFile(
    path: string,
    target: string,
    options: NodeCall & { readonly replaces: Expected },
  ): Promise<boolean>
  /** Removes a file or a link. Returns false when there was none. */
  removeFile(path: string, options: NodeCall & { readonly holds: Expected }): Promise<boolean>
  /** Makes a folder, and the folders above it (0755) where they are missing. One that is there keeps its mode. */
  makeFolder(path: string, options: NodeCall & { readonly mode: number }): Promise<void>
  /** Removes an empty folder. Returns false when there was none. */
  removeFolder(path: string, call?: NodeCall): Promise<boolean>
  unit(name: string, call?: NodeCall): Promise<UnitFacts>
  /** Returns the unit as it is after the restart; systemd reads changed unit files before it. */
  restartUnit(name: string, call?: NodeCall): Promise<UnitFacts>
  processes(programs: readonly ComponentName[], call?: NodeCall): Promise<ProcessFacts[]>
  /** The processes of these pods, by UID. Each program is searched once, for 10 s at most. */
  podProcesses(podUids: readonly string[], call?: NodeCall): Promise<PodProcess[]>
  clock(call?: NodeCall): Promise<ClockReading>
  freeSpace(path: string, call?: NodeCall): Promise<FreeSpace>
  /** Ends what is open to the node, and what still runs there. */
  close(): Promise<void>
}
