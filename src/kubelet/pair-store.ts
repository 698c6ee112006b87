import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { type Pair, pairText, readPair } from './pair.ts'

// A folder of pairs as client-go's file store keeps it, and so the kubelet: each pair in a file that is named after the second of its
// making, and a symbolic link `PREFIX-current.pem` to the one that counts. Old pairs stay.

/** What lies at a path, links not followed. */
export type Entry = 'absent' | 'file' | 'link' | 'other'

/** The files of a store. `src/system/pair-files.ts` has them on the disk. */
export interface PairFiles {
  entryAt(path: string): Entry
  /** True for what can be read in the end, links followed. */
  leadsToFile(path: string): boolean
  /** Throws KcertError. */
  read(path: string): Uint8Array
  /** Makes the folder (0755) where it is missing, and writes a new file of mode 0600 that is on the disk when it comes back. Throws KCERT_FILE_EXISTS. */
  writeNew(path: string, text: string): void
  /** Makes `path` a link to the absolute `target`, at once for whoever looks, through the link `by` beside it, which a crash may leave. */
  pointLink(path: string, target: string, by: string): void
  /** Renames one link. */
  rename(from: string, to: string): void
  /** Names in a folder; none where it cannot be listed. */
  namesIn(folder: string): readonly string[]
  /** Makes programs that watch the file read it again; its content and times stay. Never throws. */
  nudge(path: string): void
}

export interface PairStoreOptions {
  /** Absolute. */
  readonly folder: string
  /** "kubelet-client": the names of its files begin with it. */
  readonly prefix: string
  /** Where a pair is looked for when the store has none yet. */
  readonly beside?: { readonly certificate: string; readonly key: string }
}

/** What a store holds. */
export interface StoredPair {
  readonly pair: Pair
  /** Of the certificate, as it was found. */
  readonly path: string
}

export class PairStore {
  /** The link that leads to the pair that counts. */
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
   * Brings a change to its end that a crash of the kubelet interrupted between taking the old link away and putting the new one there.
   * Throws KCERT_PAIR_STORE for what is no store. A dry run looks alone.
   */
  recover(): void {
    if (this.files.leadsToFile(this.currentPath)) return
    const entry = this.files.entryAt(this.updatedPath)
    if (entry === 'absent') return
    if (entry !== 'link') throw notALink(this.updatedPath)
    this.files.rename(this.updatedPath, this.currentPath)
  }

  /**
   * Returns the pair that counts: where the link leads, else the pair that is named beside the store, else `PREFIX.crt` and `PREFIX.key`.
   * Undefined when there is none. Throws KCERT_PAIR_UNFIT for one that cannot be used.
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
      // As Go does, the certificates of the one and the key of the other.
      const text =
        certificate === key
          ? textOf(files.read(key))
          : `${textOf(files.read(certificate))}\n${textOf(files.read(key))}`
      return { path: certificate, pair: readPair(text, certificate) }
    }
    return undefined
  }

  /** Throws KCERT_PAIR_STORE when a new pair could not be put in its place: somebody made a file of the link. */
  check(): void {
    for (const path of [this.currentPath, this.updatedPath]) {
      const entry = this.files.entryAt(path)
      if (entry !== 'absent' && entry !== 'link') throw notALink(path)
    }
  }

  /**
   * Writes a pair under the name of this second and makes it the one that counts. Whoever looks, at any moment and after a crash at any step,
   * finds the old pair or the new one, whole. Throws KCERT_PAIR_UNFIT before anything is written, KCERT_PAIR_STORE and KCERT_FILE_NOT_WRITTEN.
   */
  update(chainPem: Uint8Array | string, keyPem: string, now: Date): StoredPair {
    const pair = readPair(`${Buffer.from(chainPem).toString()}\n${keyPem}`, 'what was issued')
    const text = pairText(pair, keyPem)
    this.check()
    const path = this.write(text, now)
    this.files.pointLink(this.currentPath, path, this.updatedPath)
    return { pair, path }
  }

  /**
   * Tells those who watch files. A watch of Linux (inotify) on the link is one on the pair that it led to then, which a renewal leaves alone: a
   * kubelet whose tlsCertFile is the link, for one, would serve the first certificate until it ends. So every old pair is nudged.
   */
  nudgeWatchers(): void {
    const { folder, prefix } = this.options
    const pattern = /^-\d{4}(?:-\d{2}){5}\.pem$/
    for (const name of this.files.namesIn(folder))
      if (name.startsWith(prefix) && pattern.test(name.slice(prefix.length)))
        this.files.nudge(this.path(name))
  }

  /** A second that has its file already, as with two renewals at once, gives the name of the next: what is there may be in use. */
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
    why: 'the kubelet, too, refuses to renew into such a folder: a new pair is put in its place by a link',
    fix: 'move it away, or make it a link to the pair that counts',
    next: commandLine`kcert inspect ${path}`,
  })
}
