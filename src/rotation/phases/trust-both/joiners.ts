import { clusterInfoPlace, publishing, unsignedTokens } from '../../cluster-info.ts'
import type { Part } from '../../phase.ts'
import { changeOf, withNew } from '../../target.ts'

export const joiners: Part<'clusterInfo'> = (seen, target) => {
  const change = changeOf(target, 'cluster')
  const trust = seen.clusterInfo?.trust
  const isOpen = change !== undefined && trust?.includes(change.newCa.digest) === false
  return {
    gaps: [
      ...(isOpen ? [{ at: clusterInfoPlace, what: 'without the new CA' }] : []),
      ...unsignedTokens(seen),
    ],
    steps: change && trust ? publishing(seen, withNew(trust, change)) : [],
  }
}
