import { KcertError, wordsOf } from '../../errors/kcert-error.ts'
import { type KeyFile, keyPlaces, type OldKey, type OldKeyFiles } from '../../rotation/old-keys.ts'
import type { KeyFileView } from '../../rotation/report.ts'
import { keyIdFor } from '../../rotation/service-account-key/key-id.ts'
import type { Observed } from '../../rotation/snapshot.ts'

/** A file of a node with an old key, or with an overwritten one. */
export interface FoundFile extends KeyFile {
  readonly node: string
  /** The key in it; absent if it is already overwritten. */
  readonly old?: OldKey
  isRemoved: boolean
}

/** A key that can be identified only with its password. */
interface EncryptedKey {
  readonly node: string
  readonly path: string
}

/** The keys found on the nodes; their outcome is recorded here. */
export interface OldKeys {
  readonly files: FoundFile[]
  readonly encrypted: readonly EncryptedKey[]
  readonly unreachable: Unreachable[]
}

/** A node that remains for the next run. */
interface Unreachable {
  readonly node: string
  readonly why: string
}

/** The number of nodes that are searched concurrently. */
const nodesAtOnce = 16

/** Returns the files with these keys on these nodes, the encrypted keys, and the nodes that could not be reached. */
export async function findOldKeys(
  oldKeys: OldKeyFiles,
  observed: Observed<'components' | 'kubelets'>,
  nodes: readonly string[],
  olds: readonly OldKey[],
): Promise<OldKeys> {
  const { default: pMap } = await import('p-map')
  const oldOf = new Map(olds.map((old) => [old.spki, { old }]))
  const spkis = new Set(oldOf.keys())
  // Kubernetes reads no service account key with a password, so an encrypted key belongs to a CA.
  const areOfCas = olds.some(({ ca }) => ca !== undefined)
  const unreachable: Unreachable[] = []
  const found = await pMap(
    nodes,
    async (node): Promise<Pick<OldKeys, 'files' | 'encrypted'>> => {
      try {
        const { keys, encrypted } = await oldKeys.find(node, keyPlaces(observed, node), spkis)
        const files = keys.map((file) => ({
          ...file,
          node,
          ...(file.spki !== undefined && oldOf.get(file.spki)),
          isRemoved: false,
        }))
        return { files, encrypted: areOfCas ? encrypted.map((path) => ({ node, path })) : [] }
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

/** Returns a file with an old key for reports. */
export function keyFileView({ node, path, old }: Pick<FoundFile, 'node' | 'path' | 'old'>): KeyFileView {
  if (old === undefined) return { node, path }
  return { node, path, ...(old.ca === undefined ? { keyId: keyIdFor(old.spki) } : { ca: old.ca.name }) }
}

/** Returns true for an error of a single node, which may be gone when the command runs again. */
function isAway(error: unknown): boolean {
  if (!(error instanceof KcertError)) return false
  return error.code === 'KCERT_NODE_UNREACHABLE' || error.code === 'KCERT_NODE_FILE_NOT_WRITTEN'
}

/** Returns why a node remains for the next run. Rethrows errors that affect more than one node. */
export function skipReason(error: unknown): string {
  if (!isAway(error)) throw error
  return wordsOf(error)
}
