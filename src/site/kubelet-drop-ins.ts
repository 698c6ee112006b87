import { KcertError } from '../errors/kcert-error.ts'
import type { Flags } from '../pki/component-flags.ts'
import { type DropIn, dropInPatterns, orderedDropIns } from '../pki/kubelet-configuration.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import { textOf } from './node-files.ts'

/** Returns the drop-ins of a kubelet with these flags, in order. Throws KCERT_NODE_REFUSED if one cannot be read. */
export async function dropInsOn(
  node: Pick<NodeAccess, 'name' | 'matchPaths' | 'readFiles'>,
  flags: Flags,
): Promise<readonly DropIn[]> {
  const patterns = dropInPatterns(flags)
  if (patterns.length === 0) return []
  const paths = orderedDropIns(flags, await node.matchPaths(patterns))
  const files = paths.length === 0 ? [] : await node.readFiles(paths)
  return paths.map((path) => {
    const file = files.find((one) => one.path === path)
    if (file?.found === 'file') return { path, text: textOf(file) }
    throw unreadableDropIn(node.name, path)
  })
}

export function unreadableDropIn(node: string, path: string): KcertError {
  return new KcertError(
    'KCERT_NODE_REFUSED',
    `the configuration of the kubelet on node "${node}" is incomplete`,
    {
      why: `${path} cannot be read, and the kubelet merges it (--config-dir): run kcert as root, or set "become: sudo" for the node in kcert.yaml`,
    },
  )
}
