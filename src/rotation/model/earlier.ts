import { type CertificateRecord, type Digest, isSignedByCa } from '../certificate-record.ts'
import type { ParsedContent } from '../snapshot.ts'
import type { Target } from '../target.ts'
import type { Board } from './board.ts'

// What the rotation wrote to a place before its last write. A process that started earlier may still use it.

/** The part of the world that is needed here. */
interface Rotated {
  readonly target: Target
  readonly board: Pick<Board, 'record'>
  leafOf(ca: CertificateRecord): CertificateRecord
}

/** Returns a trust as it was one step earlier in the rotation. */
export function earlierTrust({ target }: Rotated, trust: readonly Digest[]): readonly Digest[] {
  let earlier = trust
  for (const { oldCa, newCa } of target.changes) {
    if (!trust.includes(newCa.digest)) continue
    earlier = trust.includes(oldCa.digest)
      ? earlier.filter((digest) => digest !== newCa.digest)
      : [oldCa.digest, ...earlier]
  }
  return earlier
}

/** Returns a chain as it was before it was reissued, or the same chain if it was not reissued. */
export function earlierChain(world: Rotated, [leaf, ...others]: readonly Digest[]): readonly Digest[] {
  const record = world.board.record(leaf)
  const change = world.target.changes.find(({ newCa }) => isSignedByCa(record, newCa))
  if (leaf === undefined || record === undefined || record.isCa || change === undefined)
    return leaf === undefined ? [] : [leaf, ...others]
  return [world.leafOf(change.oldCa).digest]
}

/** Returns the content of a file before the rotation's last write, as far as it can be derived. */
export function earlierContent(world: Rotated, content: ParsedContent): ParsedContent {
  switch (content.kind) {
    case 'certificates':
    case 'pair': {
      const isChain = world.board.record(content.certificates[0])?.isCa === false
      const certificates = isChain
        ? earlierChain(world, content.certificates)
        : earlierTrust(world, content.certificates)
      return { ...content, certificates }
    }
    case 'kubeconfig': {
      const caData = earlierTrust(world, content.caData)
      // Phase 12 changes only the CA data.
      const isDropped = caData.length > content.caData.length
      const client =
        content.client !== undefined && !isDropped ? earlierChain(world, [content.client])[0] : content.client
      return { ...content, caData, ...(client !== undefined && { client }) }
    }
    default:
      return content
  }
}
