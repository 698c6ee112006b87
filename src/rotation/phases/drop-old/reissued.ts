import { clusterPart, inParts, type Part } from '../../phase.ts'
import { kubeconfigsAndSigner } from '../07-kubeconfigs.ts'
import { connectionWaits } from '../11-verify.ts'
import { lateServing, leaves } from '../present-new/api-servers.ts'
import { trustHolders } from './trust-holders.ts'

const waits = clusterPart((observed, _target, change) => ({
  gaps: [],
  steps: connectionWaits(observed, change),
}))

const trusted = inParts(kubeconfigsAndSigner, leaves, lateServing, waits)

/**
 * Certificates that kubeadm issued again from the old CA, on a node that had not dropped it when phase 12 stopped. Some verifiers
 * reject them already. Once every verifier does, kubeadm issues from the new CA.
 */
export const reissued: Part = (observed, target) => {
  const isOldTrusted = target.isDropping && [...trustHolders(observed, target).gaps].length > 0
  if (!isOldTrusted) return { gaps: [], steps: [] }
  return { gaps: trusted.gaps(observed, target), steps: trusted.plan(observed, target) }
}
