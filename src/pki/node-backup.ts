import { KcertError } from '../errors/kcert-error.ts'
import type { Expected, NodeAccess, NodeCall, Sha256, Written } from './node-access.ts'

// Copies of files beside their index, made and kept on the node itself: keys in them do not travel. The index is written last,
// so a folder without one holds nothing that was promised; one that is there is added to and never replaced.

/** A file as it was. */
export type BackupEntry =
  | {
      readonly path: string
      readonly was: 'file'
      readonly sha256: Sha256
      readonly mode: number
      readonly uid: number
      readonly gid: number
      /** Where the copy is: absolute. */
      readonly copy: string
    }
  /** The link alone; what it led to is a file of its own. */
  | { readonly path: string; readonly was: 'link'; readonly linkTarget: string }
  | { readonly path: string; readonly was: 'absent' }

export interface BackupIndex {
  readonly apiVersion: 'kcert/v1'
  readonly kind: 'NodeBackup'
  readonly node: string
  readonly entries: readonly BackupEntry[]
}

const indexName = 'index.json'

/**
 * Copies files of a node into a folder of it and returns the index, which then stands there as index.json. Files that an index
 * has already are left as it says, since what they are now may be kcert's own work; so it can be asked for again after a crash.
 * Throws KCERT_NODE_REFUSED when one of them cannot be read, and what the port throws.
 */
export async function backUp(
  node: NodeAccess,
  paths: readonly string[],
  folder: string,
  call: NodeCall = {},
): Promise<BackupIndex> {
  await node.makeFolder(folder, { mode: 0o700, ...call })
  const before = await readIndex(node, folder, call)
  const known = new Set(before?.index.entries.map(({ path }) => path))
  const wanted = [...new Set(paths)].filter((path) => !known.has(path))
  if (before !== undefined && wanted.length === 0) return before.index
  const entries: BackupEntry[] = []
  for (const file of await node.statFiles(wanted, { sha256: true, ...call })) {
    entries.push(await copied(node, file, folder, call))
  }
  const index: BackupIndex = {
    apiVersion: 'kcert/v1',
    kind: 'NodeBackup',
    node: node.name,
    entries: [...(before?.index.entries ?? []), ...entries],
  }
  await node.writeFile(`${folder}/${indexName}`, `${JSON.stringify(index, null, 2)}\n`, {
    replaces: before === undefined ? 'absent' : { sha256: before.sha256 },
    mode: 0o600,
    ...call,
  })
  return index
}

/** Returns the index of a folder that backUp made, or undefined when there is none. Throws KCERT_BACKUP_DAMAGED for another file. */
export async function readBackup(
  node: NodeAccess,
  folder: string,
  call: NodeCall = {},
): Promise<BackupIndex | undefined> {
  return (await readIndex(node, folder, call))?.index
}

/**
 * Brings a file back to what the index says it was, when what is there is what is expected. Returns whether anything changed.
 * Throws KCERT_NODE_FILE_CHANGED when somebody else changed it, KCERT_NODE_FILE_NOT_WRITTEN when the copy is not what it was.
 */
export async function restore(
  node: NodeAccess,
  entry: BackupEntry,
  replaces: Expected,
  call: NodeCall = {},
): Promise<boolean> {
  const { path } = entry
  if (entry.was === 'absent') return node.removeFile(path, { holds: replaces, ...call })
  if (entry.was === 'link') return node.linkFile(path, entry.linkTarget, { replaces, ...call })
  const { copy, sha256, mode, uid, gid } = entry
  const { changed }: Written = await node.copyFile(copy, path, {
    ...{ replaces, sha256, mode, owner: { uid, gid } },
    ...call,
  })
  return changed
}

async function copied(
  node: NodeAccess,
  file: Awaited<ReturnType<NodeAccess['statFiles']>>[number],
  folder: string,
  call: NodeCall,
): Promise<BackupEntry> {
  const { path } = file
  if (file.linkTarget !== undefined) return { path, was: 'link', linkTarget: file.linkTarget }
  if (file.found === 'absent') return { path, was: 'absent' }
  if (file.found !== 'file' || file.sha256 === undefined) {
    throw new KcertError('KCERT_NODE_REFUSED', `${path} on node "${node.name}" cannot be copied`, {
      why: file.found === 'unreadable' ? file.reason : 'it is a folder or a device',
    })
  }
  const { sha256, mode, uid, gid } = file
  const copy = `${folder}/files${path}`
  await node.makeFolder(copy.slice(0, copy.lastIndexOf('/')), { mode: 0o700, ...call })
  // A copy that a crashed run left without an index is replaced: only an index makes it count.
  await node.copyFile(path, copy, { ...{ replaces: 'anything', sha256, mode, owner: { uid, gid } }, ...call })
  return { path, was: 'file', sha256, mode, uid, gid, copy }
}

async function readIndex(
  node: NodeAccess,
  folder: string,
  call: NodeCall,
): Promise<{ index: BackupIndex; sha256: Sha256 } | undefined> {
  const path = `${folder}/${indexName}`
  const [file] = await node.readFiles([path], call)
  if (file === undefined || file.found === 'absent') return undefined
  if (file.found === 'file') {
    const index = parsed(Buffer.from(file.content).toString('utf8'))
    if (index !== undefined) return { index, sha256: file.sha256 }
  }
  throw new KcertError('KCERT_BACKUP_DAMAGED', `${path} on node "${node.name}" is no index of copies`, {
    why: 'it was changed or made by something else, so nobody can tell what the files beside it were',
    next: `move the folder away, after a look at it: ls -lR ${folder}`,
  })
}

function parsed(text: string): BackupIndex | undefined {
  try {
    const index = JSON.parse(text) as Partial<BackupIndex>
    return index.kind === 'NodeBackup' && Array.isArray(index.entries) ? (index as BackupIndex) : undefined
  } catch {
    return undefined
  }
}
