import { KcertError } from '../errors/kcert-error.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import { folderOf, linkedFrom } from './certificate-files.ts'

/** The folder on each node for the replaced files, by their complete path: `cp -a FOLDER/. /` restores them all. */
export const backupsFolder = '/var/lib/kcert/backups'

/** The files of one node before a command. Never next to manifests: a kubelet starts every file in that folder. */
export class Backup {
  readonly folder: string
  private readonly node: NodeAccess
  private readonly kept = new Set<string>()
  private readonly made = new Set<string>()

  constructor(node: NodeAccess, command: string, at: Date) {
    this.node = node
    this.folder = `${backupsFolder}/${command}-${at.toISOString().slice(0, 19).replaceAll(':', '-')}Z`
  }

  get isEmpty(): boolean {
    return this.kept.size === 0
  }

  /** Copies the current file once, including the target of a link. Skips a missing file. */
  async keep(path: string): Promise<void> {
    if (this.kept.has(path)) return
    const [file] = await this.node.statFiles([path], { sha256: true })
    if (file === undefined || (file.found === 'absent' && file.linkTarget === undefined)) return
    const to = `${this.folder}${path}`
    if (file.linkTarget !== undefined) {
      await this.makeFolder(folderOf(to))
      await this.node.linkFile(to, file.linkTarget, { replaces: 'anything' })
      this.kept.add(path)
      if (file.found === 'file') await this.keep(linkedFrom(path, file.linkTarget))
      return
    }
    if (file.found !== 'file' || file.sha256 === undefined) {
      throw new KcertError('KCERT_NODE_REFUSED', `${path} on node "${this.node.name}" cannot be copied`, {
        why:
          file.found === 'unreadable'
            ? `${file.reason}; only root can read keys: run kcert as root, or set "become: sudo" for the node`
            : 'it is a folder or a device',
      })
    }
    const { sha256, mode, uid, gid } = file
    await this.makeFolder(folderOf(to))
    await this.node.copyFile(path, to, { replaces: 'anything', sha256, mode, owner: { uid, gid } })
    this.kept.add(path)
  }

  private async makeFolder(path: string): Promise<void> {
    if (this.made.has(path)) return
    if (this.made.size === 0) {
      await this.node.makeFolder(backupsFolder, { mode: 0o700 })
      await this.node.makeFolder(this.folder, { mode: 0o700 })
    }
    await this.node.makeFolder(path, { mode: 0o700 })
    this.made.add(path)
  }
}
