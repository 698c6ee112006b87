import { posix } from 'node:path'
import { KcertError } from '../errors/kcert-error.ts'
import type { Flags } from '../pki/component-flags.ts'
import type { DropIn } from '../pki/kubelet-configuration.ts'
import type { NodeAccess, NodeCall } from '../pki/node-access.ts'
import { textOf } from './node-files.ts'

type Reads = Pick<NodeAccess, 'name' | 'statFiles' | 'listFolder' | 'readFiles'>

/** The folder of drop-ins has few others. Each takes a round trip. */
const mostFolders = 100

/**
 * Returns the drop-ins of a kubelet with these flags, in the order in which it merges them. Throws KCERT_NODE_REFUSED for a folder or a
 * drop-in that does not exist or cannot be read: the kubelet does not start then.
 */
export async function dropInsOn(node: Reads, flags: Flags, call?: NodeCall): Promise<readonly DropIn[]> {
  const paths = await dropInPaths(node, flags, call)
  const files = paths.length === 0 ? [] : await node.readFiles(paths, call)
  return paths.map((path) => {
    const file = files.find((one) => one.path === path)
    if (file?.found === 'file') return { path, text: textOf(file) }
    throw unreadable(node, path, file?.found)
  })
}

/**
 * Returns the paths of all names *.conf below --config-dir that are no folder, as Go's filepath.WalkDir finds them (cmd/kubelet/app/server.go,
 * mergeKubeletConfigurations): hidden ones too, each folder by name, and no folder behind a link. A link to a folder is a drop-in that
 * the kubelet cannot read.
 */
async function dropInPaths(
  node: Reads,
  { 'config-dir': folder = '' }: Flags,
  call?: NodeCall,
): Promise<readonly string[]> {
  if (folder === '') return []
  // A relative path is relative to the folder of the process, and systemd starts it in /.
  const root = posix.resolve('/', folder)
  const [facts] = await node.statFiles([root], call)
  const isLink = facts?.linkTarget !== undefined && !folder.endsWith('/')
  const open = [{ path: root, kind: isLink ? 'link' : 'folder' }]
  const found: string[] = []
  let folders = 0
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { path, kind } = next
    if (kind !== 'folder') {
      if (path.endsWith('.conf')) found.push(path)
      continue
    }
    if (++folders > mostFolders) throw unreadable(node, path, 'too-many')
    const listing = await node.listFolder(path, call)
    if (listing.found !== 'folder') throw unreadable(node, path, listing.found)
    open.unshift(...listing.entries.map((one) => ({ path: posix.join(path, one.name), kind: one.kind })))
  }
  return found
}

function unreadable({ name }: Reads, path: string, found: string | undefined): KcertError {
  const why =
    found === 'absent'
      ? `${path} does not exist, and the kubelet does not start without it (--config-dir)`
      : found === 'too-many'
        ? `there are more than ${mostFolders} folders below --config-dir, and kcert reads no more`
        : `${path} cannot be read, and the kubelet merges it (--config-dir): run kcert as root, or set "become: sudo" for the node in kcert.yaml`
  return new KcertError(
    'KCERT_NODE_REFUSED',
    `the configuration of the kubelet on node "${name}" is incomplete`,
    {
      why,
    },
  )
}
