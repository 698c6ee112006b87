import { currentLinkName, type KubeletFile, kubeletFile } from '../pki/kubelet.ts'
import type { Collection } from './collection.ts'
import { type Group, kubeletPlaceOf, leafOf } from './entries.ts'
import { linkDestination } from './references.ts'
import type { UnreadableSource } from './source.ts'

/**
 * The kubelet's -current.pem links and their targets. Link and target are one certificate. It is reported once, with the name
 * that stays the same across renewals. All other dated files except the newest are history.
 */
export class StoreLinks {
  /** By folder and role: name of the file in use. */
  private readonly inUse = new Map<string, string>()
  /** By folder and role: name of the newest dated file. The names sort by date. */
  private readonly newest = new Map<string, string>()
  private readonly collection: Collection
  private knownPaths: Set<string> | undefined

  constructor(collection: Collection, unreadable: readonly UnreadableSource[]) {
    this.collection = collection
    for (const origin of collection.origins) {
      const { file } = origin
      const place = kubeletPlaceOf(origin)
      if (file === undefined || place === undefined) continue
      const { file: kubelets, name, tree } = place
      const key = slot(tree.folder, kubelets.role)
      if (kubelets.part === 'pair' && name > (this.newest.get(key) ?? '')) this.newest.set(key, name)
      if (kubelets.part === 'current') this.inUse.set(key, lastName(file.linkTarget ?? name))
    }
    for (const one of unreadable) {
      const { file } = one
      const name = file === undefined ? '' : lastName(file.path)
      for (const role of ['kubelet-client', 'kubelet-serving'] as const) {
        if (file?.linkTarget === undefined || name !== currentLinkName(role)) continue
        const key = slot(folderOf(file.path), role)
        const target = lastName(file.linkTarget)
        // A link to a missing file still shows that the files before that one are history.
        const isNewer = kubeletFile(target)?.part === 'pair' && target > (this.newest.get(key) ?? '')
        if (isNewer || this.isTargetHere(one)) this.inUse.set(key, target)
      }
    }
  }

  private hasFile(path: string): boolean {
    this.knownPaths ??= new Set(this.collection.origins.flatMap(({ file }) => file?.path ?? []))
    return this.knownPaths.has(path)
  }

  /** True for a dated file that was replaced by another one. A copy of the current file was not. */
  isReplaced(group: Group): boolean {
    const place = kubeletPlaceOf(group.origin)
    if (place?.file.part !== 'pair') return false
    const { name, tree, file } = place
    const key = slot(tree.folder, file.role)
    const inUse = this.inUse.get(key) ?? this.newest.get(key)
    if (inUse === name) return false
    // cp -L turns the link into a file, next to its target.
    const current = `${tree.folder}/${currentLinkName(file.role)}`
    const inCurrent = this.collection.groups.find(
      ({ owner, origin }) => owner.kind === 'file' && origin.file?.path === current,
    )
    const leaf = leafOf(group)
    return leaf === undefined || (inCurrent && leafOf(inCurrent))?.certificate !== leaf.certificate
  }

  /** True for a link in a copied folder if its target file is in the same folder, although the original path does not exist. */
  isTargetHere({ file }: UnreadableSource): boolean {
    return (
      file?.linkTarget !== undefined && this.hasFile(`${folderOf(file.path)}/${lastName(file.linkTarget)}`)
    )
  }

  /** Removes the dated files that a -current.pem in the collection points to. */
  leaveOutLinkTargets(): void {
    const { collection } = this
    const targets = new Set<string>()
    for (const origin of collection.origins) {
      const { file, root } = origin
      if (root === undefined || file?.linkTarget === undefined || kubeletPlaceOf(origin) === undefined)
        continue
      const beside = `${folderOf(file.path)}/${lastName(file.linkTarget)}`
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

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'))
}
