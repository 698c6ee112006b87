import { hash } from 'node:crypto'
import { orUndefined } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess, ReadFile } from '../pki/node-access.ts'
import type { FoundKeys, KeyFile, KeyPlaces, OldKeyFiles } from '../rotation/old-keys.ts'
import { unreadableFile } from '../site/node-files.ts'
import type { Site } from '../site/site.ts'
import { holdsEncryptedKey, readPrivateKeyFile } from '../x509/keys.ts'
import { writePem } from '../x509/pem.ts'

// Keys in kcert's own folders on the nodes, and encrypted keys next to CAs, of which only the path is reported. A file is
// overwritten in place before it is removed, because a rename alone would leave its bytes on the disk. Other copies by disks and
// file systems (journals, snapshots, spare cells) are out of reach.

/** Larger than any CA key with certificates in the same file. */
const largestBytes = 64 * 1024

export type OldKeySite = Pick<Site, 'node' | 'reading' | 'certificates'>

export class SiteOldKeyFiles implements OldKeyFiles {
  private readonly site: OldKeySite

  constructor(site: OldKeySite) {
    this.site = site
  }

  async find(
    name: string,
    { folders, besideCas }: KeyPlaces,
    spkis: ReadonlySet<string>,
  ): Promise<FoundKeys> {
    const node = this.nodeNamed(name)
    const [beside, ...below] = await Promise.all([
      smallFiles(node, besideCas),
      ...folders.map((folder) => filesBelow(node, folder)),
    ])
    const own = new Set(below.flat())
    const files = await node.readFiles([...own.union(new Set(beside))], { largestBytes })
    const keys: KeyFile[] = []
    const encrypted: string[] = []
    for (const file of files) {
      if (file.found === 'unreadable') throw unreadableFile(name, file.path, file.reason)
      if (file.found !== 'file') continue
      const key = own.has(file.path) ? await this.keyIn(file, spkis) : undefined
      if (key !== undefined) keys.push(key)
      else if (holdsEncryptedKey(file.content)) encrypted.push(file.path)
    }
    return { keys, encrypted }
  }

  /** Returns the file if it contains one of these keys, or contained one before it was overwritten. */
  private async keyIn(
    { path, sha256: digest, sizeBytes, content }: ReadFile,
    spkis: ReadonlySet<string>,
  ): Promise<KeyFile | undefined> {
    if (isOverwritten(content)) return { path, digest, sizeBytes }
    const { contains } = await this.site.reading.read(content, digest)
    const spki = contains.kind === 'key' || contains.kind === 'pair' ? contains.spki : undefined
    return spki !== undefined && spkis.has(spki) ? { path, digest, sizeBytes, spki } : undefined
  }

  async read(node: string, file: KeyFile): Promise<Uint8Array> {
    const now = await this.asFound(node, file)
    if (now !== undefined) return now.content
    throw changed(node, file.path, 'it is gone')
  }

  async destroy(name: string, file: KeyFile): Promise<void> {
    const now = await this.asFound(name, file)
    if (now === undefined) return
    const node = this.nodeNamed(name)
    const { path } = file
    const size = now.content.length
    if (!isOverwritten(now.content)) {
      const overwrite = ['if=/dev/zero', `of=${path}`, `bs=${size}`, 'count=1', 'conv=notrunc,fsync']
      const { status, stderr } = await node.run(['dd', ...overwrite])
      if (status !== 0)
        throw new KcertError('KCERT_NODE_FILE_NOT_WRITTEN', `${name}:${path} could not be overwritten`, {
          why: `${stderr === '' ? 'dd failed' : stderr}; check the disk of the node, then run the same command again`,
        })
    }
    await node.removeFile(path, { holds: { sha256: hash('sha256', Buffer.alloc(size), 'hex') } })
  }

  certificate(digest: string): string | undefined {
    const found = this.site.certificates.get(digest)
    return found && writePem('CERTIFICATE', found.der)
  }

  spkiOf(content: Uint8Array): string | undefined {
    return orUndefined(() => readPrivateKeyFile(content).publicKey?.sha256)
  }

  /** Returns undefined when the file is gone. */
  private async asFound(name: string, { path, digest }: KeyFile): Promise<ReadFile | undefined> {
    const [file] = await this.nodeNamed(name).readFiles([path], { largestBytes })
    if (file === undefined || file.found === 'absent') return undefined
    if (file.found === 'file' && file.sha256 === digest && file.linkTarget === undefined) return file
    throw changed(name, path, 'the file changed since kcert found it')
  }

  private nodeNamed(name: string): NodeAccess {
    const node = this.site.node(name)
    if (node !== undefined) return node
    throw new KcertError('KCERT_NODE_UNREACHABLE', `kcert.yaml has no access for node ${name}`, {
      why: 'add access to the node in kcert.yaml',
      next: 'kcert rotate-ca discover --dry-run',
    })
  }
}

/** Does not follow links, and omits files that are too large for a key. */
async function filesBelow(node: NodeAccess, folder: string): Promise<string[]> {
  const listing = await node.listFolder(folder)
  if (listing.found === 'unreadable') throw unreadableFile(node.name, folder, 'permission denied')
  if (listing.found !== 'folder') return []
  const found: string[] = []
  for (const { name, kind, sizeBytes } of listing.entries) {
    const path = `${folder}/${name}`
    if (kind === 'folder') found.push(...(await filesBelow(node, path)))
    if (kind === 'file' && sizeBytes > 0 && sizeBytes <= largestBytes) found.push(path)
  }
  return found
}

/** Omits files that are too large for a key: without an extension, the path of a CA's key is the bundle of CAs itself. */
async function smallFiles(node: NodeAccess, paths: readonly string[]): Promise<string[]> {
  const files = await node.statFiles(paths)
  return files.flatMap((file) => (file.found === 'file' && file.sizeBytes > largestBytes ? [] : [file.path]))
}

/** Returns true for a file of zeros: a run stopped between overwriting and removing it. kcert writes no other such file. */
function isOverwritten(content: Uint8Array): boolean {
  return content.length > 0 && content.every((byte) => byte === 0)
}

function changed(node: string, path: string, why: string): KcertError {
  return new KcertError('KCERT_NODE_FILE_CHANGED', `${node}:${path} was skipped`, {
    why: `${why}; run the same command again, which checks every node again`,
  })
}
