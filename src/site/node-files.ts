import { KcertError } from '../errors/kcert-error.ts'
import type {
  FileContent,
  FileFacts,
  NodeAccess,
  NodeCall,
  ReadFile,
  StatedFile,
} from '../pki/node-access.ts'
import type { FileSnapshot } from '../rotation/snapshot.ts'
import { looksLikePem } from '../x509/pem.ts'
import { linkedFrom } from './certificate-files.ts'
import type { FileReading, ReadContent } from './file-reading.ts'

/** A file of a node as it was read. */
export interface NodeFile {
  readonly snapshot: FileSnapshot
  readonly refersTo?: ReadContent['refersTo']
  /** Set for definitions and configurations; not for files with keys or certificates. */
  readonly text?: string
}

interface Known {
  readonly facts: FileFacts
  /** When it was read, by the node's clock. */
  readonly readAtMs: number
  readonly file: NodeFile
}

/** Returns the text of a file that was read. */
export function textOf({ content }: { readonly content: Uint8Array }): string {
  return Buffer.from(content).toString('utf8')
}

/** Returns when a file, or the link to it, last changed, by the node's clock. */
export function changedAtMs({ modifiedAt, linkedAt }: Pick<StatedFile, 'modifiedAt' | 'linkedAt'>): number {
  return Math.max(modifiedAt.getTime(), linkedAt?.getTime() ?? 0)
}

/** Returns the error for a file that exists and cannot be read. */
export function unreadableFile(node: string, path: string, reason: string): KcertError {
  return new KcertError('KCERT_NODE_REFUSED', `${path} on node "${node}" cannot be read`, {
    why: `${reason}; set become: sudo for the node in kcert.yaml`,
  })
}

/** Returns the content of a file; undefined if it does not exist. Throws KCERT_NODE_REFUSED if it cannot be read. */
export async function readIfPresent(
  node: Pick<NodeAccess, 'name' | 'readFiles'>,
  path: string,
): Promise<ReadFile | undefined> {
  const [file] = await node.readFiles([path])
  if (file?.found === 'file') return file
  if (file?.found === 'absent') return undefined
  throw unreadableFile(
    node.name,
    path,
    file?.found === 'unreadable' ? file.reason : 'it is not a regular file',
  )
}

/**
 * File system timestamps are coarser than their fractions suggest: a file that changed this recently may change again unnoticed.
 */
const settledMs = 2_000

const largestText = 256 * 1024

/** The files of one node. A file is read again only if it may have changed. */
export class NodeFiles {
  private readonly node: NodeAccess
  private readonly reading: FileReading
  private readonly known = new Map<string, Known>()

  constructor(node: NodeAccess, reading: FileReading) {
    this.node = node
    this.reading = reading
  }

  /** Returns the readable files of these paths. `nodeNowMs` is the node's clock; `aheadMs` is how far it is ahead of kcert's. */
  async read(
    paths: readonly string[],
    { nodeNowMs, aheadMs }: { readonly nodeNowMs: number; readonly aheadMs: number },
    call: NodeCall,
  ): Promise<Map<string, NodeFile>> {
    const found = new Map<string, NodeFile>()
    if (paths.length === 0) return found
    const stale: string[] = []
    const observed = paths.filter((path) => this.known.has(path))
    const facts = observed.length === 0 ? [] : await this.node.statFiles(observed, call)
    const fresh = new Map(facts.map((one) => [one.path, one]))
    for (const path of paths) {
      const known = this.known.get(path)
      if (known !== undefined && isSame(known, fresh.get(path))) found.set(path, known.file)
      else stale.push(path)
    }
    if (stale.length === 0) return found
    for (const content of await this.node.readFiles(stale, call)) {
      const file = await this.take(content, aheadMs)
      this.known.delete(content.path)
      if (file === undefined) continue
      found.set(content.path, file)
      this.known.set(content.path, { facts: withoutContent(content), readAtMs: nodeNowMs, file })
    }
    return found
  }

  private async take(file: FileContent, aheadMs: number): Promise<NodeFile | undefined> {
    if (file.found !== 'file') return undefined
    const { path, sha256, mode, content, linkTarget } = file
    const { contains, refersTo } = await this.reading.read(content, sha256)
    const isText = contains.kind === 'other' && content.length <= largestText && !looksLikePem(content)
    return {
      snapshot: {
        node: this.node.name,
        path,
        digest: sha256,
        mode,
        changedAtMs: changedAtMs(file) - aheadMs,
        ...(linkTarget === undefined ? {} : { linksTo: linkedFrom(path, linkTarget) }),
        contains,
      },
      ...(refersTo && { refersTo }),
      ...(isText && { text: Buffer.from(content).toString('utf8') }),
    }
  }
}

function isSame({ facts: before, readAtMs }: Known, now: FileFacts | undefined): boolean {
  if (before.found !== 'file' || now?.found !== 'file') return false
  return (
    readAtMs - changedAtMs(now) > settledMs &&
    before.modifiedAt.getTime() === now.modifiedAt.getTime() &&
    before.linkedAt?.getTime() === now.linkedAt?.getTime() &&
    before.linkTarget === now.linkTarget &&
    before.sizeBytes === now.sizeBytes &&
    before.mode === now.mode
  )
}

/** Returns what is known of a file besides its content. */
export function withoutContent(file: FileContent): FileFacts {
  if (file.found !== 'file') return file
  const { content: _, ...facts } = file
  return facts
}
