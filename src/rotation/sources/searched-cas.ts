import { KcertError } from '../../errors/kcert-error.ts'
import type { RotationSources } from '../report.ts'
import { type CaName, isPlanned, type Target } from '../target.ts'
import type { SearchedCa } from './source-file.ts'

/** What to search for in the files of a repository. */
export interface SourceSearch {
  readonly cas: readonly SearchedCa[]
  readonly step: RotationSources['step']
  /** CAs of the rotation that could not be read, so that kcert does not find them. */
  readonly unread: readonly CaName[]
}

/**
 * Returns the old CAs of a rotation, and the step that the files need now. `pemOf` returns a certificate that was read on the nodes.
 * Throws KCERT_NODE_UNREACHABLE if no old CA could be read.
 */
export function searchOf(
  { changes, isDropping }: Target,
  wanted: readonly CaName[],
  pemOf: (digest: string) => string | undefined,
): SourceSearch {
  const cas = changes.flatMap(({ ca, oldCa, newCa }): SearchedCa[] => {
    if (oldCa.publicKey === undefined) return []
    const isCreated = !isPlanned(newCa) && newCa.publicKey !== undefined
    return [
      {
        ...{ ca, oldCa, newCa, oldKey: Buffer.from(oldCa.publicKey, 'base64') },
        ...(isCreated && {
          newKey: Buffer.from(newCa.publicKey ?? '', 'base64'),
          newPem: pemOf(newCa.digest),
        }),
      },
    ]
  })
  if (cas.length === 0)
    throw new KcertError('KCERT_NODE_UNREACHABLE', 'no CA of the cluster could be read', {
      why: '--sources searches for the CAs that the API servers use; make a control-plane node reachable',
      next: 'kubectl get nodes',
    })
  const step = isDropping ? 'final' : changes.some(({ newCa }) => isPlanned(newCa)) ? 'find' : 'overlap'
  return { cas, step, unread: wanted.filter((name) => !cas.some(({ ca }) => ca === name)) }
}
