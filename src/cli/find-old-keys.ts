import { KcertError } from '../errors/kcert-error.ts'
import { type KeyFile, type OldKeyFiles, ownFolders } from '../rotation/old-keys.ts'
import type { Seen } from '../rotation/picture.ts'

/** A file of a node with an old key, or with what was one. */
export interface FoundFile extends KeyFile {
  readonly node: string
  /** Absent where it is overwritten already. */
  readonly ca?: string
  isRemoved: boolean
}

/** A node that is left for the next run. */
export interface Unreachable {
  readonly node: string
  readonly why: string
}

/** Nodes that are looked at side by side. */
const nodesAtOnce = 16

/** Returns the files with keys of these CAs in kcert's folders on these nodes, and which nodes could not be asked. */
export async function findOldKeys(
  oldKeys: OldKeyFiles,
  seen: Seen<'components'>,
  nodes: readonly string[],
  olds: readonly { readonly ca: string; readonly spki: string }[],
): Promise<{ readonly files: FoundFile[]; readonly unreachable: Unreachable[] }> {
  const { default: pMap } = await import('p-map')
  const caOf = new Map(olds.map(({ ca, spki }) => [spki, ca]))
  const spkis = new Set(caOf.keys())
  const unreachable: Unreachable[] = []
  const found = await pMap(
    nodes,
    async (node): Promise<FoundFile[]> => {
      try {
        const files = await oldKeys.find(node, ownFolders(seen, node), spkis)
        return files.map((file) => ({
          ...file,
          node,
          ...(file.spki === undefined ? {} : { ca: caOf.get(file.spki)! }),
          isRemoved: false,
        }))
      } catch (error) {
        unreachable.push({ node, why: whyAway(error) })
        return []
      }
    },
    { concurrency: nodesAtOnce },
  )
  return { files: found.flat(), unreachable }
}

/** True for what is wrong with one node, and may not be when the command is run again. */
function isAway(error: unknown): boolean {
  if (!(error instanceof KcertError)) return false
  return error.code === 'KCERT_NODE_UNREACHABLE' || error.code === 'KCERT_NODE_FILE_NOT_WRITTEN'
}

/** Returns why a node is left for the next run; throws what is wrong with more than one node. */
export function whyAway(error: unknown): string {
  if (!isAway(error)) throw error
  const { message, why } = error as KcertError
  return why === undefined ? message : `${message}: ${why}`
}
