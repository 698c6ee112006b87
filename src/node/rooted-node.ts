import { KcertError } from '../errors/kcert-error.ts'
import type { FileContent, FileFacts, NodeAccess } from '../pki/node-access.ts'

/**
 * Returns a tree of files as if it were a node: each path is looked up below `root`. Links are not resolved in it, since absolute ones
 * lead out of the tree: whoever reads follows `linkTarget` himself. Nothing runs there, so nothing can be asked of processes.
 */
export function rootedNode(node: NodeAccess, root: string): NodeAccess {
  const folder = root.replace(/\/+$/, '')
  const inside = (path: string): string => folder + path
  const outside = <File extends { readonly path: string }>(file: File): File => ({
    ...file,
    path: file.path.slice(folder.length) || '/',
  })
  const nothingRuns = (): never => {
    throw new KcertError('KCERT_USAGE', `nothing runs in the tree of files ${root}`, {
      why: 'it is a copy, or the disk of a machine that is off',
    })
  }
  return {
    name: node.name,
    identity: (call) => node.identity(call),
    run: nothingRuns,
    readFiles: async (paths, call): Promise<FileContent[]> =>
      (await node.readFiles(paths.map(inside), call)).map(outside),
    statFiles: async (paths, call): Promise<FileFacts[]> =>
      (await node.statFiles(paths.map(inside), call)).map(outside),
    listFolder: async (path, call) => outside(await node.listFolder(inside(path), call)),
    matchPaths: async (patterns, call) =>
      (await node.matchPaths(patterns.map(inside), call)).map((path) => path.slice(folder.length)),
    writeFile: async (path, content, options) =>
      outside(await node.writeFile(inside(path), content, options)),
    copyFile: async (from, to, options) => outside(await node.copyFile(inside(from), inside(to), options)),
    linkFile: (path, target, options) => node.linkFile(inside(path), target, options),
    removeFile: (path, options) => node.removeFile(inside(path), options),
    makeFolder: (path, options) => node.makeFolder(inside(path), options),
    removeFolder: (path, call) => node.removeFolder(inside(path), call),
    unit: nothingRuns,
    restartUnit: nothingRuns,
    processes: async () => [],
    podProcesses: async () => [],
    clock: (call) => node.clock(call),
    freeSpace: (path, call) => node.freeSpace(inside(path), call),
    close: () => node.close(),
  }
}
