import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type Pair, pairText, readPair } from './pair.ts'

// A folder of pairs in the format of client-go's file store, which the kubelet uses: each pair in a file named after the second
// of its creation, and a symbolic link `PREFIX-current.pem` to the current one. Old pairs stay.

/** The type of a path, without following links. */
export type Entry = 'absent' | 'file' | 'link' | 'other'

/** The files of a store. `src/system/pair-files.ts` implements them on the disk. */
export interface PairFiles {
  entryAt(path: string): Entry
  /** True for a readable file, after following links. */
  leadsToFile(path: string): boolean
  /** Throws KcertError. */
  read(path: string): Uint8Array
  /**
   * Creates the folder (0755) if missing, and writes a new file of mode 0600 that is synced to disk on return. Throws
   * KCERT_FILE_EXISTS.
   */
  writeNew(path: string, text: string): void
  /**
   * Makes `path` a link to the absolute `target`, atomically, through the temporary link `by` next to it, which may remain after
   * a crash.
   */
  pointLink(path: string, target: string, by: string): void
  /** Renames one link. */
  rename(from: string, to: string): void
  /** Returns the names in a folder; none when it is unreadable. */
  namesIn(folder: string): readonly string[]
  /** Makes programs that watch the file read it again; its content and times do not change. Never throws. */
  nudge(path: string): void
}

export interface PairStoreOptions {
  /** An absolute path. */
  readonly folder: string
  /** The prefix of its file names: "kubelet-client". */
  readonly prefix: string
  /** The pair to read when the store has none yet. */
  readonly beside?: { readonly certificate: string; readonly key: string }
}

/** The current pair of a store. */
export interface StoredPair {
  readonly pair: Pair
  /** The path of the certificate, as found. */
  readonly path: string
}

export class PairStore {
  /** The link to the current pair. */
  readonly currentPath: string
  private readonly updatedPath: string
  private readonly files: PairFiles
  private readonly options: PairStoreOptions

  constructor(options: PairStoreOptions, files: PairFiles) {
    this.options = options
    this.files = files
    this.currentPath = this.path(`${options.prefix}-current.pem`)
    this.updatedPath = this.path(`${options.prefix}-updated.pem`)
  }

  /**
   * Completes an update that a kubelet crash interrupted between removing the old link and creating the new one.
   * Throws KCERT_PAIR_STORE for an invalid store. A dry run changes nothing.
   */
  recover(): void {
    if (this.files.leadsToFile(this.currentPath)) return
    const entry = this.files.entryAt(this.updatedPath)
    if (entry === 'absent') return
    if (entry !== 'link') throw notALink(this.updatedPath)
    this.files.rename(this.updatedPath, this.currentPath)
  }

  /**
   * Returns the current pair: the link's target, else the configured pair, else `PREFIX.crt` and `PREFIX.key`.
   * Undefined when there is none. Throws KCERT_PAIR_UNFIT for an unusable one.
   */
  current(): StoredPair | undefined {
    const { files, options } = this
    if (files.leadsToFile(this.currentPath))
      return { path: this.currentPath, pair: readPair(files.read(this.currentPath), this.currentPath) }
    const plain = {
      certificate: this.path(`${options.prefix}.crt`),
      key: this.path(`${options.prefix}.key`),
    }
    for (const { certificate, key } of [...(options.beside ? [options.beside] : []), plain]) {
      if (!files.leadsToFile(certificate) || !files.leadsToFile(key)) continue
      // As in Go: the certificates of the first file and the key of the second.
      const text =
        certificate === key
          ? textOf(files.read(key))
          : `${textOf(files.read(certificate))}\n${textOf(files.read(key))}`
      return { path: certificate, pair: readPair(text, certificate) }
    }
    return undefined
  }

  /** Throws KCERT_PAIR_STORE when a new pair could not become current, because a file replaced the link. */
  check(): void {
    for (const path of [this.currentPath, this.updatedPath]) {
      const entry = this.files.entryAt(path)
      if (entry !== 'absent' && entry !== 'link') throw notALink(path)
    }
  }

  /**
   * Writes a pair under the name of this second and makes it current. Readers find the complete old or new pair at any moment,
   * also after a crash at any step. Throws KCERT_PAIR_UNFIT before anything is written, KCERT_PAIR_STORE and
   * KCERT_FILE_NOT_WRITTEN.
   */
  update(chainPem: Uint8Array | string, keyPem: string, now: Date): StoredPair {
    const pair = readPair(`${Buffer.from(chainPem).toString()}\n${keyPem}`, 'the issued PEM data')
    const text = pairText(pair, keyPem)
    this.check()
    const path = this.write(text, now)
    this.files.pointLink(this.currentPath, path, this.updatedPath)
    return { pair, path }
  }

  /**
   * Notifies programs that watch files. A Linux watch (inotify) on the link watches the pair that it led to at that time, which a
   * renewal does not change. For example, a kubelet whose tlsCertFile is the link would serve the first certificate until it
   * expires. So every old pair is touched.
   */
  nudgeWatchers(): void {
    const { folder, prefix } = this.options
    const pattern = /^-\d{4}(?:-\d{2}){5}\.pem$/
    for (const name of this.files.namesIn(folder))
      if (name.startsWith(prefix) && pattern.test(name.slice(prefix.length)))
        this.files.nudge(this.path(name))
  }

  /**
   * If the file of this second exists, as with two concurrent renewals, the next second is used: the existing file may be in use.
   */
  private write(text: string, now: Date): string {
    for (let seconds = 0; ; seconds++) {
      const time = new Date(now.getTime() + seconds * 1000)
      const path = this.path(`${this.options.prefix}-${timestampOf(time)}.pem`)
      if (this.files.entryAt(path) !== 'absent') continue
      this.files.writeNew(path, text)
      return path
    }
  }

  private path(name: string): string {
    return `${this.options.folder}/${name}`
  }
}

/** Returns "2026-11-21-22-00-00", in local time, as the kubelet names its files. */
export function timestampOf(time: Date): string {
  const parts = [
    time.getFullYear(),
    time.getMonth() + 1,
    time.getDate(),
    time.getHours(),
    time.getMinutes(),
    time.getSeconds(),
  ]
  return parts.map((part) => String(part).padStart(2, '0')).join('-')
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8')
}

function notALink(path: string): KcertError {
  return new KcertError('KCERT_PAIR_STORE', `${path} is not a symbolic link`, {
    why: 'a renewal replaces this link, so that it points to the new pair; a kubelet rejects a regular file there too',
    fix: 'move it away, or replace it with a link to the current pair',
    next: commandLine`kcert inspect ${path}`,
  })
}
