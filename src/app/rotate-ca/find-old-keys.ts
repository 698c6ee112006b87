import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import { type KeyFile, keyPlaces, type OldKeyFiles } from '../../rotation/old-keys.ts'
import type { Observed } from '../../rotation/snapshot.ts'

/** A file of a node with an old key, or with what was one. */
export interface FoundFile extends KeyFile {
  readonly node: string
  /** Absent where it is overwritten already. */
  readonly ca?: string
  isRemoved: boolean
}

/** A key that only its password tells apart. */
interface EncryptedKey {
  readonly node: string
  readonly path: string
}

/** What was found on the nodes; what becomes of it is noted in it. */
export interface OldKeys {
  readonly files: FoundFile[]
  readonly encrypted: readonly EncryptedKey[]
  readonly unreachable: Unreachable[]
}

/** A node that is left for the next run. */
interface Unreachable {
  readonly node: string
  readonly why: string
}

/** Nodes that are looked at side by side. */
const nodesAtOnce = 16

/** Returns the files with keys of these CAs on these nodes, the encrypted keys, and which nodes could not be asked. */
export async function findOldKeys(
  oldKeys: OldKeyFiles,
  observed: Observed<'components' | 'kubelets'>,
  nodes: readonly string[],
  olds: readonly { readonly ca: string; readonly spki: string }[],
): Promise<OldKeys> {
  const { default: pMap } = await import('p-map')
  const caOf = new Map(olds.map(({ ca, spki }) => [spki, ca]))
  const spkis = new Set(caOf.keys())
  const unreachable: Unreachable[] = []
  const found = await pMap(
    nodes,
    async (node): Promise<Pick<OldKeys, 'files' | 'encrypted'>> => {
      try {
        const { keys, encrypted } = await oldKeys.find(node, keyPlaces(observed, node), spkis)
        const files = keys.map((file) => ({
          ...file,
          node,
          ...(file.spki === undefined ? {} : { ca: caOf.get(file.spki)! }),
          isRemoved: false,
        }))
        return { files, encrypted: encrypted.map((path) => ({ node, path })) }
      } catch (error) {
        unreachable.push({ node, why: skipReason(error) })
        return { files: [], encrypted: [] }
      }
    },
    { concurrency: nodesAtOnce },
  )
  return {
    files: found.flatMap(({ files }) => files),
    encrypted: found.flatMap(({ encrypted }) => encrypted),
    unreachable,
  }
}

/** True for what is wrong with one node, and may not be when the command is run again. */
function isAway(error: unknown): boolean {
  if (!(error instanceof KcertError)) return false
  return error.code === 'KCERT_NODE_UNREACHABLE' || error.code === 'KCERT_NODE_FILE_NOT_WRITTEN'
}

/** Returns why a node is left for the next run; throws what is wrong with more than one node. */
export function skipReason(error: unknown): string {
  if (!isAway(error)) throw error
  return wordsOf(error)
}
