import { currentLinkName, type KubeletFile } from '../pki/kubelet.ts'
import type { Collection } from './collection.ts'
import type { Origin } from './entries.ts'
import { linkDestination } from './references.ts'
import type { UnreadableSource } from './source.ts'

/**
 * The kubelet's -current.pem links and what they lead to. The link and the file are one certificate: it is reported once, by
 * the name that stays the same when the kubelet renews it. Of the dated files that are left, all but the newest are history.
 */
export class StoreLinks {
  /** By folder and role: name of the file that is in use. */
  private readonly inUse = new Map<string, string>()
  /** By folder and role: name of the newest dated file. The names sort as their dates do. */
  private readonly newest = new Map<string, string>()
  private readonly origins: readonly Origin[]
  private knownPaths: Set<string> | undefined

  constructor(origins: readonly Origin[], unreadable: readonly UnreadableSource[]) {
    this.origins = origins
    for (const { file, treePlace } of origins) {
      if (file === undefined || treePlace === undefined || !('file' in treePlace)) continue
      const { file: kubelets, name, tree } = treePlace
      if (kubelets.part === 'pair') this.addDated(slot(tree.folder, kubelets.role), name)
      if (kubelets.part === 'current') this.note(file.path, file.linkTarget, kubelets.role)
    }
    for (const { file } of unreadable) {
      const name = file?.path.slice(file.path.lastIndexOf('/') + 1)
      for (const role of ['kubelet-client', 'kubelet-serving'] as const) {
        if (file !== undefined && name === currentLinkName(role)) this.note(file.path, file.linkTarget, role)
      }
    }
  }

  private hasFile(path: string): boolean {
    this.knownPaths ??= new Set(this.origins.flatMap(({ file }) => file?.path ?? []))
    return this.knownPaths.has(path)
  }

  private addDated(key: string, name: string): void {
    const known = this.newest.get(key)
    if (known === undefined || known < name) this.newest.set(key, name)
  }

  private note(path: string, target: string | undefined, role: KubeletFile['role']): void {
    if (target !== undefined)
      this.inUse.set(slot(folderOf(path), role), target.slice(target.lastIndexOf('/') + 1))
  }

  /** True for a dated file that another has taken the place of. */
  isReplaced({ treePlace }: Origin): boolean {
    if (treePlace === undefined || !('file' in treePlace) || treePlace.file.part !== 'pair') return false
    const { name, tree, file } = treePlace
    const key = slot(tree.folder, file.role)
    return (this.inUse.get(key) ?? this.newest.get(key)) !== name
  }

  /** True for a link of a copied folder whose file lies beside it, though the path that it names does not exist. */
  isTargetHere({ file }: UnreadableSource): boolean {
    if (file?.linkTarget === undefined) return false
    const name = file.linkTarget.slice(file.linkTarget.lastIndexOf('/') + 1)
    return this.hasFile(`${folderOf(file.path)}/${name}`)
  }

  /** Takes out of the collection the dated files that a -current.pem of it leads to. */
  leaveOutLinkTargets(collection: Collection): void {
    const targets = new Set<string>()
    for (const { file, root, treePlace } of collection.origins) {
      if (
        root === undefined ||
        file?.linkTarget === undefined ||
        treePlace === undefined ||
        !('file' in treePlace)
      )
        continue
      const name = file.linkTarget.slice(file.linkTarget.lastIndexOf('/') + 1)
      const beside = `${folderOf(file.path)}/${name}`
      targets.add(this.hasFile(beside) ? beside : linkDestination(file.path, file.linkTarget))
    }
    if (targets.size === 0) return
    const left = collection.origins.filter(
      ({ file, root }) => root !== undefined && file !== undefined && targets.has(file.path),
    )
    if (left.length > 0) collection.leaveOut(new Set(left))
  }
}

function slot(folder: string, role: KubeletFile['role']): string {
  return `${role} ${folder}`
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}
