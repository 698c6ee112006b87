import { clusterInfoPlace, publishing, unsignedTokens } from '../../cluster-info.ts'
import type { Part } from '../../phase.ts'
import { changeOf, withNew } from '../../target.ts'

export const joiners: Part<'clusterInfo'> = (observed, target) => {
  const change = changeOf(target, 'cluster')
  const trust = observed.clusterInfo?.trust
  const isOpen = change !== undefined && trust?.includes(change.newCa.digest) === false
  return {
    gaps: [
      ...(isOpen ? [{ at: clusterInfoPlace, what: 'without the new CA' }] : []),
      ...unsignedTokens(observed),
    ],
    steps: change && trust ? publishing(observed, withNew(trust, change)) : [],
  }
}
